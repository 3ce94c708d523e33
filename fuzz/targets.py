"""Fuzz targets: one function of bytes per reader, which returns or raises an InputError.

Parquet is not fuzzed: polars reads it, and may abort the process on a damaged file (SECURITY.md).

A target fails on any other exception, on a warning that is not deadheat's, on an error that does
not name its file, and on an impossible number, such as a measure outside its bounds.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

import deadheat as dh
from deadheat.cli.help import parse_numbers
from deadheat.cli.pages import group_results
from deadheat.comparison.leaderboard import read_published
from deadheat.evaluation import Result, evaluate_run, read_results
from deadheat.formats import trec
from deadheat.formats.frames import table_columns
from deadheat.formats.lines import run_from_lines
from deadheat.lab.datasets import load_dataset
from deadheat.lab.experiment.folder import Manifest
from deadheat.lab.experiment.study import read_study
from deadheat.measures.parse import parse_measures
from deadheat.report.page import render_page

QRELS = {"q": {"d": 1, "e": 2}, "q1": {"d1": 1}}
RUN = {"q": {"d": 0.5, "e": 0.5, "f": 1}, "q1": {"d1": 1, "d2": 1}}
MEASURES = ["nDCG@3", "MRR", "MAP(rel=2)", "Recall@1"]


@cache
def _work_folder() -> Path:
    """Return a folder, in memory if possible, because a million files are written to it."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))


def _write_file(name: str, data: bytes) -> Path:
    path = _work_folder() / name
    path.write_bytes(data)
    return path


def _read_or_reject(path: Path, read: Callable[[Path], object]) -> object | None:
    """Read a file; return None if it is rejected with a message that names it."""
    try:
        return read(path)
    except dh.InputError as error:
        if path.name not in str(error):
            raise RuntimeError(f"the message does not name the file: {error}") from error
        return None


def _evaluate(qrels: object, run: object) -> None:
    """Evaluate accepted input, and check the bounds of the values."""
    try:
        result = evaluate_run(dh.read_qrels(qrels), dh.read_run(run), parse_measures(MEASURES))
    except dh.InputError:
        return
    for views in result.views.values():
        values = [views.worst, views.oblivious, views.expected, views.best]
        if not np.isfinite(values).all() or np.min(values) < 0 or np.max(values) > 1 + 1e-12:
            raise RuntimeError(f"{values} are out of bounds")
        if (views.worst > views.best + 1e-12).any():
            raise RuntimeError(f"worst {views.worst} is above best {views.best}")
    Result.from_json(result.to_json())


def _make_reader_check(ending: str) -> Callable[[bytes], None]:
    """Return a check that reads bytes as judgements and as a run with and without ranks."""

    def target(data: bytes) -> None:
        path = _write_file(f"input.{ending}", data)
        if (run := _read_or_reject(path, dh.read_run)) is not None:
            _evaluate(QRELS, run)
        if (qrels := _read_or_reject(path, dh.read_qrels)) is not None:
            _evaluate(qrels, RUN)
        if ending == "run":
            _read_or_reject(path, lambda path: dh.read_run(path, with_ranks=True))

    return target


def _check_lines(data: bytes) -> None:
    """Compare the compiled reader with the Python reader, where the former accepts the input."""
    try:
        run = run_from_lines("input", data, trec.RUN_FIELDS)
    except dh.InputError as error:
        if "more than once" not in str(error):
            raise RuntimeError(f"only the compiled reader rejects: {error}") from error
        return
    if run is None:
        return
    keep = ("query_id", "doc_id", "score")
    frame = trec.read_lines("input", data, trec.RUN_FIELDS, "score", keep)
    python = table_columns("input", frame, "score").to_run("input")
    rows = np.arange(len(run.scores))
    if (
        run.query_ids != python.query_ids
        or run.scores.tobytes() != python.scores.tobytes()
        or run.documents.ids(rows).to_list() != python.documents.ids(rows).to_list()
    ):
        raise RuntimeError(f"{run} is not {python}")


def _check_measures(data: bytes) -> None:
    text = data.decode(errors="replace")
    try:
        measures = parse_measures([text])
    except dh.InputError:
        return
    if parse_measures(list(map(repr, measures))) != measures:
        raise RuntimeError(f"{measures} cannot be read back")


