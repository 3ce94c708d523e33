"""A run in a folder of Parquet files: the same numbers, whether it fits in memory or not."""

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


def rows(seed: int, n: int = 400, queries: int = 30) -> pl.DataFrame:
    """Scored documents whose queries are mixed up, with many ties."""
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


def judgements(seed: int, queries: int = 30) -> dict[str, dict[str, int]]:
    """Judgements of most queries of the rows, in another order, and of queries without rows."""
    rng = np.random.default_rng(seed)
    judged = {
        f"q{q}": {f"d{d}": int(rng.integers(-1, 3)) for d in rng.choice(45, 12, replace=False)}
        for q in rng.permutation(queries + 4)[4:].tolist()
    }
    return judged | {"nowhere": {"d1": 1}, "irrelevant": {"d1": 0}}


def write(folder: Path, frame: pl.DataFrame, files: int) -> Path:
    """Write rows as files whose names sort in the order of the rows."""
    folder.mkdir(exist_ok=True)
    bounds = np.linspace(0, len(frame), files + 1).astype(int).tolist()
    for i, (start, stop) in enumerate(pairwise(bounds)):
        frame[start:stop].write_parquet(folder / f"part-{i:05}.parquet", row_group_size=37)
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.parquet.crc").touch()
    return folder


def in_parts(qrels, folder, measures=MEASURES, most=50, **options):
    """Evaluate with no more than so many rows in memory at a time."""
    judged = read_qrels(qrels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "PART_ROWS", most)
        return folders.evaluate_folder(
            judged, run_folder(folder), measures, EvalSettings(**options)
        )


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 999),
    files=st.integers(1, 5),
    most=st.sampled_from([1, 17, 50, 200, 1000]),
    rule=st.sampled_from(list(TIE_RULES)),
    queries=st.sampled_from(["judged", "intersection", "all"]),
    tolerance=st.sampled_from([0.0, 0.3]),
    score_dtype=st.sampled_from([None, "bf16"]),
)
def test_parts_give_what_all_in_memory_gives(
    seed, files, most, rule, queries, tolerance, score_dtype
):
    frame, qrels = rows(seed), judgements(seed)
    options = {
        "tie_break": rule,
        "tie_tolerance": tolerance,
        "queries": queries,
        "score_dtype": score_dtype,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = write(Path(name), frame, files)
        parted = in_parts(qrels, folder, most=most, **options)
    whole = quiet(dh.evaluate)(qrels, frame, MEASURES, **options)
    assert parted.query_ids == whole.query_ids
    assert parted.views == whole.views
    assert parted.remarks == whole.remarks
    assert parted.provenance.run == name
    assert parted["MAP"] == whole["MAP"]


def test_tie_groups_of_parts_are_those_of_the_whole(tmp_path):
    qrels = read_qrels(judgements(1))
    run = read_run(rows(1))
    whole = count_groups(qrels, run, EvalSettings(), with_judged=True).groups
    cuts = [0, 1, 9, 9, len(qrels.query_ids)]
    parts = [
        count_groups(qrels.part(start, stop), run, EvalSettings(), with_judged=True).groups
        for start, stop in pairwise(cuts)
    ]
    together = TieGroups.concat(parts)
    for name, array in vars(whole).items():
        if isinstance(array, np.ndarray):
            np.testing.assert_array_equal(array, getattr(together, name), err_msg=name)
    assert together.top_grade == whole.top_grade


def test_the_order_of_rows_is_that_of_file_names(tmp_path):
    """The first file by name holds the relevant document, though it was written last."""
    for name, doc in (("b/part.parquet", "d2"), ("a/part-10.parquet", "d1"), ("c.parquet", "d3")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        row = {"qid": ["q"], "docno": [doc], "score": [0.5]}
        pl.DataFrame(row).write_parquet(tmp_path / name)
    for doc, value in (("d1", 1), ("d2", 1 / 2), ("d3", 1 / 3)):
        assert dh.evaluate({"q": {doc: 1}}, tmp_path, "MRR")["MRR"].oblivious == value
        parted = in_parts({"q": {doc: 1}}, tmp_path, dh.measures.parse_measures("MRR"), most=1)
        assert parted["MRR"].oblivious == value
    assert read_run(tmp_path).documents.ids(np.arange(3)).to_list() == ["d1", "d2", "d3"]


def test_types_of_scores_and_names_of_columns_may_differ_between_files(tmp_path):
    one = pl.DataFrame({"query_id": [1, 1], "doc_id": [7, 8], "score": [0.1, 0.2]})
    two = pl.DataFrame({"Topic": ["1"], "pid": ["9"], "sim": pl.Series([0.1], dtype=pl.Float32)})
    one.write_parquet(tmp_path / "1.parquet")
    two.write_parquet(tmp_path / "2.parquet")
    # The float32 nearest to 0.1 is above 0.1: no tie.
    for result in (
        dh.evaluate({"1": {"9": 1}}, tmp_path, "MRR"),
        in_parts({"1": {"9": 1}}, tmp_path, dh.measures.parse_measures("MRR"), most=1),
    ):
        assert result["MRR"].expected == 0.5
        assert result["MRR"].range == 0


def test_whole_numbers_beyond_float64_are_told_apart(tmp_path):
    frame = pl.DataFrame(
        {"query": ["a", "b", "a"], "doc": ["x", "x", "y"], "score": [2**60, 1, 2**60 + 1]}
    )
    folder = write(tmp_path / "run", frame, 2)
    parted = in_parts(
        {"a": {"x": 1}, "b": {"x": 1}}, folder, dh.measures.parse_measures("MRR"), most=1
    )
    assert parted.views[dh.MRR].expected.tolist() == [0.5, 1.0]


def test_what_does_not_fit_in_memory_is_evaluated_in_parts(tmp_path, monkeypatch):
    folder = write(tmp_path / "run", rows(3), 3)
    monkeypatch.setattr(folders, "PART_ROWS", 60)
    monkeypatch.setattr(type(run_folder(folder)), "whole", None)
    parted = quiet(dh.evaluate)(judgements(3), folder, MEASURES)
    assert parted.views == quiet(dh.evaluate)(judgements(3), rows(3), MEASURES).views


@pytest.mark.parametrize("judged", [1, 30])
def test_parts_are_as_small_as_asked_however_few_queries_are_judged(tmp_path, monkeypatch, judged):
    frame = rows(4, n=1000, queries=60)
    longest = int(frame["query_id"].value_counts()["count"].max())
    folder = write(tmp_path / "run", frame, 3)
    sizes = []
    select = RunFolder.select
    monkeypatch.setattr(
        RunFolder, "select", lambda self, queries: recorded(select(self, queries), sizes)
    )
    in_parts({f"q{q}": {"d1": 1} for q in range(judged)}, folder, most=100)
    assert sum(sizes) == 1000
    assert max(sizes) <= 100 + longest


def recorded(run, sizes):
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
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no peak memory to be read")
def test_memory_does_not_grow_with_the_run(tmp_path):
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
    grown = [
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
    parted, whole = grown  # megabytes, of a run of five times the size
    assert whole > 50
    assert parted < whole / 3


@pytest.fixture
def damaged(tmp_path):
    """Give a folder of three files, one of which a test makes wrong."""
    folder = write(tmp_path / "run", rows(5), 3)

    def change(**columns):
        path = folder / "part-00001.parquet"
        pl.read_parquet(path).with_columns(**columns).write_parquet(path, row_group_size=37)
        return folder

    return change


def refusals(folder, **options):
    """What is said of a folder, all in memory and in parts."""
    said = []
    for most in (1000, 50):
        with pytest.raises(dh.InputError) as error:
            in_parts(judgements(5), folder, most=most, **options)
        said.append(str(error.value))
    return said


def test_a_document_in_two_files_is_refused_with_folder_query_and_document(damaged):
    folder = damaged()
    extra = pl.DataFrame({"query_id": ["q3"], "doc_id": [""], "score": [1.0], "rank": [1]})
    first = pl.read_parquet(folder / "part-00000.parquet").filter(query_id="q3")[0]
    extra = first.with_columns(score=pl.lit(9.0))
    extra.write_parquet(folder / "part-00009.parquet")
    for said in refusals(folder):
        assert f"{folder}: query 'q3'" in said
        assert f"lists document {first['doc_id'][0]!r} more than once" in said


def test_a_document_twice_in_a_query_without_judgements_is_refused_too(damaged):
    folder = damaged()
    for name in "xy":
        twice = pl.DataFrame({"query_id": ["other"], "doc_id": ["d"], "score": [1.0], "rank": [1]})
        twice.write_parquet(folder / f"{name}.parquet")
    for said in refusals(folder):
        assert f"{folder}: query 'other' lists document 'd'" in said


def test_nan_is_refused_with_folder_query_and_document(damaged):
    at = pl.int_range(pl.len()) == 100
    folder = damaged(score=pl.when(at).then(float("nan")).otherwise("score"))
    row = pl.read_parquet(folder / "part-00001.parquet").row(100, named=True)
    for said in refusals(folder):
        assert f"{folder}: query {row['query_id']!r}, document" in said
        assert f"document {row['doc_id']!r}: the score is NaN" in said
    last = in_parts(judgements(5), folder, nan="last")
    frame = pl.concat(map(pl.read_parquet, sorted(folder.glob("part*"))))
    assert last.views == quiet(dh.evaluate)(judgements(5), frame, MEASURES, nan="last").views


def test_a_missing_column_is_refused_with_its_file(damaged):
    folder = damaged()
    path = folder / "part-00001.parquet"
    pl.read_parquet(path).drop("doc_id").write_parquet(path)
    for said in refusals(folder):
        assert said.startswith(f"{path}: there is no column 'doc_id'")


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("query_id", None, "the query_id of row {} is empty"),
        ("doc_id", "", "the doc_id of row {} is empty"),
        ("score", None, "the score of row {} (query "),
    ],
)
def test_a_row_that_lacks_something_is_named(damaged, monkeypatch, column, value, words):
    monkeypatch.setattr("deadheat.formats.folders._PIECE", 74)
    at = pl.int_range(pl.len()) == 104
    folder = damaged(**{column: pl.when(at).then(pl.lit(value)).otherwise(column)})
    in_memory, in_pieces = refusals(folder)
    assert f"part-00001.parquet: {words.format(105)}" in in_memory
    assert f"part-00001.parquet, from row 75 on: {words.format(31)}" in in_pieces


def test_types_that_cannot_be_compared_exactly_are_refused(damaged):
    folder = damaged(score=pl.col("score").cast(pl.Int64))
    for said in refusals(folder):
        assert re.search("part-00000.parquet .*Float64,", said)
        assert re.search("part-00001.parquet .*Int64", said)


def test_a_damaged_file_is_refused_by_name(damaged):
    folder = damaged()
    path = folder / "part-00002.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    for said in refusals(folder):
        assert f"{path}: cannot be read as Parquet: " in said


def test_a_folder_of_other_files_is_refused(tmp_path):
    with pytest.raises(dh.InputError, match=r"folder.*no Parquet file .*\.parquet"):
        dh.evaluate({"q": {"d": 1}}, tmp_path, "MRR")
    (tmp_path / "bm25.run").write_text("q Q0 d 1 1.0 tag\n")
    with pytest.raises(dh.InputError, match=r"folder.*\.parquet.*'bm25\.run'"):
        dh.evaluate({"q": {"d": 1}}, tmp_path, "MRR")


def test_files_without_rows_are_no_run(tmp_path):
    folder = write(tmp_path / "run", rows(5)[:0], 2)
    for said in refusals(folder):
        assert "there are no scored documents in it" in said


def test_a_run_of_other_queries_is_refused_in_parts_too(tmp_path):
    frame = rows(5).with_columns(query_id="x" + pl.col("query_id"))
    for said in refusals(write(tmp_path / "run", frame, 2)):
        assert "no query of the run is judged" in said
        assert "'xq" in said


@pytest.mark.parametrize("dtype", [pl.Int32, pl.Float64, pl.Binary, pl.Categorical])
def test_query_ids_of_any_type_are_selected_by_their_text(tmp_path, dtype):
    ids = [7, 8, 7, 9, 8] if dtype != pl.Binary else [b"7", b"8", b"7", b"9", b"8"]
    query = pl.Series(ids if dtype != pl.Categorical else list(map(str, ids))).cast(dtype)
    frame = pl.DataFrame({"query": query, "doc": list("abcde"), "score": [1.0, 2, 3, 4, 5]})
    folder = write(tmp_path / "run", frame, 2)
    names = dict.fromkeys(read_run(frame).query_ids)
    qrels = {name: {"c": 1, "e": 1} for name in names}
    measures = dh.measures.parse_measures("MRR")
    whole = quiet(dh.evaluate)(qrels, frame, measures)
    assert in_parts(qrels, folder, measures, most=2).views == whole.views


def test_the_command_line_takes_a_folder_as_a_run(tmp_path, monkeypatch):
    folder = write(tmp_path / "bf16", rows(6), 3)
    rows(6).write_parquet(tmp_path / "whole.parquet")
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, own in judgements(6).items() for d, g in own.items())
    )
    words = ["eval", str(qrels), "-m", "nDCG@5", "--format", "csv"]
    by_folder = CliRunner().invoke(main, [*words, f"run={folder}"])
    by_file = CliRunner().invoke(main, [*words, f"run={tmp_path / 'whole.parquet'}"])
    assert by_folder.exit_code == 0, by_folder.output
    assert by_folder.output == by_file.output
    short = CliRunner().invoke(main, [*words[:-2], str(folder), "--format", "markdown"])
    assert "bf16" in short.output


