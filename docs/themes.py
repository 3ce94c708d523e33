"""Give SVG figures a light and a dark theme: `python docs/themes.py FIGURE.svg…`.

Replaces colours by variables of a style sheet in the file, and removes the white background.
Figures that already have both themes do not change.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Colours of the figures: light theme, dark theme.
COLOURS = {
    "black": ("#000000", "#e8e8e8"),
    "ink": ("#333333", "#cfd3d8"),
    "grey": ("#777777", "#a0a4aa"),
    "grid": ("#dddddd", "#454a52"),
    "rule": ("#cccccc", "#565c66"),
    "paper": ("#ffffff", "#23272e"),
    "blue": ("#0072b2", "#5db8f0"),
    "orange": ("#d55e00", "#f08a4b"),
    "green": ("#009e73", "#3cc79c"),
    "pink": ("#cc79a7", "#d993b9"),
    "yellow": ("#e69f00", "#f0b53c"),
    "sky": ("#56b4e9", "#28607f"),
    "relevant": ("#cfe3f1", "#24506b"),
}
_BACKGROUND = re.compile(r'(<g id="patch_\d+">\s*<path [^>]*style=")fill: #ffffff(?=")')


def in_both_themes(svg: str) -> str:
    """Return the figure without background, and with colours that depend on the theme."""
    if "prefers-color-scheme" in svg:
        return svg
    svg = _BACKGROUND.sub(r"\1fill: none", svg)
    for name, (light, _) in COLOURS.items():
        svg = svg.replace(f": {light}", f": var(--{name})")
    if missed := set(re.findall(r"(?:fill|stroke): (#\w+)", svg)):
        raise SystemExit(f"no dark variant in COLOURS for {', '.join(sorted(missed))}")
    light, dark = (
        " ".join(f"--{name}: {colours[theme]};" for name, colours in COLOURS.items())
        for theme in (0, 1)
    )
    # Text has no fill in the figure, so that the style sets it.
    style = (
        f"<style>svg {{ {light} fill: var(--black) }}\n"
        f"@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}</style>"
    )
    return re.sub(r"<svg [^>]*>", lambda opening: f"{opening[0]}\n {style}", svg, count=1)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(in_both_themes(path.read_text(encoding="utf-8")), encoding="utf-8")