def _check_cutoffs(data: bytes) -> None:
    try:
        parse_numbers(None, click.Option(["-k"]), data.decode(errors="replace"))
    except dh.InputError:
        return


def _check_results(data: bytes) -> None:
    """Read stored results; write accepted results as tables, and some of them as a page."""
    results: Any = _read_or_reject(_write_file("result.json", data), read_results) or []
    for result in results:
        again = Result.from_json(result.to_json())
        if again.to_json() != result.to_json():
            raise RuntimeError("the result cannot be read back")
        numbers = [*result.flat().values(), *_all_values(result)]
        if not np.isfinite(numbers).all():
            raise RuntimeError("a number of the result is not finite")
        str(result), result.warnings, result.notes, result.to_csv(per_query=True)
    if results and zlib.crc32(data) % 16 == 0 and find_spec("jinja2") is not None:  # it is slow
        try:
            render_page(group_results(results))
        except dh.InputError:  # results that cannot be combined
            return


def _all_values(result: Result) -> list[float]:
    """Return the values of all views of all queries."""
    views = result.per_query.select("expected", "best", "worst", "range", "oblivious", "bias")
    stds = result.per_query["std"].drop_nulls().to_list()
    return [*views.to_numpy().ravel().tolist(), *stds]


def _check_result_fields(data: bytes) -> None:
    """Replace fields of a valid result; the input alternates lines of paths and JSON values."""
    stored = json.loads(_example_result())
    lines = data.decode(errors="replace").split("\n")
    for path, text in zip(lines[::2], lines[1::2], strict=False):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        *folders, name = path.split("/")
        place: Any = stored
        try:
            for folder in folders:
                place = place[int(folder) if isinstance(place, list) else folder]
            place[int(name) if isinstance(place, list) else name] = value
        except (LookupError, TypeError, ValueError):  # the result has no such place
            continue
    _check_results(json.dumps(stored).encode())


def _check_manifest(data: bytes) -> None:
    try:
        record = Manifest.from_dict(json.loads(data))
    except (dh.InputError, ValueError, RecursionError):  # invalid JSON is rejected before
        return
    if Manifest.from_dict(record.to_dict()) != record:
        raise RuntimeError("the manifest cannot be read back")


def _check_study(data: bytes) -> None:
    _read_or_reject(_write_file("study.toml", data), read_study)


def _check_published(data: bytes) -> None:
    """Read a published board; compare accepted boards with runs of the same names."""
    path = _write_file("board.jsonl" if data.startswith(b"{") else "board.csv", data)
    board = _read_or_reject(path, read_published)
    if board is None:
        return
    for column in board.columns:  # type: ignore[attr-defined]
        values, units = column.numbers.drop_nulls()["published", "unit"].to_numpy().T
        if not (np.isfinite(values) & (units > 0) & np.isfinite(units)).all():
            raise RuntimeError(f"{values}, {units} are invalid published numbers")
    runs = dict.fromkeys(board.names[:2], RUN)  # type: ignore[attr-defined]
    with contextlib.suppress(dh.InputError):
        _render_board(dh.leaderboard(QRELS, runs, published=path, workers=1))


def _check_rounds(data: bytes) -> None:
    """Read a manifest of leaderboards, and build its boards."""
    folder = _work_folder() / "rounds"
    if not folder.exists():
        (folder / "runs").mkdir(parents=True)
        (folder / "qrels.json").write_text(json.dumps(QRELS))
        (folder / "runs" / "a.json").write_text(json.dumps(RUN))
        (folder / "board.csv").write_text("run,MRR,other\na,0.5,0.5\n")
    boards = _read_or_reject(_write_file("rounds/rounds.toml", data), _build_leaderboards)
    for board in boards or ():  # type: ignore[attr-defined]
        _render_board(board)


def _build_leaderboards(path: Path) -> object:
    return dh.comparison.leaderboards(path, workers=1)


def _render_board(board: dh.Leaderboard) -> None:
    json.dumps(board.to_dict(), allow_nan=False)
    str(board)


