"""Runs in folders of Parquet files, evaluated in memory and in parts."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from quiet import quiet

import deadheat as dh
from deadheat.cli import main
from deadheat.evaluation import folders
from deadheat.formats import read_qrels, read_run
from deadheat.formats.folders import RunFolder, run_folder
from deadheat.settings import TIE_RULES, EvalSettings
from deadheat.ties import TieGroups
from deadheat.ties.groups import count_groups

MEASURES = dh.measures.parse_measures(
    ["nDCG@5", "MRR", "MAP", "Recall@3", "bpref", "ERR@5", "RBP", "F1@4"]
)


def make_rows(seed: int, n: int = 400, queries: int = 30) -> pl.DataFrame:
    """Return scored documents with interleaved queries and many ties."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(queries * 40, n, replace=False)
    return pl.DataFrame(
        {
            "query_id": [f"q{p % queries}" for p in pairs.tolist()],
            "doc_id": [f"d{p // queries}" for p in pairs.tolist()],
            "score": rng.integers(0, 6, n) / 4,
            "rank": rng.permutation(n),
        }
    )


def make_qrels(seed: int, queries: int = 30) -> dict[str, dict[str, int]]:
    """Return judgements of nearly all queries, in another order, and of queries without rows."""
    rng = np.random.default_rng(seed)
    judged = {
        f"q{q}": {f"d{d}": int(rng.integers(-1, 3)) for d in rng.choice(45, 12, replace=False)}
        for q in rng.permutation(queries + 4)[4:].tolist()
    }
    return judged | {"nowhere": {"d1": 1}, "irrelevant": {"d1": 0}}


def write_parts(folder: Path, frame: pl.DataFrame, files: int) -> Path:
    """Split rows into files whose names sort in the order of the rows."""
    folder.mkdir(exist_ok=True)
    bounds = np.linspace(0, len(frame), files + 1).astype(int).tolist()
    for i, (start, stop) in enumerate(pairwise(bounds)):
        frame[start:stop].write_parquet(folder / f"part-{i:05}.parquet", row_group_size=37)
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.parquet.crc").touch()
    return folder


