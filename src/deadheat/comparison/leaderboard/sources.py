"""What a leaderboard is made of: run files found by path, pattern or folder, and manifests."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from deadheat.errors import InputError
from deadheat.formats.files import COMPRESSED
from deadheat.formats.ids import text_id

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RUN_ENDINGS = (".run", ".txt", ".trec", ".res", ".tsv", ".csv", ".json", ".jsonl", ".parquet")
"""How the names of run files end; the rest is the name of the run."""


@dataclass(frozen=True)
class Source:
    """A run before it is read."""

    name: str
    run: Any
    """A path, or whatever else `deadheat.read_run` takes."""

    @property
    def path(self) -> Path | None:
        """Where the run lies, if it is a file."""
        return Path(self.run) if isinstance(self.run, (str, os.PathLike)) else None


def run_sources(runs: Any, *, without: Iterable[Any] = ()) -> list[Source]:
    """List the runs that were meant.

    Parameters
    ----------
    runs
        ``{name: run}``; or paths of files, folders (every file in them) and patterns such as
        ``runs/*.xz``, one or several. A path that exists means itself, whatever is in its name.
    without
        Files that are not runs, though they may lie among them: the judgements, the board.
    """
    if isinstance(runs, Mapping):
        sources = [Source(text_id(name), run) for name, run in runs.items()]
    else:
        sources = found_runs(runs, without)
    if not sources:
        raise InputError("there is no run: give files, folders or patterns such as 'runs/*.xz'")
    return sources


def found_runs(runs: Any, without: Iterable[Any]) -> list[Source]:
    """List the files that paths, folders and patterns name, each once, under distinct names."""
    given = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    for run in given:
        if not isinstance(run, (str, os.PathLike)):
            raise InputError(
                f"runs are given by their paths, or as {{name: run}}, not as a "
                f"{type(run).__name__} without a name"
            )
    others = {Path(file).resolve() for file in without if isinstance(file, (str, os.PathLike))}
    places = {path.resolve(): path for run in given for path in _files(run)}
    paths = [path for place, path in places.items() if place not in others]
    names = list(map(run_name, paths))
    twice = {name for name in names if names.count(name) > 1}
    return [
        Source(_text(path) if name in twice else name, path)
        for name, path in zip(names, paths, strict=True)
    ]


def _files(run: str | os.PathLike[str]) -> list[Path]:
    """Files that one word names."""
    path = Path(run)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        if not files:
            raise InputError(f"{path}: there is no file in this folder")
        return files
    if path.exists() or not glob.has_magic(str(path)):
        return [path]  # one that is not there is told of when it is read
    found = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207
    files = sorted(file for file in found if file.is_file())
    if not files:
        raise InputError(f"{path}: no file has such a name")
    return files


def run_name(path: Path) -> str:
    """Name of a run: that of its file, without what tells the format.

    >>> run_name(Path("runs/input.bm25.txt.gz")), run_name(Path("covidex.r4.duot5.xz"))
    ('bm25', 'covidex.r4.duot5')
    """
    name = whole = _text(Path(path.name))
    for endings in (COMPRESSED, RUN_ENDINGS):
        for ending in endings:
            name = name.removesuffix(ending)
    return name.removeprefix("input.") or whole  # NIST archives runs as input.TAG


def _text(path: Path) -> str:
    """A path as text; one that is not UTF-8 as far as it is."""
    return os.fsencode(path).decode(errors="backslashreplace")


@dataclass(frozen=True)
class BoardSpec:
    """One round or task of a manifest."""

    name: str
    qrels: str
    runs: tuple[str, ...]
    published: str | None = None
    measures: tuple[str, ...] = ()
    """Those of the published board, or the usual ones, unless given."""
    columns: Mapping[str, str] | None = None
    """Measures of published columns whose names do not tell."""


def read_manifest(path: str | os.PathLike[str]) -> list[BoardSpec]:
    """Read a TOML file with a ``[[board]]`` per round or task.

    Each has ``qrels`` and ``runs``, perhaps ``name``, ``published``, ``measures`` and
    ``columns``. Paths start at the folder of the manifest.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # not TOML, not UTF-8
        raise InputError(f"{path}: not valid TOML ({error})") from None
    boards = data.pop("board", None)
    if data or not isinstance(boards, list) or not all(isinstance(b, dict) for b in boards):
        raise InputError(f"{path}: expected one or more tables [[board]], each with qrels and runs")
    specs = [_spec(f"{path}: board {i}", board, i) for i, board in enumerate(boards, 1)]
    names = [spec.name for spec in specs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{path}: two boards are called {twice[0]!r}")
    return [_from_folder(spec, Path(path).parent) for spec in specs]


def _spec(where: str, board: dict[str, Any], number: int) -> BoardSpec:
    known = [field.name for field in fields(BoardSpec)]
    for key, value in board.items():
        if key not in known:
            raise InputError(f"{where}: unknown {key!r}; it can have {', '.join(known)}")
        if key in ("runs", "measures"):
            board[key] = value = (value,) if isinstance(value, str) else value
            fits = isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)
        elif key == "columns":
            fits = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        else:
            fits = isinstance(value, str)
        if not fits:
            raise InputError(f"{where}: {key} cannot be {value!r:.60}")
    for key in ("qrels", "runs"):
        if not board.get(key):
            raise InputError(f"{where}: {key} is missing")
    lists: dict[str, Any] = {key: tuple(board[key]) for key in ("runs", "measures") if key in board}
    words: dict[str, Any] = {"name": f"board {number}", **board, **lists}
    return BoardSpec(**words)


def _from_folder(spec: BoardSpec, folder: Path) -> BoardSpec:
    return BoardSpec(
        spec.name,
        str(folder / spec.qrels),
        tuple(str(folder / run) for run in spec.runs),
        None if spec.published is None else str(folder / spec.published),
        spec.measures,
        spec.columns,
    )
