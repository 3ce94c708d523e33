"""Run the code blocks of documentation pages."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A comment marks a block that needs the hub; the text of the page says so, too.
BLOCK = re.compile(r"(<!-- not run -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page: Path) -> None:
    """Run the blocks of a page in order, in one namespace."""
    namespace: dict[str, object] = {}
    for needs_hub, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if needs_hub:
            continue
        if language == "python":
            exec(compile(text, str(page), "exec"), namespace)
        elif language == "console":
            run_console(text)
        elif file_name := re.match(r"# ([\w.-]+)\n", text):  # the first line names the file
            Path(file_name[1]).write_text(text, encoding="utf-8")


def run_console(text: str) -> None:
    """Run the `deadheat` commands of a block and compare their output with that of the page."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, expected = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.DOTALL).groups()
        args = shlex.split(line.replace("\\\n", ""), comments=True)
        if args[0] != "deadheat":
            assert args[0] in ("make", "pip", "python3", "source"), line
            continue
        output = deadheat(*args[1:])
        if expected.strip():  # a line "…" matches any lines
            pattern = ".*".join(map(re.escape, f"{expected.strip()}\n".split("…\n")))
            assert re.fullmatch(pattern, f"{output.strip()}\n", re.DOTALL), f"{line}\n{output}"


def deadheat(*args: str) -> str:
    """Run the command and return its output."""
    return run_python("-m", "deadheat.cli", *args)


def run_python(*args: str) -> str:
    """Run Python and return its output; fail if the exit status is not 0."""
    command = [sys.executable, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
