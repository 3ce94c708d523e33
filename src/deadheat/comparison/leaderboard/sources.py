"""Find the run files of a leaderboard by path, pattern or folder, and read manifests."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from deadheat.errors import InputError
from deadheat.evaluation import name_runs
from deadheat.formats import RunLike, text_id

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PathLike = str | os.PathLike[str]
RunsLike = Mapping[str, RunLike] | PathLike | Iterable[PathLike]
"""What the runs of a board may be: named runs, or paths of files, folders and patterns."""


@dataclass(frozen=True)
class Source:
    """A run before it is read."""

    name: str
    run: RunLike

    @property
    def path(self) -> Path | None:
        """Where the run lies, if it is a file."""
        return Path(self.run) if isinstance(self.run, (str, os.PathLike)) else None


def run_sources(runs: RunsLike, *, without: Iterable[object] = ()) -> list[Source]:
    """List the runs of a board.

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
        sources = find_runs(runs, without)
    if not sources:
        raise InputError("there is no run: give files, folders or patterns such as 'runs/*.xz'")
    return sources


def find_runs(
    runs: PathLike | Iterable[PathLike], without: Iterable[object], inside: Path | None = None
) -> list[Source]:
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
    others = {_resolve(Path(file)) for file in without if isinstance(file, (str, os.PathLike))}
    places = {_resolve(path): path for run in given for path in _list_files(Path(run))}
    if inside is not None:
        for path in places.values():
            _refuse_outside(path, inside)
    paths = [path for place, path in places.items() if place not in others]
    return list(map(Source, name_runs([_text(path) for path in paths]), paths))


def _list_files(path: Path) -> list[Path]:
    """Return the files that a path, a folder or a pattern names."""
    with _naming(path):
        if path.is_dir():
            found = [file for file in path.iterdir() if not file.name.startswith(".")]
            missing = "there is no file in this folder"
        elif path.exists() or not glob.has_magic(str(path)):
            return [path]  # one that does not exist is reported when it is read
        else:
            found = list(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
            missing = "no file has such a name"
        files = sorted(file for file in found if file.is_file())
    if not files:
        raise InputError(f"{path}: {missing}")
    return files


def _refuse_outside(path: Path, folder: Path) -> None:
    """Refuse a path that leads out of a folder: by its name, or by a link."""
    if ".." in path.parts or not _resolve(path).is_relative_to(_resolve(folder)):
        raise InputError(
            f"{_text(path):.200}: a manifest may only name files in its own folder; if these files "
            "are meant, allow it with --allow-outside (allow_outside=True)"
        )


def _resolve(path: Path) -> Path:
    """Return where a path leads, links followed."""
    with _naming(path):
        return path.resolve()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn errors of the operating system about a path into an InputError."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, links in a circle
        fault = getattr(error, "strerror", None) or error
        raise InputError(f"{_text(path):.200}: this is no name of a file ({fault})") from None


def _text(path: Path) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


@dataclass(frozen=True)
class BoardSpec:
    """One round or task of a manifest."""

    name: str
    qrels: str
    runs: list[str]
    published: str | None = None
    measures: list[str] | None = None
    """Those of the published board, or the usual ones, unless given."""
    columns: dict[str, str] | None = None
    """Measures of published columns whose headings name none."""


_TYPES: dict[str, tuple[type, str]] = {
    "name": (str, "a text"),
    "qrels": (str, "a text"),
    "runs": (list, "a list of texts"),
    "published": (str, "a text"),
    "measures": (list, "a list of texts"),
    "columns": (dict, "a table of texts"),
}
"""The fields of a board: their types, also in words."""


def read_manifest(path: PathLike, *, allow_outside: bool = False) -> list[BoardSpec]:
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
    specs = []
    for number, board in enumerate(boards, 1):
        try:
            fields = {"name": f"board {number}", **_check_fields(board)}
            spec = BoardSpec(**fields)  # type: ignore[arg-type]
            specs.append(_locate(spec, Path(path).parent, allow_outside=allow_outside))
        except InputError as error:
            raise InputError(f"{path}: board {number}: {error}") from None
    names = [spec.name for spec in specs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{path}: two boards are called {twice[0]!r:.60}")
    return specs


def _check_fields(board: dict[str, object]) -> dict[str, object]:
    """Return the fields of a board of a manifest; refuse unknown, missing and mistyped ones."""
    checked: dict[str, object] = {}
    for key, value in board.items():
        if key not in _TYPES:
            raise InputError(f"unknown {key!r:.60}; it can have {', '.join(_TYPES)}")
        kind, words = _TYPES[key]
        if kind is list and isinstance(value, str):
            value = [value]
        texts = value.values() if isinstance(value, dict) else value
        fits = isinstance(value, kind)
        if not fits or not all(isinstance(text, str) for text in texts):  # type: ignore[attr-defined]
            raise InputError(f"{key} must be {words}, not of the type {type(value).__name__}")
        checked[key] = value
    for key in ("qrels", "runs"):
        if not checked.get(key):
            raise InputError(f"{key} is missing")
    return checked


def _locate(spec: BoardSpec, folder: Path, *, allow_outside: bool) -> BoardSpec:
    """Return a board with paths that start at the working directory."""

    def locate(key: str, name: str) -> str:
        path = folder / name
        try:
            if name == "-":
                raise InputError("a manifest cannot name standard input (-)")
            with _naming(path), suppress(FileNotFoundError, NotADirectoryError):
                path.stat()
            if not allow_outside:
                _refuse_outside(path, folder)
        except InputError as error:
            raise InputError(f"{key}: {error}") from None
        return str(path)

    return replace(
        spec,
        qrels=locate("qrels", spec.qrels),
        runs=[locate("runs", run) for run in spec.runs],
        published=spec.published and locate("published", spec.published),
    )
