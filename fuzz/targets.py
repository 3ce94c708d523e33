"""What is fuzzed: every reader, each a function of bytes that returns or raises an InputError.

A target fails by any other exception, by a warning that is not deadheat's, by an error that does
not name its file, and by a number that no input can have: a measure outside of its bounds.
"""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import deadheat as dh
from deadheat.cli.plot import _cutoffs
from deadheat.datasets import load_dataset
from deadheat.evaluation import Result, evaluated, read_results
from deadheat.experiment.folder import Manifest
from deadheat.experiment.study import read_study
from deadheat.formats import trec
from deadheat.formats.frames import run_from_table
from deadheat.formats.lines import run_from_lines
from deadheat.measures.parse import parse_measures

QRELS = {"q": {"d": 1, "e": 2}, "q1": {"d1": 1}}
RUN = {"q": {"d": 0.5, "e": 0.5, "f": 1}, "q1": {"d1": 1, "d2": 1}}
MEASURES = ["nDCG@3", "MRR", "MAP(rel=2)", "Recall@1"]


@cache
def _folder() -> Path:
    """A folder in memory where there is one: a million files are written to it."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _named(path: Path, read: Callable[[Path], object]) -> object | None:
    """Read a file; None where it is refused by a message that names it."""
    try:
        return read(path)
    except dh.InputError as error:
        if path.name not in str(error):
            raise RuntimeError(f"the message does not name the file: {error}") from error
        return None


def _evaluate(qrels: object, run: object) -> None:
    """Evaluate what was accepted; a value lies where values of its measure lie."""
    try:
        result = evaluated(dh.read_qrels(qrels), dh.read_run(run), parse_measures(MEASURES))
    except dh.InputError:
        return
    for views in result.views.values():
        values = [views.worst, views.oblivious, views.expected, views.best]
        if not np.isfinite(values).all() or np.min(values) < 0 or np.max(values) > 1 + 1e-12:
            raise RuntimeError(f"{values} are no values of a measure")
        if (views.worst > views.best + 1e-12).any():
            raise RuntimeError(f"worst {views.worst} is above best {views.best}")
    Result.from_json(result.to_json())


def _runs_and_judgements(ending: str) -> Callable[[bytes], None]:
    """Read bytes as a file of that ending, as judgements and as a run with and without ranks."""

    def target(data: bytes) -> None:
        path = _file(f"input.{ending}", data)
        if (run := _named(path, dh.read_run)) is not None:
            _evaluate(QRELS, run)
        if (qrels := _named(path, dh.read_qrels)) is not None:
            _evaluate(qrels, RUN)
        if ending == "run":
            _named(path, lambda path: dh.read_run(path, with_ranks=True))

    return target


def _lines(data: bytes) -> None:
    """Read a run by the compiled reader; what it accepts, its twin reads alike."""
    try:
        run = run_from_lines("input", data, trec.RUN_FIELDS)
    except dh.InputError as error:
        if "more than once" not in str(error):
            raise RuntimeError(f"the reader refuses alone: {error}") from error
        return
    if run is None:
        return
    keep = ("query_id", "doc_id", "score")
    frame = trec.read_lines("input", data, trec.RUN_FIELDS, "score", keep)
    twin = run_from_table("input", frame)
    rows = np.arange(len(run.scores))
    if (
        run.query_ids != twin.query_ids
        or run.scores.tobytes() != twin.scores.tobytes()
        or run.documents.ids(rows).to_list() != twin.documents.ids(rows).to_list()
    ):
        raise RuntimeError(f"{run} is not {twin}")


def _measures(data: bytes) -> None:
    text = data.decode(errors="replace")
    try:
        measures = parse_measures([text])
    except dh.InputError:
        return
    if parse_measures(list(map(repr, measures))) != measures:
        raise RuntimeError(f"{measures} do not read what they write")


def _cutoff_list(data: bytes) -> None:
    try:
        _cutoffs(data.decode(errors="replace"))
    except dh.InputError:
        return


def _result(data: bytes) -> None:
    results = _named(_file("result.json", data), read_results)
    for result in results or ():  # type: ignore[attr-defined]
        again = Result.from_json(result.to_json())
        if again.to_json() != result.to_json():
            raise RuntimeError("a result does not read what it writes")
        str(result), result.warnings, result.notes


def _manifest(data: bytes) -> None:
    try:
        record = Manifest.from_dict(json.loads(data))
    except (dh.InputError, ValueError, RecursionError):  # not JSON: refused before
        return
    if Manifest.from_dict(record.to_dict()) != record:
        raise RuntimeError("a manifest does not read what it writes")


def _study(data: bytes) -> None:
    _named(_file("study.toml", data), read_study)


def _dataset(data: bytes) -> None:
    """Split the bytes into the files of a dataset."""
    folder = _folder() / "dataset"
    folder.mkdir(exist_ok=True)
    names = ("corpus.jsonl", "queries.jsonl", "qrels.tsv", "top_ranked.jsonl")
    parts = (data + b"\n====\n" * (len(names) - 1)).split(b"\n====\n")
    for name, part in zip(names, parts, strict=False):
        (folder / name).write_bytes(part)
    for candidates in ("given", "full"):
        try:
            load_dataset.quiet(folder, candidates=candidates)  # type: ignore[arg-type]
        except dh.InputError as error:
            if "dataset" not in str(error):
                raise RuntimeError(f"the message does not name the folder: {error}") from error


TARGETS: dict[str, Callable[[bytes], None]] = {
    "trec": _runs_and_judgements("run"),
    "lines": _lines,
    "csv": _runs_and_judgements("csv"),
    "tsv": _runs_and_judgements("tsv"),
    "json": _runs_and_judgements("json"),
    "jsonl": _runs_and_judgements("jsonl"),
    "parquet": _runs_and_judgements("parquet"),
    "compressed": _runs_and_judgements("gz"),
    "measures": _measures,
    "cutoffs": _cutoff_list,
    "result": _result,
    "manifest": _manifest,
    "study": _study,
    "dataset": _dataset,
}


def check(name: str, data: bytes) -> None:
    """Give bytes to a target; every warning but deadheat's own is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dh.DeadheatWarning)
        TARGETS[name](data)


