"""Find the run files of a leaderboard by path, pattern or folder, and read manifests."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deadheat.errors import InputError
from deadheat.evaluation import name_runs
from deadheat.formats import RunLike, is_folder, text_id

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PathLike = str | os.PathLike[str]
RunsLike = Mapping[str, RunLike] | PathLike | Iterable[PathLike]
"""Types of the runs of a board: ``{name: run}``, or paths of files, folders and patterns."""


def find_runs(
    runs: RunsLike, without: Iterable[object] = (), inside: Path | None = None
) -> dict[str, RunLike]:
    """List the runs of a board, each once, under distinct names.

    Parameters
    ----------
    runs
        ``{name: run}``; or paths of files, folders (every file in them) and patterns such as
        ``runs/*.xz``, one or several. A path that exists is never read as a pattern.
    without
        Files in these folders that are not runs: the judgements, the board.
    inside
        Folder that must contain all files. Default: they may be anywhere.
    """
    if isinstance(runs, Mapping):
        return {text_id(name): run for name, run in runs.items()}
    if isinstance(runs, (str, os.PathLike)) or not isinstance(runs, Iterable):
        runs = [runs]
    files: dict[Path, Path] = {}
    for run in runs:
        if not isinstance(run, (str, os.PathLike)):
            raise InputError(
                f"runs must be paths or {{name: run}}, not {type(run).__name__}; the order is "
                "leaderboard(qrels, runs)"
            )
        files |= {_resolve(path, inside): path for path in _list_files(Path(run))}
    others = {_resolve(Path(file)) for file in without if isinstance(file, (str, os.PathLike))}
    paths = [path for place, path in files.items() if place not in others]
    return dict(zip(name_runs([_text(path) for path in paths]), paths, strict=True))


def _list_files(path: Path) -> list[Path]:
    """Return the files of a path, a folder or a pattern."""
    _resolve(path)
    pattern = str(path)
    if is_folder(path):
        pattern = os.path.join(glob.escape(pattern), "*")  # noqa: PTH118
    elif not glob.has_magic(pattern) or os.path.exists(path):  # noqa: PTH110
        return [path]  # a missing file is reported when it is read
    found = map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207
    files = sorted(file for file in found if file.is_file())
    if not files:
        raise InputError(f"{path}: no file is in this folder or matches this pattern")
    return files


def _resolve(path: Path, inside: Path | None = None) -> Path:
    """Return a path with all links resolved; refuse one that leads out of the folder `inside`."""
    try:
        place = path.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # NUL, links in a circle
        raise InputError(f"{_text(path)}: this is not a valid path ({error})") from None
    if inside and (".." in path.parts or not place.is_relative_to(inside.resolve())):
        raise InputError(
            f"{_text(path)}: the file is outside of the manifest's folder; if you trust the "
            "manifest, use --allow-outside (allow_outside=True)"
        )
    return place


def _text(path: Path) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("qrels", "name", "published"), str),
    **dict.fromkeys(("runs", "measures"), (str, list)),
    "columns": dict,
}
"""The fields of a manifest's board and their types; items of lists and tables are texts."""


def read_manifest(path: PathLike, *, allow_outside: bool = False) -> list[dict[str, Any]]:
    """Read a TOML file with a ``[[board]]`` per round or task: arguments of `leaderboard`.

    Each board has ``qrels`` and ``runs``, and optionally ``name``, ``published``, ``measures`` and
    ``columns``. Paths are relative to the folder of the manifest.

    Parameters
    ----------
    allow_outside
        Accept absolute paths, ``..`` and links that lead out of the folder of the manifest.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, nested too deeply
        raise InputError(f"{path}: not valid TOML ({error!s:.200})") from None
    boards = data.pop("board", None)
    if data or not isinstance(boards, list) or not all(isinstance(b, dict) for b in boards):
        raise InputError(f"{path}: expected one or more tables [[board]], each with qrels and runs")
    specs: list[dict[str, Any]] = []
    for number, board in enumerate(boards, 1):
        named = {"name": f"board {number}", **board}
        try:
            spec = _read_board(named, Path(path).parent, allow_outside)
        except InputError as error:
            raise InputError(f"{path}: board {number}: {error}") from None
        if any(spec["name"] == other["name"] for other in specs):
            raise InputError(f"{path}: two boards are called {spec['name']!r:.60}")
        specs.append(spec)
    return specs


def _read_board(board: dict[str, Any], folder: Path, allow_outside: bool) -> dict[str, object]:
    """Check the fields of a manifest's board, and find its files."""
    for key in dict.fromkeys(("qrels", "runs", *board)):
        value = board.get(key)
        inner = value.values() if isinstance(value, dict) else value
        texts: Iterable[object] = [value] if isinstance(value, str) else inner or ()
        fits = bool(value) and isinstance(value, _TYPES.get(key, ()))
        if not fits or not all(isinstance(text, str) and text != "-" for text in texts):
            raise InputError(
                f"{key!r:.60} is missing, unknown or of the wrong type; a board has qrels (text), "
                "runs (list of texts), and optionally name and published (texts), measures (list "
                "of texts) and columns (table of texts); none can be standard input (-)"
            )
    inside = None if allow_outside else folder
    files: dict[str, Any] = {
        key: folder / board[key] for key in ("qrels", "published") if key in board
    }
    for file in files.values():
        _resolve(file, inside)
    runs = [board["runs"]] if isinstance(board["runs"], str) else board["runs"]
    found = find_runs([folder / run for run in runs], files.values(), inside)
    return {**board, **files, "runs": found}
