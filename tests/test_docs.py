"""Every code block of README and docs runs; where output is shown, it is what is printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
# A block that needs the hub is announced by a comment, and its page says so in words.
BLOCK = re.compile(r"(<!-- not run -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder like that of a reader who has run the demo."""
    monkeypatch.chdir(tmp_path)
    deadheat("demo", "--files", "demo")
    return tmp_path


def deadheat(*words: str) -> str:
    command = [sys.executable, "-m", "deadheat.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run_one_after_the_other(page, workplace):
    """As a reader would paste them."""
    namespace: dict[str, object] = {}
    for needs_hub, language, text in blocks(page):
        if needs_hub:
            continue
        if language == "python":
            exec(compile(text, str(page), "exec"), namespace)
        elif language == "console":
            run_console(text)


def run_console(text: str) -> None:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        words = shlex.split(line, comments=True)
        if words[0] != "deadheat":
            assert words[0] in ("make", "pip", "source"), line
            continue
        printed = deadheat(*words[1:])
        if shown.strip():
            assert printed.strip() == shown.strip(), line
