"""MkDocs hooks: use README.md and CHANGELOG.md as pages of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the text of README.md or CHANGELOG.md for their pages."""
    name = FILES.get(page.file.src_uri)
    return convert_links((ROOT / name).read_text(encoding="utf-8")) if name else markdown


def convert_links(text: str) -> str:
    """Make links to docs/ relative; replace links to other files by their text."""

    def convert(link: re.Match[str]) -> str:
        label, target = link.groups()
        if target.startswith("docs/"):
            return f"[{label}]({target.removeprefix('docs/')})"
        return link[0] if target.startswith(("http", "#")) else label

    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", convert, text)
    return re.sub(r'(src(?:set)?=")docs/', r"\1", text)
