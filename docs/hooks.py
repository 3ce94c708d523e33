"""Pages of the site that are files of the repository: README.md and CHANGELOG.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replace the text of a page by the file that it stands for."""
    name = FILES.get(page.file.src_uri)
    return convert_links((ROOT / name).read_text(encoding="utf-8")) if name else markdown


def convert_links(text: str) -> str:
    """Make links into docs/ relative to it; a link to another file becomes plain text."""

    def convert(link: re.Match[str]) -> str:
        words, target = link.groups()
        if target.startswith("docs/"):
            return f"[{words}]({target.removeprefix('docs/')})"
        return link[0] if target.startswith(("http", "#")) else words

    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", convert, text)
    return re.sub(r'(src(?:set)?=")docs/', r"\1", text)
