"""Lazy imports: heavy modules are imported on first use, and public names stay available."""

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


def imports_of_code(code: str, **environment: str) -> set[str]:
    """Return the modules of `HEAVY` that code imports in a new Python process."""
    show = f"import json, sys; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", f"{textwrap.dedent(code)}\n{show}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def imports_of_command(*arguments: str, **environment: str) -> set[str]:
    """Return the modules of `HEAVY` that a command imports."""
    return imports_of_code(
        f"""
        import sys
        sys.argv = ["deadheat", *{arguments}]
        from deadheat.cli import main
        try:
            main(prog_name="deadheat")
        except SystemExit as end:
            assert not end.code, end.code
        """,
        **environment,
    )


def test_importing_deadheat_imports_nothing_heavy():
    assert imports_of_code("import deadheat; dir(deadheat)") == set()


def test_help_of_all_commands_imports_nothing_heavy():
    assert imports_of_command("--help") == set()


def test_help_of_a_command_imports_neither_polars_nor_rich():
    for command in ("eval", "leaderboard", "run"):
        assert imports_of_command(command, "--help") <= {"numpy", "ml_dtypes", "email"}


@pytest.mark.parametrize(
    ("words", "offered", "heavy"),
    [
        ("deadheat ev", "eval", set()),
        ("deadheat --ver", "--version", set()),
        ("deadheat eval -m nDC", "nDCG@10", {"numpy", "ml_dtypes", "email"}),
    ],
)
def test_completion_imports_no_more_than_help(words, offered, heavy, capfd):
    index = str(len(words.split()) - 1)
    environment = {"_DEADHEAT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": index}
    done = subprocess.run(
        [sys.executable, "-c", "from deadheat.cli import main; main(prog_name='deadheat')"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert f"plain,{offered}" in done.stdout.splitlines()
    assert imports_of_command(**environment) <= heavy


def test_evaluating_arrays_imports_neither_polars_nor_rich():
    code = """
    import deadheat as dh
    assert dh.evaluate_arrays([[1, 0]], [[1.0, 1.0]], "MRR")["MRR"].expected == 0.75
    """
    assert not imports_of_code(code) & {"polars", "rich", "torch", "pandas", "pyarrow", "scipy"}


def test_importing_deadheat_loads_the_fork_guard():
    """A fork between import and first use must be detected in the child process."""
    imports_of_code("import sys, deadheat; assert 'deadheat._internal.fork_guard' in sys.modules")


def test_importing_deadheat_installs_no_hooks():
    imports_of_code(
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


def test_public_names_exist_and_are_listed():
    assert set(dh.__all__) <= set(dir(dh))
    for name in dh.__all__:
        assert getattr(dh, name) is getattr(dh, name)
    names: dict[str, object] = {}
    exec("from deadheat import *", names)
    assert set(dh.__all__) <= set(names)


def test_imports_for_type_checkers_match_all():
    """The imports for type checkers, the lazy imports and `__all__` have the same names."""
    tree = ast.parse(Path(dh.__file__).read_text())
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deadheat."):
            for alias in node.names:
                imported[alias.asname or alias.name] = node.module
    assert set(imported) - {"own_version"} == set(dh.__all__)
    for name in set(dh.__all__) - {"plot", "report"}:
        assert getattr(importlib.import_module(imported[name]), name) is getattr(dh, name)


def test_packages_are_attributes_and_unknown_names_raise():
    code = "import deadheat; assert deadheat.measures.MEASURES and deadheat.comparison.compare"
    assert "polars" not in imports_of_code(code)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        dh.evaluat  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute '_private'"):
        dh._private  # noqa: B018


def test_listed_commands_match_the_modules():
    context = click.Context(main)
    for name, purpose in COMMANDS.items():
        command = main.get_command(context, name)
        assert command is not None
        assert (command.name, command.get_short_help_str(limit=100)) == (name, purpose)
    folder = Path(importlib.import_module("deadheat.cli").__file__).parent
    modules = {path.stem for path in folder.glob("*.py")}
    with_command = {n for n in modules if "def command(" in (folder / f"{n}.py").read_text()}
    assert with_command == set(COMMANDS)