def _check_dataset(data: bytes) -> None:
    """Split the bytes into the files of a dataset, and load it."""
    folder = _work_folder() / "dataset"
    folder.mkdir(exist_ok=True)
    names = ("corpus.jsonl", "queries.jsonl", "qrels.tsv", "top_ranked.jsonl")
    parts = (data + b"\n====\n" * (len(names) - 1)).split(b"\n====\n")
    for name, part in zip(names, parts, strict=False):
        (folder / name).write_bytes(part)
    for candidates in ("given", "full"):
        try:
            load_dataset(folder, candidates=candidates)  # type: ignore[arg-type]
        except dh.InputError as error:
            if "dataset" not in str(error):
                raise RuntimeError(f"the message does not name the folder: {error}") from error


def _check_stored_corpus(part: bytes, ids: bytes | None) -> None:
    """Read embeddings and ids as shards of a corpus, and evaluate accepted shards."""
    folder = _work_folder() / "stored"
    folder.mkdir(exist_ok=True)
    (folder / "part.safetensors").write_bytes(part)
    (folder / "part.ids.txt").unlink(missing_ok=True)
    if ids is not None:
        (folder / "part.ids.txt").write_bytes(ids)
    try:
        for shard in dh.evaluation.stored_shards(folder, chunk=2):
            read = list(shard())
    except dh.InputError as error:
        if "part." not in str(error):
            raise RuntimeError(f"the message does not name the file: {error}") from error
        return
    width = read[0][1].shape[1] if read else 1
    queries = np.ones((1, width), read[0][1].dtype if read else np.float32)
    bits = "hamming" if queries.dtype == np.bool_ else "dot"
    try:
        dh.evaluate_corpus({"q": {"0": 1}}, (["q"], queries), [shard], ["MRR"], similarity=bits)
    except dh.InputError:
        return


def _check_safetensors(data: bytes) -> None:
    """Read bytes as a file, once as given and once with a valid header length."""
    _check_stored_corpus(data, None)
    header = data[8 : data.rfind(b"}") + 1]
    _check_stored_corpus(len(header).to_bytes(8, "little") + header + bytes(36), None)


def _check_ids(data: bytes) -> None:
    _check_stored_corpus(_build_safetensors(np.eye(3, dtype=np.float32)), data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "trec": _make_reader_check("run"),
    "lines": _check_lines,
    "csv": _make_reader_check("csv"),
    "tsv": _make_reader_check("tsv"),
    "json": _make_reader_check("json"),
    "jsonl": _make_reader_check("jsonl"),
    "compressed": _make_reader_check("gz"),
    "measures": _check_measures,
    "cutoffs": _check_cutoffs,
    "result": _check_results,
    "result_fields": _check_result_fields,
    "manifest": _check_manifest,
    "study": _check_study,
    "published": _check_published,
    "rounds": _check_rounds,
    "dataset": _check_dataset,
    "safetensors": _check_safetensors,
    "ids": _check_ids,
}


