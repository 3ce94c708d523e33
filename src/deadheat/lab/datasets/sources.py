"""Sources of datasets: named tables in a folder, on the Hugging Face hub, or in ``ir_datasets``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from deadheat._internal.lazy import pl
from deadheat._internal.packages import require
from deadheat.errors import InputError, one_line
from deadheat.formats import COMPRESSED, TABLES, is_known, table_from_file, with_names

IR_DATASETS = "ir_datasets:"
"""Prefix of the id of a dataset of the package ``ir_datasets``."""
_FORMATS = {**{name: name for name in TABLES}, "ndjson": "jsonl"}
_FILE_NAME = re.compile(
    r"(?P<stem>.+?)(?:-\d+-of-(?P<shards>\d+))?"
    rf"\.(?P<format>{'|'.join(_FORMATS)})(?:{'|'.join(map(re.escape, COMPRESSED))})?"
)
_HUB_ID = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
_PURPOSE = "Reading a dataset from the hub"


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
    if isinstance(name_or_path, Path) or not _HUB_ID.fullmatch(name):
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
    root = path.parent if path.is_file() else path
    paths = [path] if path.is_file() else sorted([*path.glob("*"), *path.glob("*/*")])
    matches = {file: match for file in paths if (match := _FILE_NAME.fullmatch(file.name))}
    files = {file: match["stem"] for file, match in matches.items() if file.is_file()}
    names = (stem if file.parent == root else file.parent.name for file, stem in files.items())
    has_corpus = any(name.endswith("corpus") for name in names)
    tables: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for file, stem in files.items():
        table, split = file.parent.name, stem
        if file.parent == root:
            table, split = (stem, "") if has_corpus else ("default", stem)
        elif table == "data":  # of a repository with one table; the hub calls it `default`
            table = "default"
        tables[table][split].append(file)
    for table, splits in tables.items():
        if "" in splits and len(splits) > 1:
            raise InputError(
                f"{path} contains both a file and a folder called {table!r}; remove one"
            )
        for shards in splits.values():
            expected = int(matches[shards[0]]["shards"] or 1)
            if len(shards) != expected:
                raise InputError(
                    f"{shards[0].parent} should contain {expected} file(s) of "
                    f"{files[shards[0]]!r}, but contains {', '.join(file.name for file in shards)};"
                    " add missing files or remove duplicates"
                )

    def read(table: str, split: str) -> pl.DataFrame:
        shards = [
            table_from_file(file, _FORMATS[matches[file]["format"]])
            for file in tables[table][split]
        ]
        try:
            return pl.concat(shards, how="diagonal_relaxed")
        except pl.exceptions.PolarsError as error:
            raise InputError(
                f"{path}, {table}: its files have columns of different types ({one_line(error)}); "
                "give each column one type"
            ) from error

    return TableSource(str(path), sorted(tables), lambda table: sorted(tables[table]), read)


def open_hub(name: str, revision: str | None) -> TableSource:
    """Open a hub dataset; without a connection, open its downloaded copy.

    Without a connection, ``datasets`` itself would list no configs and use any cached revision.
    """
    hub = require("huggingface_hub", _PURPOSE)
    try:
        info = hub.HfApi().dataset_info(name, revision=revision, timeout=30.0)
    except Exception as error:  # errors of several HTTP libraries
        place = f"{name} at revision {revision!r}" if revision else name
        with _explain_errors(place, error):
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
        raise InputError(
            f"dataset {name} could not be read from the hub ({one_line(error)}), and no local "
            "folder has that name; check the spelling, the connection and, for a private or gated "
            "dataset, `hf auth login`, or download it elsewhere and give its folder"
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
    exists = {
        "corpus": data.has_docs(),
        "queries": data.has_queries(),
        "qrels": data.has_qrels(),
        "top_ranked": data.has_scoreddocs(),
    }

    def read(table: str, split: str) -> pl.DataFrame:
        if table == "qrels":
            grades = [(q.query_id, q.doc_id, q.relevance) for q in data.qrels_iter()]
            return pl.DataFrame(grades, ["query_id", "doc_id", "relevance"], orient="row")
        if table == "top_ranked":
            pairs = [(scored.query_id, scored.doc_id) for scored in data.scoreddocs_iter()]
            frame = pl.DataFrame(pairs, ["query_id", "doc_ids"], orient="row")
            return frame.group_by("query_id", maintain_order=True).agg("doc_ids")
        items = data.docs_iter() if table == "corpus" else data.queries_iter()
        texts = [(item[0], item.default_text()) for item in items]
        return pl.DataFrame(texts, ["id", "text"], orient="row")

    tables = [table for table, is_given in exists.items() if is_given]
    return TableSource(name, tables, lambda table: [""], read)