def seeds(name: str) -> list[bytes]:
    """Give valid inputs of a target, so that a fuzzer need not invent formats."""
    run = b"q Q0 d 1 0.5 t\nq Q0 e 2 0.5 t\nq1 Q0 d1 1 1e-3 t\n"
    qrels = b"q 0 d 1\nq 0 e 2\nq1 0 d1 1\n"
    rows = [{"query_id": "q", "doc_id": "d", "score": 0.5, "relevance": 1}]
    rows.append({"query_id": "q", "doc_id": "e", "score": 0.5, "relevance": 0})
    lines = "\n".join(map(json.dumps, rows)).encode()
    result = evaluated(dh.read_qrels(QRELS), dh.read_run(RUN), parse_measures(MEASURES))
    return {
        "trec": lambda: [
            run,
            qrels,
            run.replace(b" ", b"\t"),
            b"# a\n" + run,
            b"\xef\xbb\xbf" + run,
        ],
        "lines": lambda: [run, run.replace(b" ", b" \t"), b"#\n\n" + run.replace(b"\n", b"\r\n")],
        "csv": lambda: [_table(b",")],
        "tsv": lambda: [_table(b"\t"), b"query-id\tcorpus-id\tscore\nq\td\t1\n"],
        "json": lambda: [json.dumps(RUN).encode(), json.dumps(QRELS, indent=1).encode()],
        "jsonl": lambda: [lines],
        "parquet": lambda: _parquet_files(rows),
        "compressed": lambda: _compressed(run),
        "measures": lambda: [
            b"nDCG@5,10",
            b"ndcg_cut_10",
            b"RBP(p=0.95)@10",
            b"AP(rel=2)@3",
            b"MRR",
        ],
        "cutoffs": lambda: [b"1..10,20", b"5"],
        "result": lambda: [result.to_json().encode(), f"[{result.to_json()}]".encode()],
        "manifest": lambda: [_a_manifest()],
        "study": lambda: [b'models = ["a/b", {name = "c"}]\ndatasets = ["d"]\nbatch_size = 8\n'],
        "dataset": lambda: [
            b'{"_id": "d", "text": "x", "title": ""}\n{"_id": "e", "text": "y"}\n====\n'
            b'{"_id": "q", "text": "z"}\n====\nquery-id\tcorpus-id\tscore\nq\td\t1\n====\n'
            b'{"query-id": "q", "corpus-ids": ["d", "e"]}\n'
        ],
    }[name]()


def _table(separator: bytes) -> bytes:
    rows = [b"query_id doc_id score relevance", b"q d 0.5 1", b"q e 0.5 0", b"q1 d1 1e3 1", b""]
    return b"\n".join(rows).replace(b" ", separator)


def _parquet_files(rows: list[dict[str, object]]) -> list[bytes]:
    import polars as pl

    found = []
    for compression in ("uncompressed", "snappy"):
        buffer = io.BytesIO()
        pl.DataFrame(rows).write_parquet(buffer, compression=compression)  # type: ignore[arg-type]
        found.append(buffer.getvalue())
    return found


def _compressed(data: bytes) -> list[bytes]:
    import gzip
    import lzma

    import zstandard

    return [
        gzip.compress(data, mtime=0),
        gzip.compress(data, mtime=0) * 2,
        lzma.compress(data),
        lzma.compress(data) * 2,
        zstandard.compress(data),
        zstandard.compress(data) * 2,
    ]


def _a_manifest() -> bytes:
    from deadheat.provenance import DatasetProvenance, InputFacts, ModelProvenance

    model = ModelProvenance("m", "r", "bi-encoder", "bf16", "cpu", 4, 8, "eager", False)
    dataset = DatasetProvenance("d", queries=1)
    inputs = {"queries": InputFacts(4, 1, {"0": 2})}
    manifest = Manifest({"a": "b"}, model, "dot", "torch", 1, dataset, "d-12345678", inputs)
    return json.dumps(manifest.to_dict()).encode()