def test_a_leaderboard_takes_a_named_folder_as_one_run(tmp_path):
    folder = write(tmp_path / "run", rows(6), 3)
    board = quiet(dh.leaderboard)(judgements(6), {"parts": folder, "whole": rows(6)}, "nDCG@5")
    assert board.rows["expected"].n_unique() == 1
    assert set(board.rows["run"]) == {"parts", "whole"}


def test_a_leaderboard_on_the_command_line_makes_one_run_of_a_named_folder(tmp_path):
    folder = write(tmp_path / "run", rows(6), 3)
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, own in judgements(6).items() for d, g in own.items())
    )
    words = ["leaderboard", str(qrels), "-m", "nDCG@5", "--format", "csv"]
    one = CliRunner().invoke(main, [*words, f"parts={folder}"])
    assert one.exit_code == 0, one.output
    board = pl.read_csv(one.stdout.encode())
    assert board["run"].to_list() == ["parts"]


@pytest.mark.parametrize("command", ["eval", "leaderboard"])
def test_options_of_a_cluster_need_one(command, tmp_path):
    words = [command, "qrels.txt", "a.run", "--ray-address", "head:6379"]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert "add --engine ray" in refused.output


def test_runs_are_evaluated_in_the_order_given_with_progress(tmp_path):
    from deadheat.evaluation import evaluate_runs

    runs = [rows(1), write(tmp_path / "run", rows(2), 2), rows(3)]
    steps = []
    results = evaluate_runs(
        read_qrels(judgements(1)),
        runs,
        MEASURES,
        EvalSettings(),
        progress=lambda *step: steps.append(step),
    )
    assert steps == [("evaluating", n, 3) for n in (1, 2, 3)]
    for result, run in zip(results, (rows(1), rows(2), rows(3)), strict=True):
        assert result.views == quiet(dh.evaluate)(judgements(1), run, MEASURES).views
