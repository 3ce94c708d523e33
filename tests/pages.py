"""Pages of the documentation as their reader runs them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A block that needs the hub is announced by a comment, and its page says so in words.
BLOCK = re.compile(r"(<!-- not run -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page: Path) -> None:
    """Run the blocks of a page one after the other, as a reader would paste them."""
    namespace: dict[str, object] = {}
    for needs_hub, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if needs_hub:
            continue
        if language == "python":
            exec(compile(text, str(page), "exec"), namespace)
        elif language == "console":
            run_console(text)
        elif named := re.match(r"# ([\w.-]+)\n", text):  # a file, whose first line names it
            Path(named[1]).write_text(text, encoding="utf-8")


def run_console(text: str) -> None:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, shown = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.DOTALL).groups()
        words = shlex.split(line.replace("\\\n", ""), comments=True)
        if words[0] != "deadheat":
            assert words[0] in ("make", "pip", "python3", "source"), line
            continue
        printed = deadheat(*words[1:])
        if shown.strip():  # a line of "…" is for lines that the page leaves out
            pattern = ".*".join(map(re.escape, f"{shown.strip()}\n".split("…\n")))
            assert re.fullmatch(pattern, f"{printed.strip()}\n", re.DOTALL), f"{line}\n{printed}"


def deadheat(*words: str) -> str:
    return run_python("-m", "deadheat.cli", *words)


def run_python(*words: str) -> str:
    """What Python prints; an error if it ends with one."""
    command = [sys.executable, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
