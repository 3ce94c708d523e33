"""The style of all figures, and saving them to files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deadheat._internal.output import write_output
from deadheat._internal.packages import require
from deadheat.errors import InputError, printable
from deadheat.tables import shorten_name, strip_shared

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS = {"column": 3.3, "full": 6.9}
"""Inches: one column, and the whole width, of a two-column paper."""
ENDINGS = ("png", "svg", "pdf")

# Okabe and Ito's colours, which colour-blind people can tell apart; dashes and markers say the
# same without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#777777")
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1))) * 2
MARKERS = "os^Dvphd"
INK = "#333333"


@dataclass(frozen=True)
class Plot:
    """A figure and its caption."""

    figure: Figure
    caption: str

    def render(self, ending: str = "png") -> bytes:
        """Return the figure as PNG, SVG or PDF, the caption in its metadata."""
        caption = printable(self.caption)
        metadata: dict[str, dict[str, str | list[str] | None]] = {
            "png": {"Software": "deadheat", "Description": caption},
            "svg": {"Creator": ["deadheat"], "Date": None, "Description": caption},
            "pdf": {"Creator": "deadheat", "CreationDate": None, "Subject": caption},
        }
        buffer = io.BytesIO()
        with styled():
            self.figure.savefig(buffer, format=ending, dpi=300, metadata=metadata[ending])
        return buffer.getvalue()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the figure atomically, in the format of the file ending.

        Parameters
        ----------
        path
            A file that ends in ``.png``, ``.svg`` or ``.pdf``.
        force
            Whether to overwrite an existing file. Default: False.
        """
        return write_output(path, self.render(check_ending(path)), force=force)

    def _repr_png_(self) -> bytes:
        return self.render("png")


def check_ending(path: str | os.PathLike[str]) -> str:
    """Return the format of a path's ending.

    >>> check_ending("ties.PDF")
    'pdf'
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in ENDINGS:
        raise InputError(f"{path}: the ending names the format; use .{', .'.join(ENDINGS)}")
    return ending


@contextmanager
def styled() -> Iterator[None]:
    """Draw in our style, independent of the user's settings."""
    require("matplotlib", "a figure")
    import matplotlib.style

    with matplotlib.style.context(["default", Path(__file__).with_name("paper.mplstyle")]):
        yield


def new_figure(width: str | float, height: float) -> Figure:
    """Make a figure outside of pyplot: it has no window and no global state."""
    from matplotlib.figure import Figure

    return Figure((inches(width), height), layout="constrained")


def inches(width: str | float) -> float:
    """Return a width in inches, given in inches or as one of `WIDTHS`."""
    known = WIDTHS.get(width) if isinstance(width, str) else float(width)
    if known is None or not 2 <= known <= 20:
        raise InputError(f"width must be {', '.join(WIDTHS)} or 2 to 20 inches, not {width!r}")
    return known


def row_of(rows: int) -> tuple[float, float]:
    """Return the height of a row in inches and its text size in points, so that all fit a page.

    >>> row_of(5), row_of(126)
    ((0.155, 6.5), (0.0714, 4.1))
    """
    height = min(0.155, max(0.07, round(9 / rows, 4)))
    return height, min(6.5, round(58 * height, 1))


def name_rows(axes: Axes, names: Sequence[str], width: str | float, size: float) -> None:
    """Label the rows of a figure, the first on top, in text of a size in points."""
    labels = shorten(names, int(inches(width) * 45 / size))
    axes.set_yticks(range(len(names)), labels, parse_math=False, fontsize=size)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")


def line(colour: str, marker: str = "", **options: Any) -> Artist:
    """Make a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, markersize=4, **options)


def legend(
    figure: Figure, handles: Iterable[Artist], words: Sequence[str], *, below: bool = False
) -> None:
    """Put a legend above or below the panels, in as many columns as fit."""
    widest = 0.4 + 0.052 * max(map(len, words))
    columns = max(1, min(len(words), int(figure.get_figwidth() / widest)))
    place = "outside lower center" if below else "outside upper center"
    figure.legend([*handles], words, loc=place, ncols=columns)  # type: ignore[call-overload]


def shorten(names: Sequence[str], length: int) -> list[str]:
    """Make names printable and short, but keep them distinct.

    >>> shorten(["bge-reranker-v2-m3", "gte"], 12)
    ['bge-re…v2-m3', 'gte']
    """
    clean = list(map(printable, names))
    if max(map(len, clean), default=0) > length:
        stripped = strip_shared(clean)
        short = {name: shorten_name(own, length) for name, own in stripped.items()}
        if len(set(short.values())) < len(short):
            return shorten(clean, length + 4)
        clean = [short[name] for name in clean]
    return clean
