"""What a leaderboard is made of: run files found by path, pattern or folder, and manifests."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from deadheat.errors import InputError
from deadheat.evaluation import run_name
from deadheat.formats.ids import text_id

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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


def found_runs(runs: Any, without: Iterable[Any], inside: Path | None = None) -> list[Source]:
    """List the files that paths, folders and patterns name, each once, under distinct names.

    A file that does not lie in the folder `inside` is refused.
    """
    given = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    for run in given:
        if not isinstance(run, (str, os.PathLike)):
            raise InputError(
                f"runs are given by their paths, or as {{name: run}}, not as a "
                f"{type(run).__name__} without a name"
            )
    others = {_place(Path(file)) for file in without if isinstance(file, (str, os.PathLike))}
    places = {_place(path): path for run in given for path in _files(run)}
    if inside is not None:
        for path in places.values():
            refuse_outside(path, inside)
    paths = [path for place, path in places.items() if place not in others]
    names = [run_name(_text(path)) for path in paths]
    twice = {name for name in names if names.count(name) > 1}
    return [
        Source(_text(path) if name in twice else name, path)
        for name, path in zip(names, paths, strict=True)
    ]


def refuse_outside(path: Path, folder: Path) -> None:
    """Refuse a path that leads out of a folder: by its name, or by a link."""
    if ".." in path.parts or not _place(path).is_relative_to(_place(folder)):
        raise InputError(
            f"{_text(path):.200}: a manifest may only name files in its own folder; if these files "
            "are meant, allow it with --allow-outside (allow_outside=True)"
        )


def _place(path: Path) -> Path:
    """Where a path leads, links followed."""
    with _named(path):
        return path.resolve()


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn what the system says about a path into an InputError."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, links in a circle
        fault = getattr(error, "strerror", None) or error
        raise InputError(f"{_text(path):.200}: this is no name of a file ({fault})") from None


def _files(run: str | os.PathLike[str]) -> list[Path]:
    """Files that one word names."""
    with _named(Path(run)):
        return _found(Path(run))


def _found(path: Path) -> list[Path]:
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


def read_manifest(path: str | os.PathLike[str], *, allow_outside: bool = False) -> list[BoardSpec]:
    """Read a TOML file with a ``[[board]]`` per round or task.

    Each has ``qrels`` and ``runs``, perhaps ``name``, ``published``, ``measures`` and
    ``columns``. Paths start at the folder of the manifest.

    Parameters
    ----------
    allow_outside
        Accept absolute paths, ``..`` and links that lead out of the folder of the manifest.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # not TOML, not UTF-8
        raise InputError(f"{path}: not valid TOML ({error!s:.200})") from None
    except RecursionError:
        raise InputError(f"{path}: not valid TOML (values are nested too deeply)") from None
    boards = data.pop("board", None)
    if data or not isinstance(boards, list) or not all(isinstance(b, dict) for b in boards):
        raise InputError(f"{path}: expected one or more tables [[board]], each with qrels and runs")
    specs = [_spec(f"{path}: board {i}", board, i) for i, board in enumerate(boards, 1)]
    names = [spec.name for spec in specs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{path}: two boards are called {twice[0]!r:.60}")
    return [
        _from_folder(f"{path}: board {i}", spec, Path(path).parent, allow_outside=allow_outside)
        for i, spec in enumerate(specs, 1)
    ]


def _spec(where: str, board: dict[str, Any], number: int) -> BoardSpec:
    known = [field.name for field in fields(BoardSpec)]
    for key, value in board.items():
        if key not in known:
            raise InputError(f"{where}: unknown {key!r:.60}; it can have {', '.join(known)}")
        if key in ("runs", "measures"):
            board[key] = value = (value,) if isinstance(value, str) else value
            fits = isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)
            kind = "a list of texts"
        elif key == "columns":
            fits = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
            kind = "a table of texts"
        else:
            fits, kind = isinstance(value, str), "a text"
        if not fits:
            raise InputError(
                f"{where}: {key} must be {kind}, not of the type {type(value).__name__}"
            )
    for key in ("qrels", "runs"):
        if not board.get(key):
            raise InputError(f"{where}: {key} is missing")
    lists: dict[str, Any] = {key: tuple(board[key]) for key in ("runs", "measures") if key in board}
    words: dict[str, Any] = {"name": f"board {number}", **board, **lists}
    return BoardSpec(**words)


def _from_folder(where: str, spec: BoardSpec, folder: Path, *, allow_outside: bool) -> BoardSpec:
    """Give the paths of a board as they are seen from here."""

    def path(key: str, name: str) -> str:
        try:
            if name == "-":
                raise InputError("a manifest cannot name standard input (-)")
            with _named(folder / name), suppress(FileNotFoundError, NotADirectoryError):
                (folder / name).stat()
            if not allow_outside:
                refuse_outside(folder / name, folder)
        except InputError as error:
            raise InputError(f"{where}: {key}: {error}") from None
        return str(folder / name)

    return replace(
        spec,
        qrels=path("qrels", spec.qrels),
        runs=tuple(path("runs", run) for run in spec.runs),
        published=None if spec.published is None else path("published", spec.published),
    )
