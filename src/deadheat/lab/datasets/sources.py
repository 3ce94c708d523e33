"""Sources of datasets: named tables in a folder, on the Hugging Face hub, or in ``ir_datasets``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from deadheat._internal.lazy import pl
from deadheat._internal.packages import require
from deadheat.errors import InputError
from deadheat.formats import COMPRESSED, TABLES, column_of, is_known, table_from_file, with_names

IR_DATASETS = "ir_datasets:"
"""Prefix of the id of a dataset of the package ``ir_datasets``."""
Splits: TypeAlias = dict[str, list[tuple[Path, str]]]
"""Files of each split, with their formats."""
_FORMATS = {**{name: name for name in TABLES}, "ndjson": "jsonl"}
_FILE_NAME = re.compile(
    r"(?P<stem>.+?)(?:-\d+-of-(?P<shards>\d+))?"
    rf"\.(?P<format>{'|'.join(_FORMATS)})(?:{'|'.join(map(re.escape, COMPRESSED))})?"
)
_PURPOSE = "Reading a dataset from the hub"
_TIMEOUT = 30.0


@dataclass(frozen=True)
class TableSource:
    """A source of named tables, each in one or more splits."""

    location: str
    """Name of the source in messages."""
    tables: Sequence[str]
    list_splits: Callable[[str], list[str]]
    """Returns the splits of a table; one split with an empty name if there are no splits."""
    read: Callable[[str, str], pl.DataFrame]
    """Reads one split of a table.

    Columns that `deadheat.formats.frames.is_known` rejects, such as images, may have no values.
    """
    revision: str | None = None


def open_source(name_or_path: str | Path, revision: str | None) -> TableSource:
    """Open an existing folder or file, a dataset of ``ir_datasets``, or a dataset on the hub."""
    name = str(name_or_path)
    path = Path(name_or_path).expanduser()
    if name.startswith(IR_DATASETS) or path.exists():
        if revision is not None:
            raise InputError(f"only the hub has revisions; leave revision={revision!r} out")
        return open_ir_datasets(name) if name.startswith(IR_DATASETS) else open_folder(path)
    if (
        isinstance(name_or_path, Path)
        or name.startswith((".", "/", "~"))
        or name.count("/") > 1
        or "\\" in name
    ):
        raise InputError(f"there is no folder or file {name}; check the path")
    return open_hub(name, revision)


def open_folder(path: Path) -> TableSource:
    """Open a folder of flat files, or of one folder per table with a file per split.

    Parameters
    ----------
    path
        ``corpus.jsonl`` or ``corpus/test-00000-of-00001.parquet`` or ``qrels/test.tsv``
        inside a folder, or a single file of ``query``, ``positive``, ``negative`` rows.
        Parquet, JSON lines, CSV and TSV, plain or compressed.
    """
    top = _group_by_stem([path] if path.is_file() else path.iterdir())
    folders: dict[str, Splits] = {}
    for folder in sorted(path.iterdir()) if path.is_dir() else []:
        if folder.is_dir() and (splits := _group_by_stem(folder.iterdir())):
            # A repository with one table keeps it in `data`; the hub calls it `default`.
            folders["default" if folder.name == "data" else folder.name] = splits
    if any(name.endswith("corpus") for name in [*top, *folders]):
        if twice := sorted(top.keys() & folders.keys()):
            raise InputError(
                f"{path} contains both a file and a folder called {twice[0]!r}; remove one"
            )
        tables = {stem: {"": files} for stem, files in top.items()} | folders
    else:
        tables = folders | ({"default": top} if top else {})

    def read(table: str, split: str) -> pl.DataFrame:
        shards = [table_from_file(file, kind) for file, kind in tables[table][split]]
        try:
            return pl.concat(shards, how="diagonal")
        except pl.exceptions.PolarsError:  # a column has different types in two shards
            names = dict.fromkeys(name for shard in shards for name in shard.columns)
            rows = [row for shard in shards for row in shard.iter_rows(named=True)]
            return pl.DataFrame([column_of(n, [row.get(n) for row in rows]) for n in names])

    return TableSource(str(path), sorted(tables), lambda table: sorted(tables[table]), read)


def _group_by_stem(paths: Iterable[Path]) -> Splits:
    """Group data files by the name before shard number and extension, shards in order."""
    groups: Splits = defaultdict(list)
    expected: dict[str, int] = {}
    for path in sorted(paths):
        match = _FILE_NAME.fullmatch(path.name)
        if match is not None and path.is_file():
            groups[match["stem"]].append((path, _FORMATS[match["format"]]))
            expected[match["stem"]] = int(match["shards"] or 1)
    for stem, shards in groups.items():
        if len(shards) != expected[stem]:
            names = ", ".join(shard.name for shard, _ in shards)
            raise InputError(
                f"{shards[0][0].parent} should contain {expected[stem]} file(s) of {stem!r}, but "
                f"contains {names}; add missing files or remove duplicates"
            )
    return dict(groups)


def open_hub(name: str, revision: str | None) -> TableSource:
    """Open a hub dataset; without a connection, open its downloaded copy.

    Without a connection, ``datasets`` itself would list no configs and use any cached revision.
    """
    hub = require("huggingface_hub", _PURPOSE)
    at = f" at revision {revision!r}" if revision else ""
    try:
        info = hub.HfApi().dataset_info(name, revision=revision, timeout=_TIMEOUT)
    except (hub.errors.RepositoryNotFoundError, hub.errors.RevisionNotFoundError) as error:
        raise InputError(
            f"the hub has no dataset {name!r}{at}, and no local folder has that name; check the "
            "spelling, or log in with `hf auth login` if it is private or gated"
        ) from error
    except Exception as error:  # errors of several HTTP libraries
        with _explain_errors(f"{name}{at}", error):
            copy = hub.snapshot_download(
                name, repo_type="dataset", revision=revision, local_files_only=True
            )
        return replace(open_folder(Path(copy)), location=name, revision=Path(copy).name)
    return open_configs(name, revision, info.sha)


def open_configs(name: str, revision: str | None, commit: str | None = None) -> TableSource:
    """Open the configs of a hub dataset as tables.

    Parameters
    ----------
    name
        ``owner/name`` on the hub.
    revision
        Branch, tag or commit to read. It is passed on unchanged: if a branch were replaced by its
        commit, the download could not be found by the name of the branch.
    commit
        The commit of ``revision``, if known.
    """
    library = require("datasets", _PURPOSE)

    def read(table: str, split: str) -> pl.DataFrame:
        with _explain_errors(name):
            data = library.load_dataset(name, table, revision=revision, split=split)
        known = [column for column in data.column_names if is_known(column)]
        return with_names(data.select_columns(known).to_polars(), data.column_names)

    def list_splits(table: str) -> list[str]:
        with _explain_errors(name):
            return list(library.get_dataset_split_names(name, table, revision=revision))

    with _explain_errors(name):
        tables = library.get_dataset_config_names(name, revision=revision)
    return TableSource(name, tables, list_splits, read, commit or revision)


@contextmanager
def _explain_errors(name: str, cause: Exception | None = None) -> Iterator[None]:
    """Turn any error of a library that reads the hub into an InputError with advice.

    If `cause` is given, the message contains it instead of the error.
    """
    try:
        yield
    except Exception as own:  # errors of the network or the files, from several libraries
        error = cause or own
        reason = re.split(r"\.?\n|\. ", str(error))[0] or type(error).__name__
        raise InputError(
            f"dataset {name} could not be read from the hub ({reason}), and no local folder has "
            "that name; check the connection, or download it elsewhere and give its folder"
        ) from error


def open_ir_datasets(name: str) -> TableSource:
    """Open an ``ir_datasets`` dataset, such as ``ir_datasets:beir/scifact/test``.

    Candidates keep the order of the package's scored documents.
    """
    library = require("ir_datasets", f"Reading {name}")
    own = name.removeprefix(IR_DATASETS)
    try:
        data = library.load(own)
    except KeyError as error:
        raise InputError(f"ir_datasets has no dataset {own!r}; check the spelling") from error
    rows: dict[str, Callable[[], list[tuple[object, ...]]]] = {}
    if data.has_docs():
        rows["corpus"] = lambda: [(doc.doc_id, doc.default_text()) for doc in data.docs_iter()]
    if data.has_queries():
        rows["queries"] = lambda: [(q.query_id, q.default_text()) for q in data.queries_iter()]
    if data.has_qrels():
        rows["qrels"] = lambda: [(q.query_id, q.doc_id, q.relevance) for q in data.qrels_iter()]
    if data.has_scoreddocs():
        rows["top_ranked"] = lambda: [(s.query_id, s.doc_id) for s in data.scoreddocs_iter()]
    columns = {
        "qrels": ["query_id", "doc_id", "relevance"],
        "top_ranked": ["query_id", "doc_id"],
    }

    def read(table: str, split: str) -> pl.DataFrame:
        names = columns.get(table, ["id", "text"])
        types = {name: pl.Float64 if name == "relevance" else pl.String for name in names}
        frame = pl.DataFrame(rows[table](), types, orient="row")
        if table == "top_ranked":
            return frame.group_by("query_id", maintain_order=True).agg(doc_ids="doc_id")
        return frame

    return TableSource(name, list(rows), lambda table: [""], read)