def check(name: str, data: bytes) -> None:
    """Run a target on bytes; warnings other than deadheat's are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dh.DeadheatWarning)
        TARGETS[name](data)


def seeds(name: str) -> list[bytes]:
    """Return valid inputs of a target, from which a fuzzer starts."""
    run = b"q Q0 d 1 0.5 t\nq Q0 e 2 0.5 t\nq1 Q0 d1 1 1e-3 t\n"
    qrels = b"q 0 d 1\nq 0 e 2\nq1 0 d1 1\n"
    rows = [{"query_id": "q", "doc_id": "d", "score": 0.5, "relevance": 1}]
    rows.append({"query_id": "q", "doc_id": "e", "score": 0.5, "relevance": 0})
    lines = "\n".join(map(json.dumps, rows)).encode()
    hits = [{"_id": "d", "_score": 0.5}, {"id": "e", "relevance": 1}, ["f", 0.5]]
    result = _example_result()
    return {
        "trec": lambda: [
            run,
            qrels,
            run.replace(b" ", b"\t"),
            b"# a\n" + run,
            b"\xef\xbb\xbf" + run,
        ],
        "lines": lambda: [run, run.replace(b" ", b" \t"), b"#\n\n" + run.replace(b"\n", b"\r\n")],
        "csv": lambda: [_build_table(b",")],
        "tsv": lambda: [_build_table(b"\t"), b"query-id\tcorpus-id\tscore\nq\td\t1\n"],
        "json": lambda: [
            json.dumps(RUN).encode(),
            json.dumps(QRELS, indent=1).encode(),
            json.dumps({"q": hits}).encode(),
        ],
        "jsonl": lambda: [lines, json.dumps({"query_id": "q", "hits": hits}).encode()],
        "compressed": lambda: _compress(run),
        "measures": lambda: [
            b"nDCG@5,10",
            b"ndcg_cut_10",
            b"RBP(p=0.95)@10",
            b"AP(rel=2)@3",
            b"MRR",
        ],
        "cutoffs": lambda: [b"1..10,20", b"5"],
        "result": lambda: [result.encode(), f"[{result}]".encode()],
        "result_fields": lambda: [
            f"{path}\n{value}".encode()
            for path in (
                *(f"per_query/MRR/{view}" for view in ("expected", "best", "variance/0")),
                *(f"per_query/nDCG@3/{view}/1" for view in ("worst", "oblivious", "variance")),
                *("per_query/query_id", "per_query/query_id/0", "remarks", "remarks/0/values"),
                *("provenance/tie_tolerance", "provenance/queries", "provenance/label"),
            )
            for value in ("-1", "[0.5, 0.5]", "1e400", "1" + 400 * "0", "true", "null", '"\\ud800"')
        ],
        "manifest": lambda: [_example_manifest()],
        "study": lambda: [b'models = ["a/b", {name = "c"}]\ndatasets = ["d"]\nbatch_size = 8\n'],
        "published": lambda: [
            b"tag,team,ndcg@3,MRR\na,x,0.5,78.1%\nb,y,-,0.25\n",
            b"rank,run,RBP(gain='linear'),P@1\n1,a,1.25,1e-1\n2,b,0.5,100\n",
            b'{"run": "a", "MAP": 0.5, "team": "x"}\n{"run": "b", "MAP": "0.25", "team": null}\n',
        ],
        "rounds": lambda: [
            b'[[board]]\nname = "one"\nqrels = "qrels.json"\nruns = ["runs", "runs/*.json"]\n'
            b'published = "board.csv"\ncolumns = { other = "MAP" }\n'
            b'[[board]]\nqrels = "qrels.json"\nruns = "runs/a.json"\nmeasures = ["MRR", "P@1"]\n',
        ],
        "dataset": lambda: [
            b'{"_id": "d", "text": "x", "title": ""}\n{"_id": "e", "text": "y"}\n====\n'
            b'{"_id": "q", "text": "z"}\n====\nquery-id\tcorpus-id\tscore\nq\td\t1\n====\n'
            b'{"query-id": "q", "corpus-ids": ["d", "e"]}\n'
        ],
        "safetensors": lambda: [
            _build_safetensors(np.eye(3, dtype=dtype))
            for dtype in (np.float32, np.float16, np.int8)
        ],
        "ids": lambda: [b"a\nb\nc\n", b"\xef\xbb\xbfa\r\nb\r\nc", "ä\n文\n0\n".encode()],
    }[name]()


@cache
def _example_result() -> str:
    result = evaluate_run(dh.read_qrels(QRELS), dh.read_run(RUN), parse_measures(MEASURES))
    return result.to_json()


def _build_safetensors(vectors: np.ndarray) -> bytes:
    names = {"float32": "F32", "float16": "F16", "int8": "I8"}
    entry = {"dtype": names[str(vectors.dtype)], "shape": vectors.shape}
    header = json.dumps({"embeddings": {**entry, "data_offsets": [0, vectors.nbytes]}}).encode()
    return len(header).to_bytes(8, "little") + header + vectors.tobytes()


def _build_table(separator: bytes) -> bytes:
    rows = [b"query_id doc_id score relevance", b"q d 0.5 1", b"q e 0.5 0", b"q1 d1 1e3 1", b""]
    return b"\n".join(rows).replace(b" ", separator)


def _compress(data: bytes) -> list[bytes]:
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


def _example_manifest() -> bytes:
    from deadheat.provenance import DatasetProvenance, InputFacts, ModelProvenance

    model = ModelProvenance("m", "r", "bi-encoder", "bf16", "cpu", 4, 8, "eager", False)
    dataset = DatasetProvenance("d", queries=1)
    inputs = {"queries": InputFacts(4, 1, {"0": 2})}
    manifest = Manifest({"a": "b"}, model, "dot", "torch", 1, dataset, "d-12345678", inputs)
    return json.dumps(manifest.to_dict()).encode()
