"""What the site has beside its pages: the changelog of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put CHANGELOG.md in the place of its page."""
    if page.file.src_uri != "changelog.md":
        return markdown
    return _as_page((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def _as_page(text: str) -> str:
    """Let links into docs/ work from there; files outside of it are named only."""

    def moved(link: re.Match[str]) -> str:
        words, target = link.groups()
        if target.startswith("docs/"):
            return f"[{words}]({target.removeprefix('docs/')})"
        return link[0] if target.startswith("http") else words

    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", moved, text)
