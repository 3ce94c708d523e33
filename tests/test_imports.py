"""What is imported when: nothing heavy before it is used, and every name where it was."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest

import deadheat as dh
from deadheat.cli import COMMANDS, main

HEAVY = ("numpy", "polars", "rich", "torch", "transformers", "pandas", "pyarrow", "scipy")
HEAVY += ("matplotlib", "jinja2", "ray", "ml_dtypes", "asyncio", "email", "http", "packaging")


def loaded_by(code: str, **environment: str) -> set[str]:
    """Run code in a Python of its own, and give what of `HEAVY` it has imported."""
    ending = f"import json, sys; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    found = subprocess.run(
        [sys.executable, "-c", f"{textwrap.dedent(code)}\n{ending}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert found.returncode == 0, found.stderr
    return set(json.loads(found.stdout.splitlines()[-1]))


def loaded_by_words(*words: str, **environment: str) -> set[str]:
    """Give the same for the command line."""
    return loaded_by(
        f"""
        import sys
        sys.argv = ["deadheat", *{words}]
        from deadheat.cli import main
        try:
            main(prog_name="deadheat")
        except SystemExit as end:
            assert not end.code, end.code
        """,
        **environment,
    )


def test_importing_deadheat_imports_nothing_heavy():
    assert loaded_by("import deadheat; dir(deadheat)") == set()


def test_the_list_of_commands_needs_none_of_them():
    assert loaded_by_words("--help") == set()


def test_the_help_of_a_command_needs_neither_polars_nor_rich():
    for command in ("eval", "leaderboard", "run"):
        assert loaded_by_words(command, "--help") <= {"numpy", "ml_dtypes", "email"}


@pytest.mark.parametrize(
    ("words", "offered", "heavy"),
    [
        ("deadheat ev", "eval", set()),
        ("deadheat --ver", "--version", set()),
        ("deadheat eval -m nDC", "nDCG@10", {"numpy", "ml_dtypes", "email"}),
    ],
)
def test_completion_is_as_quick_as_help(words, offered, heavy, capfd):
    place = str(len(words.split()) - 1)
    environment = {"_DEADHEAT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": place}
    found = subprocess.run(
        [sys.executable, "-c", "from deadheat.cli import main; main(prog_name='deadheat')"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert f"plain,{offered}" in found.stdout.splitlines()
    assert loaded_by_words(**environment) <= heavy


def test_arrays_are_evaluated_without_polars_and_rich():
    code = """
    import deadheat as dh
    assert dh.evaluate_arrays([[1, 0]], [[1.0, 1.0]], "MRR")["MRR"].expected == 0.75
    """
    assert not loaded_by(code) & {"polars", "rich", "torch", "pandas", "pyarrow", "scipy"}


def test_a_fork_after_the_import_is_noticed():
    """A process that forks between import and first use must know it in the child."""
    loaded_by("import sys, deadheat; assert 'deadheat._internal.fork_guard' in sys.modules")


def test_importing_deadheat_installs_no_hooks():
    loaded_by(
        """
        import atexit, os, signal, sys, threading, warnings

        def hooks():
            own = [sys.meta_path, sys.path_hooks, sys.excepthook, sys.displayhook, warnings.filters]
            own += [threading.excepthook, sys.gettrace(), sys.getprofile(), atexit._ncallbacks()]
            return repr([*own, *map(signal.getsignal, signal.valid_signals())])

        forks = []
        os.register_at_fork = lambda **functions: forks.extend(functions.values())
        before = hooks()
        import deadheat
        dir(deadheat)
        assert hooks() == before
        assert not [function for function in forks if "deadheat" in function.__module__]
        """
    )


def test_every_public_name_is_there_and_listed():
    assert set(dh.__all__) <= set(dir(dh))
    for name in dh.__all__:
        assert getattr(dh, name) is getattr(dh, name)
    names: dict[str, object] = {}
    exec("from deadheat import *", names)
    assert set(dh.__all__) <= set(names)


def test_type_checkers_see_the_names_that_are_there():
    """The imports for type checkers, the table of rooms and `__all__` say the same."""
    tree = ast.parse(Path(dh.__file__).read_text())
    seen = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deadheat."):
            for alias in node.names:
                seen[alias.asname or alias.name] = node.module
    assert set(seen) - {"own_version"} == set(dh.__all__)
    for name in set(dh.__all__) - {"plot", "report"}:
        assert getattr(importlib.import_module(seen[name]), name) is getattr(dh, name)


def test_rooms_are_attributes_and_other_names_are_not():
    code = "import deadheat; assert deadheat.measures.MEASURES and deadheat.comparison.compare"
    assert "polars" not in loaded_by(code)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        dh.evaluat  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute '_private'"):
        dh._private  # noqa: B018


def test_the_commands_are_those_that_are_listed():
    context = click.Context(main)
    for name, purpose in COMMANDS.items():
        command = main.get_command(context, name)
        assert command is not None
        assert (command.name, command.get_short_help_str(limit=100)) == (name, purpose)
    folder = Path(importlib.import_module("deadheat.cli").__file__).parent
    modules = {path.stem for path in folder.glob("*.py")}
    with_command = {n for n in modules if "def command(" in (folder / f"{n}.py").read_text()}
    assert with_command == set(COMMANDS)