def evaluate_in_parts(qrels, folder, measures=MEASURES, max_rows=50, **options):
    """Evaluate a folder in parts of at most about `max_rows` rows."""
    judged = read_qrels(qrels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "PART_ROWS", max_rows)
        return folders.evaluate_folder(
            judged, run_folder(folder), measures, EvalSettings(**options)
        )


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 999),
    files=st.integers(1, 5),
    max_rows=st.sampled_from([1, 17, 50, 200, 1000]),
    rule=st.sampled_from(list(TIE_RULES)),
    queries=st.sampled_from(["judged", "intersection", "all"]),
    tolerance=st.sampled_from([0.0, 0.3]),
    score_dtype=st.sampled_from([None, "bf16"]),
)
def test_evaluation_in_parts_equals_evaluation_in_memory(
    seed, files, max_rows, rule, queries, tolerance, score_dtype
):
    frame, qrels = make_rows(seed), make_qrels(seed)
    options = {
        "tie_break": rule,
        "tie_tolerance": tolerance,
        "queries": queries,
        "score_dtype": score_dtype,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = write_parts(Path(name), frame, files)
        from_parts = evaluate_in_parts(qrels, folder, max_rows=max_rows, **options)
    whole = quiet(dh.evaluate)(qrels, frame, MEASURES, **options)
    assert from_parts.query_ids == whole.query_ids
    assert from_parts.views == whole.views
    assert from_parts.remarks == whole.remarks
    assert from_parts.provenance.run == name
    assert from_parts["MAP"] == whole["MAP"]


def test_concat_of_partial_tie_groups_equals_all_tie_groups(tmp_path):
    qrels = read_qrels(make_qrels(1))
    run = read_run(make_rows(1))
    whole = count_groups(qrels, run, EvalSettings(), with_judged=True).groups
    cuts = [0, 1, 9, 9, len(qrels.query_ids)]
    parts = [
        count_groups(qrels.part(start, stop), run, EvalSettings(), with_judged=True).groups
        for start, stop in pairwise(cuts)
    ]
    concatenated = TieGroups.concat(parts)
    for name, array in vars(whole).items():
        if isinstance(array, np.ndarray):
            np.testing.assert_array_equal(array, getattr(concatenated, name), err_msg=name)
    assert concatenated.top_grade == whole.top_grade


def test_rows_are_in_order_of_file_names(tmp_path):
    """The relevant document is in the first file by name, which is not the first one written."""
    for name, doc in (("b/part.parquet", "d2"), ("a/part-10.parquet", "d1"), ("c.parquet", "d3")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        row = {"qid": ["q"], "docno": [doc], "score": [0.5]}
        pl.DataFrame(row).write_parquet(tmp_path / name)
    for doc, value in (("d1", 1), ("d2", 1 / 2), ("d3", 1 / 3)):
        assert dh.evaluate({"q": {doc: 1}}, tmp_path, "MRR")["MRR"].oblivious == value
        from_parts = evaluate_in_parts(
            {"q": {doc: 1}}, tmp_path, dh.measures.parse_measures("MRR"), max_rows=1
        )
        assert from_parts["MRR"].oblivious == value
    assert read_run(tmp_path).documents.ids(np.arange(3)).to_list() == ["d1", "d2", "d3"]


def test_files_may_differ_in_score_dtype_and_column_names(tmp_path):
    one = pl.DataFrame({"query_id": [1, 1], "doc_id": [7, 8], "score": [0.1, 0.2]})
    two = pl.DataFrame({"Topic": ["1"], "pid": ["9"], "sim": pl.Series([0.1], dtype=pl.Float32)})
    one.write_parquet(tmp_path / "1.parquet")
    two.write_parquet(tmp_path / "2.parquet")
    # 0.1 as float32 is above 0.1 as float64, so they do not tie.
    for result in (
        dh.evaluate({"1": {"9": 1}}, tmp_path, "MRR"),
        evaluate_in_parts({"1": {"9": 1}}, tmp_path, dh.measures.parse_measures("MRR"), max_rows=1),
    ):
        assert result["MRR"].expected == 0.5
        assert result["MRR"].range == 0


def test_large_integer_scores_are_compared_exactly(tmp_path):
    frame = pl.DataFrame(
        {"query": ["a", "b", "a"], "doc": ["x", "x", "y"], "score": [2**60, 1, 2**60 + 1]}
    )
    folder = write_parts(tmp_path / "run", frame, 2)
    from_parts = evaluate_in_parts(
        {"a": {"x": 1}, "b": {"x": 1}}, folder, dh.measures.parse_measures("MRR"), max_rows=1
    )
    assert from_parts.views[dh.MRR].expected.tolist() == [0.5, 1.0]


def test_large_run_is_evaluated_in_parts(tmp_path, monkeypatch):
    folder = write_parts(tmp_path / "run", make_rows(3), 3)
    monkeypatch.setattr(folders, "PART_ROWS", 60)
    monkeypatch.setattr(type(run_folder(folder)), "whole", None)
    from_parts = quiet(dh.evaluate)(make_qrels(3), folder, MEASURES)
    assert from_parts.views == quiet(dh.evaluate)(make_qrels(3), make_rows(3), MEASURES).views


@pytest.mark.parametrize("judged", [1, 30])
def test_part_size_is_limited_for_any_number_of_judged_queries(tmp_path, monkeypatch, judged):
    frame = make_rows(4, n=1000, queries=60)
    longest = int(frame["query_id"].value_counts()["count"].max())
    folder = write_parts(tmp_path / "run", frame, 3)
    sizes = []
    select = RunFolder.select
    monkeypatch.setattr(
        RunFolder, "select", lambda self, queries: record_size(select(self, queries), sizes)
    )
    evaluate_in_parts({f"q{q}": {"d1": 1} for q in range(judged)}, folder, max_rows=100)
    assert sum(sizes) == 1000
    assert max(sizes) <= 100 + longest


def record_size(run, sizes):
    sizes.append(len(run.scores))
    return run


MEMORY = """
import sys
from pathlib import Path
import deadheat as dh
from deadheat.evaluation import folders

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3

folders.PART_ROWS = 40_000
qrels = {f"query-{q}": {"document-with-a-long-name-7": 1} for q in range(50)}
dh.evaluate(qrels, sys.argv[1], ["nDCG@10", "MAP"])
before = peak()
dh.evaluate(qrels, sys.argv[2], ["nDCG@10", "MAP"])
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="there is no /proc to read peak memory from"
)
def test_peak_memory_does_not_grow_with_the_run(tmp_path):
    rng = np.random.default_rng(0)
    for name, files in (("small", 3), ("large", 15)):
        (tmp_path / name).mkdir()
        for i in range(files):
            query = pl.Series(rng.integers(0, 20 * files, 40_000)).cast(pl.String)
            doc = pl.Series(np.arange(40_000) + 40_000 * i).cast(pl.String)
            frame = pl.DataFrame(
                {
                    "query": "query-" + query,
                    "doc": "document-with-a-long-name-" + doc,
                    "score": rng.normal(size=40_000),
                }
            )
            frame.write_parquet(tmp_path / name / f"{i:03}.parquet")
    growth = [
        float(
            subprocess.run(
                [sys.executable, "-c", code, str(tmp_path / "small"), str(tmp_path / "large")],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for code in (MEMORY, MEMORY.replace("40_000", "10_000_000"))
    ]
    from_parts, whole = growth  # growth of peak memory in MB, for five times as many rows
    assert whole > 50
    assert from_parts < whole / 3


@pytest.fixture
def make_folder(tmp_path):
    """Return a function that changes columns in one of three files, and returns their folder."""
    folder = write_parts(tmp_path / "run", make_rows(5), 3)

    def change(**columns):
        path = folder / "part-00001.parquet"
        pl.read_parquet(path).with_columns(**columns).write_parquet(path, row_group_size=37)
        return folder

    return change


def error_messages(folder, **options):
    """Return the messages of errors of an evaluation in memory and of one in parts."""
    messages = []
    for max_rows in (1000, 50):
        with pytest.raises(dh.InputError) as error:
            evaluate_in_parts(make_qrels(5), folder, max_rows=max_rows, **options)
        messages.append(str(error.value))
    return messages


def test_duplicate_document_across_files_raises(make_folder):
    folder = make_folder()
    extra = pl.DataFrame({"query_id": ["q3"], "doc_id": [""], "score": [1.0], "rank": [1]})
    first = pl.read_parquet(folder / "part-00000.parquet").filter(query_id="q3")[0]
    extra = first.with_columns(score=pl.lit(9.0))
    extra.write_parquet(folder / "part-00009.parquet")
    for message in error_messages(folder):
        assert f"{folder}: query 'q3'" in message
        assert f"lists document {first['doc_id'][0]!r} more than once" in message


def test_duplicate_document_of_unjudged_query_raises(make_folder):
    folder = make_folder()
    for name in "xy":
        twice = pl.DataFrame({"query_id": ["other"], "doc_id": ["d"], "score": [1.0], "rank": [1]})
        twice.write_parquet(folder / f"{name}.parquet")
    for message in error_messages(folder):
        assert f"{folder}: query 'other' lists document 'd'" in message


def test_nan_error_names_folder_query_and_document(make_folder):
    at = pl.int_range(pl.len()) == 100
    folder = make_folder(score=pl.when(at).then(float("nan")).otherwise("score"))
    row = pl.read_parquet(folder / "part-00001.parquet").row(100, named=True)
    for message in error_messages(folder):
        assert f"{folder}: query {row['query_id']!r}, document" in message
        assert f"document {row['doc_id']!r}: the score is NaN" in message
    last = evaluate_in_parts(make_qrels(5), folder, nan="last")
    frame = pl.concat(map(pl.read_parquet, sorted(folder.glob("part*"))))
    assert last.views == quiet(dh.evaluate)(make_qrels(5), frame, MEASURES, nan="last").views


def test_missing_column_error_names_the_file(make_folder):
    folder = make_folder()
    path = folder / "part-00001.parquet"
    pl.read_parquet(path).drop("doc_id").write_parquet(path)
    for message in error_messages(folder):
        assert message.startswith(f"{path}: there is no column 'doc_id'")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("query_id", None, "the query_id of row {} is empty"),
        ("doc_id", "", "the doc_id of row {} is empty"),
        ("score", None, "the score of row {} (query "),
    ],
)
def test_error_names_the_row_with_an_empty_value(make_folder, monkeypatch, column, value, message):
    monkeypatch.setattr("deadheat.formats.folders._PIECE", 74)
    at = pl.int_range(pl.len()) == 104
    folder = make_folder(**{column: pl.when(at).then(pl.lit(value)).otherwise(column)})
    in_memory, in_pieces = error_messages(folder)
    assert f"part-00001.parquet: {message.format(105)}" in in_memory
    assert f"part-00001.parquet, from row 75 on: {message.format(31)}" in in_pieces


def test_files_with_integer_and_float_scores_raise(make_folder):
    folder = make_folder(score=pl.col("score").cast(pl.Int64))
    for message in error_messages(folder):
        assert re.search("part-00000.parquet .*Float64,", message)
        assert re.search("part-00001.parquet .*Int64", message)


def test_error_names_the_damaged_file(make_folder):
    folder = make_folder()
    path = folder / "part-00002.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    for message in error_messages(folder):
        assert f"{path}: cannot be read as Parquet: " in message


def test_folder_without_parquet_files_raises(tmp_path):
    with pytest.raises(dh.InputError, match=r"folder.*no Parquet file .*\.parquet"):
        dh.evaluate({"q": {"d": 1}}, tmp_path, "MRR")
    (tmp_path / "bm25.run").write_text("q Q0 d 1 1.0 tag\n")
    with pytest.raises(dh.InputError, match=r"folder.*\.parquet.*'bm25\.run'"):
        dh.evaluate({"q": {"d": 1}}, tmp_path, "MRR")


def test_files_without_rows_raise(tmp_path):
    folder = write_parts(tmp_path / "run", make_rows(5)[:0], 2)
    for message in error_messages(folder):
        assert "no scored documents" in message


def test_run_without_judged_queries_raises(tmp_path):
    frame = make_rows(5).with_columns(query_id="x" + pl.col("query_id"))
    for message in error_messages(write_parts(tmp_path / "run", frame, 2)):
        assert "no query of the run is judged" in message
        assert "'xq" in message


@pytest.mark.parametrize("dtype", [pl.Int32, pl.Float64, pl.Binary, pl.Categorical])
def test_query_ids_of_any_type_are_selected_as_text(tmp_path, dtype):
    ids = [7, 8, 7, 9, 8] if dtype != pl.Binary else [b"7", b"8", b"7", b"9", b"8"]
    query = pl.Series(ids if dtype != pl.Categorical else list(map(str, ids))).cast(dtype)
    frame = pl.DataFrame({"query": query, "doc": list("abcde"), "score": [1.0, 2, 3, 4, 5]})
    folder = write_parts(tmp_path / "run", frame, 2)
    names = dict.fromkeys(read_run(frame).query_ids)
    qrels = {name: {"c": 1, "e": 1} for name in names}
    measures = dh.measures.parse_measures("MRR")
    whole = quiet(dh.evaluate)(qrels, frame, measures)
    assert evaluate_in_parts(qrels, folder, measures, max_rows=2).views == whole.views


def test_cli_eval_accepts_a_folder_as_a_run(tmp_path, monkeypatch):
    folder = write_parts(tmp_path / "bf16", make_rows(6), 3)
    make_rows(6).write_parquet(tmp_path / "whole.parquet")
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, own in make_qrels(6).items() for d, g in own.items())
    )
    arguments = ["eval", str(qrels), "-m", "nDCG@5", "--format", "csv"]
    by_folder = CliRunner().invoke(main, [*arguments, f"run={folder}"])
    by_file = CliRunner().invoke(main, [*arguments, f"run={tmp_path / 'whole.parquet'}"])
    assert by_folder.exit_code == 0, by_folder.output
    assert by_folder.output == by_file.output
    short = CliRunner().invoke(main, [*arguments[:-2], str(folder), "--format", "markdown"])
    assert "bf16" in short.output


def test_leaderboard_reads_a_named_folder_as_one_run(tmp_path):
    folder = write_parts(tmp_path / "run", make_rows(6), 3)
    board = quiet(dh.leaderboard)(make_qrels(6), {"parts": folder, "whole": make_rows(6)}, "nDCG@5")
    assert board.rows["expected"].n_unique() == 1
    assert set(board.rows["run"]) == {"parts", "whole"}


def test_cli_leaderboard_reads_a_named_folder_as_one_run(tmp_path):
    folder = write_parts(tmp_path / "run", make_rows(6), 3)
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, own in make_qrels(6).items() for d, g in own.items())
    )
    arguments = ["leaderboard", str(qrels), "-m", "nDCG@5", "--format", "csv"]
    one = CliRunner().invoke(main, [*arguments, f"parts={folder}"])
    assert one.exit_code == 0, one.output
    board = pl.read_csv(one.stdout.encode())
    assert board["run"].to_list() == ["parts"]


@pytest.mark.parametrize("command", ["eval", "leaderboard"])
def test_ray_options_require_engine_ray(command, tmp_path):
    arguments = [command, "qrels.txt", "a.run", "--ray-address", "head:6379"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "add --engine ray" in result.output


def test_evaluate_runs_keeps_the_order_and_reports_progress(tmp_path):
    from deadheat.evaluation import evaluate_runs

    runs = [make_rows(1), write_parts(tmp_path / "run", make_rows(2), 2), make_rows(3)]
    steps = []
    results = evaluate_runs(
        read_qrels(make_qrels(1)),
        runs,
        MEASURES,
        EvalSettings(),
        progress=lambda *step: steps.append(step),
    )
    assert steps == [("evaluating", n, 3) for n in (1, 2, 3)]
    for result, run in zip(results, (make_rows(1), make_rows(2), make_rows(3)), strict=True):
        assert result.views == quiet(dh.evaluate)(make_qrels(1), run, MEASURES).views
