from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from dataset_folders import (
    CORPUS,
    QRELS,
    QUERIES,
    TOP_RANKED,
    write_flat,
    write_snapshot,
    write_table,
)
from hypothesis import HealthCheck, given, settings, strategies as st
from public_collections import write_cranfield, write_wikiqa

from deadheat.errors import DeadheatWarning, InputError
from deadheat.lab.datasets import RetrievalDataset, load_dataset
from deadheat.lab.datasets.sources import open_folder
from deadheat.provenance import DatasetProvenance

SHARED = Path(__file__).parents[2] / "shared" / "data"

FORMATS = ["parquet", "jsonl", "jsonl.gz", "csv", "csv.gz", "jsonl.zst", "csv.xz", "ndjson"]


ROWS = [
    {"query": "same", "positive": ["a", "b"], "negative": ["c", "a"]},
    {"query": "none", "positive": [], "negative": ["c"]},
    {"query": "same", "positive": ["d"], "negative": []},
]


def replace_fields(
    rows: list[dict[str, object]], index: int, **fields: object
) -> list[dict[str, object]]:
    return [
        row
        | {key.replace("_", "-") if key != "_id" else key: value for key, value in fields.items()}
        if number == index
        else row
        for number, row in enumerate(rows)
    ]


def check_small(dataset: RetrievalDataset) -> None:
    assert dataset.queries == {"q2": "graded", "q1": "who won, and by how much?"}
    assert list(dataset.queries) == ["q2", "q1"]
    assert dataset.corpus == {
        "d1": "Ties Two horses, one line",
        "d2": 'A "photo finish"\nof 1.0',
        "d3": "Überholt — наравне 🏁",
    }
    assert dataset.judgements == {"q1": {"d2": 1, "d1": 0}, "q2": {"d3": 2}}
    assert dataset.candidates == {"q1": ["d3", "d1", "d2"], "q2": ["d1"]}
    assert dataset.unreachable == ("q2",)
    assert dataset.left_out == {
        "queries without judgements": 1,
        "queries without a relevant document": 1,
        "repeated judgements": 1,
        "empty documents": 1,
        "empty candidates": 1,
    }


@pytest.mark.parametrize("file_format", FORMATS)
def test_flat_files(tmp_path: Path, file_format: str) -> None:
    dataset = load_dataset(write_flat(tmp_path / "small", file_format))
    check_small(dataset)
    assert (dataset.name, dataset.subset, dataset.split) == ("small", None, None)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("subset", ["", "en"])
def test_hub_snapshot(tmp_path: Path, file_format: str, subset: str) -> None:
    dataset = load_dataset(write_snapshot(tmp_path, file_format, subset, split="dev"))
    check_small(dataset)
    assert (dataset.subset, dataset.split) == (subset or None, "dev")


def test_content_hash_is_the_same_in_every_layout(tmp_path: Path) -> None:
    folders = [
        write_flat(tmp_path / "a", "csv"),
        write_flat(tmp_path / "b", "jsonl", queries=QUERIES[::-1], qrels=QRELS[::-1]),
        write_snapshot(tmp_path / "c", "parquet", "en"),
    ]
    hashes = {load_dataset(folder).content_hash for folder in folders}
    # Pinned: a change here breaks every hash that studies have stored.
    assert hashes == {"bf30e7d4e4cc34e5c2f8af949f4cd0ace0bacd4460dfa7586cffaa39f01ec690"}


@pytest.mark.parametrize("name", ["g[1]", "g*", "g?", "g{1}", "~"])
@pytest.mark.parametrize("file_format", ["parquet", "csv", "jsonl"])
def test_paths_are_not_glob_patterns(tmp_path: Path, name: str, file_format: str) -> None:
    write_flat(tmp_path / "g1", file_format, corpus=[{"_id": "d9", "text": "a neighbour"}])
    check_small(load_dataset(write_flat(tmp_path / name, file_format)))
    check_small(load_dataset(write_snapshot(tmp_path / f"{name}s", file_format, "en")))
    rows = write_table(tmp_path / "rows" / f"test{name}", ROWS, file_format)
    write_table(tmp_path / "rows" / "testg1", ROWS[:1], file_format)
    assert list(load_dataset(rows).queries) == ["q0", "q2"]


def test_quotes_in_tsv_are_literal(tmp_path: Path) -> None:
    write_flat(tmp_path, qrels=[], queries=[], corpus=[*CORPUS, {"_id": '"d6"', "text": "x"}])
    (tmp_path / "queries.tsv").write_text('_id\ttext\nq1\t"The race\nq2\t5" wide\n')
    lines = ["query-id\tcorpus-id\tscore", 'q1\t"d6"\t1', "q1\td1\t1", "q2\td1\t1"]
    (tmp_path / "qrels.tsv").write_text("\n".join(lines))
    dataset = load_dataset(tmp_path)
    assert dataset.queries == {"q1": '"The race', "q2": '5" wide'}
    assert dataset.judgements == {"q1": {'"d6"': 1, "d1": 1}, "q2": {"d1": 1}}


def test_unused_columns_may_have_any_type(tmp_path: Path) -> None:
    values = [{}, {"a": 1}, [1], "x", None]
    rows = [row | {"metadata": value} for row, value in zip(CORPUS, values, strict=True)]
    check_small(load_dataset(write_flat(tmp_path / "lines", corpus=rows)))
    images = [row | {"image": b"\x00" * 9} for row in CORPUS]
    folder = write_flat(tmp_path / "images", "parquet", corpus=images)
    check_small(load_dataset(folder))
    corpus = open_folder(folder).read("corpus", "")
    assert corpus.columns == ["_id", "title", "text", "image"]
    assert corpus["image"].null_count() == len(CORPUS)


def test_empty_texts_are_left_out_and_counted(tmp_path: Path) -> None:
    """A relevant document without text counts as not retrieved."""
    folder = write_flat(
        tmp_path,
        corpus=[{"_id": f"d{i}", "text": text} for i, text in enumerate(["a", " ", "b", ""])],
        queries=[{"_id": f"q{i}", "text": text} for i, text in enumerate(["x", "\n", "y", "z"])],
        qrels=[
            {"query-id": f"q{i}", "corpus-id": doc, "score": 1}
            for i, doc in enumerate(["d1", "d0", "d3", "d2"])
        ],
        top_ranked=[
            {"query-id": f"q{i}", "corpus-ids": docs}
            for i, docs in enumerate([["d0", "d1"], ["d0"], ["d3", "d1"], ["d2"]])
        ],
    )
    with pytest.warns(DeadheatWarning, match=r"1 query .* no candidates, .*'q2'"):
        dataset = load_dataset(folder)
    assert dataset.queries == {"q0": "x", "q3": "z"}
    assert dataset.corpus == {"d0": "a", "d2": "b"}
    assert dataset.judgements == {"q0": {"d1": 1}, "q3": {"d2": 1}}
    assert dataset.candidates == {"q0": ["d0"], "q3": ["d2"]}
    assert dataset.unreachable == ("q0",)
    assert dataset.left_out == {
        "empty queries": 1,
        "empty documents": 2,
        "empty candidates": 3,
        "queries without candidates": 1,
    }
    full = load_dataset(folder, candidates="full")
    assert (list(full.queries), list(full.corpus)) == (["q0", "q2", "q3"], ["d0", "d2"])
    assert full.left_out == {"empty queries": 1, "empty documents": 2}
    assert full.unreachable == ("q0", "q2")
    write_table(folder / "corpus", [{"_id": f"d{i}", "text": " "} for i in range(4)], "jsonl")
    with pytest.raises(InputError, match=r"nothing to evaluate .*documents with text"):
        load_dataset(folder, candidates="full")


def test_split_shards_are_joined_in_order(tmp_path: Path) -> None:
    write_flat(tmp_path, corpus=[])
    write_table(tmp_path / "corpus" / "test-00001-of-00002", CORPUS[2:], "parquet")
    write_table(tmp_path / "corpus" / "test-00000-of-00002", CORPUS[:2], "parquet")
    check_small(load_dataset(tmp_path))
    untitled = [{"_id": row["_id"], "text": row["text"]} for row in CORPUS[2:]]
    write_table(tmp_path / "corpus" / "test-00001-of-00002", untitled, "parquet")
    assert load_dataset(tmp_path).corpus["d3"] == CORPUS[2]["text"]
    mixed = [row | {"text": ["a"]} for row in CORPUS[2:]]
    write_table(tmp_path / "corpus" / "test-00001-of-00002", mixed, "parquet")
    with pytest.raises(InputError, match=r"corpus: its files have columns of different types"):
        load_dataset(tmp_path)
    (tmp_path / "corpus" / "test-00001-of-00002.parquet").unlink()
    with pytest.raises(InputError, match=r"2 file.*test-00000-of-00002\.parquet"):
        load_dataset(tmp_path)


def test_beir_folder(tmp_path: Path) -> None:
    beir = [row | {"metadata": {}} for row in CORPUS]
    write_flat(tmp_path, qrels=[], top_ranked=[], corpus=beir)
    write_table(tmp_path / "qrels" / "test", QRELS, "tsv")
    write_table(tmp_path / "qrels" / "train", QRELS[:1], "tsv")
    dataset = load_dataset(tmp_path, candidates="full")
    assert dataset.candidates is None
    assert dataset.corpus.keys() == {"d1", "d2", "d3", "d4"}  # d5 is empty
    assert (dataset.split, dataset.pairs) == ("test", 8)
    assert list(load_dataset(tmp_path, split="train", candidates="full").queries) == ["q1"]


def test_beir_repository_on_the_hub_has_judgements_in_default(tmp_path: Path) -> None:
    write_flat(tmp_path, qrels=[])
    write_table(tmp_path / "data" / "test-00000-of-00001", QRELS, "parquet")
    check_small(load_dataset(tmp_path))


def test_alternative_column_names_and_integer_ids(tmp_path: Path) -> None:
    write_table(tmp_path / "corpus", [{"id": 7, "text": "a"}, {"id": 8, "text": "b"}], "parquet")
    write_table(tmp_path / "queries", [{"id": 1, "text": "q", "instruction": "Why?"}], "jsonl")
    write_table(tmp_path / "qrels", [{"query_id": 1, "corpus_id": 8, "score": 0.5}], "csv")
    write_table(tmp_path / "top_ranked", [{"query_id": 1, "corpus_ids": [8, 7]}], "jsonl")
    dataset = load_dataset(tmp_path)
    assert dataset.queries == {"1": "q Why?"}
    assert dataset.judgements == {"1": {"8": 0.5}}
    assert dataset.candidates == {"1": ["8", "7"]}


def test_instructions_are_appended_to_queries(tmp_path: Path) -> None:
    instructions = [{"query-id": "q1", "instruction": "Name the horse."}]
    write_table(write_flat(tmp_path) / "instruction", instructions, "jsonl")
    queries = load_dataset(tmp_path).queries
    assert queries == {"q2": "graded", "q1": "who won, and by how much? Name the horse."}


@pytest.mark.parametrize("file_format", ["parquet", "jsonl.gz", "csv"])
@pytest.mark.parametrize("place", ["test", "data/test-00000-of-00001", "en/test"])
def test_rows_of_positives_and_negatives(tmp_path: Path, file_format: str, place: str) -> None:
    path = write_table(tmp_path / place, ROWS, file_format)
    for source in [tmp_path, path] if place == "test" else [tmp_path]:
        dataset = load_dataset(source)
        assert dataset.split == "test"
        assert dataset.queries == {"q0": "same", "q2": "same"}
        assert dataset.judgements["q0"] == {"q0-d0": 1, "q0-d1": 1, "q0-d2": 0, "q0-d3": 0}
        assert dataset.candidates == {
            "q0": ["q0-d0", "q0-d1", "q0-d2", "q0-d3"],
            "q2": ["q2-d0"],
        }
        assert [dataset.corpus[document] for document in dataset.candidates["q0"]] == list("abca")
        assert dataset.left_out == {"queries without a relevant document": 1}
    with pytest.raises(InputError, match=r"no corpus.*use candidates='given'"):
        load_dataset(tmp_path, candidates="full")


def test_depth_and_limit(tmp_path: Path) -> None:
    dataset = load_dataset(write_flat(tmp_path), depth=2, limit=1)
    assert dataset.candidates == {"q2": ["d1"]}  # the first two, of which d5 is empty
    assert dataset.judgements == {"q2": {"d3": 2}}
    assert dataset.left_out["queries beyond the limit"] == 1
    assert dataset.candidate_rule == "given, first 2"


@pytest.mark.parametrize("listed", [TOP_RANKED[1:], replace_fields(TOP_RANKED, 0, corpus_ids=[])])
def test_queries_without_candidates_are_dropped_with_a_warning(
    tmp_path: Path, listed: list[dict[str, object]]
) -> None:
    folder = write_flat(tmp_path, top_ranked=listed)
    with pytest.warns(DeadheatWarning, match=r"1 query .* no candidates, .*'q1'"):
        dataset = load_dataset(folder)
    assert list(dataset.queries) == ["q2"]
    assert dataset.left_out["queries without candidates"] == 1


def test_provenance_is_json(tmp_path: Path) -> None:
    dataset = load_dataset(write_snapshot(tmp_path))
    again = DatasetProvenance.from_dict(json.loads(json.dumps(dataset.provenance().to_dict())))
    assert again == dataset.provenance()
    assert again.content_hash == load_dataset(tmp_path).content_hash
    assert (again.queries, again.documents, again.pairs) == (2, 3, 4)
    assert again.left_out["queries without a relevant document"] == 1
    assert (again.unreachable, again.split) == (1, "test")


def test_content_hash_ignores_every_order_but_that_of_candidates() -> None:
    def build(queries: list[str], documents: list[str], listed: list[str] | None) -> str:
        return RetrievalDataset(
            "any name",
            queries=dict.fromkeys(queries, "?"),
            corpus=dict.fromkeys(documents, "!"),
            judgements={query: {"a": 1} for query in queries},
            candidates=None if listed is None else dict.fromkeys(queries, listed),
        ).content_hash

    lists = build(["x", "y"], ["a", "b"], ["a", "b"])
    assert lists == build(["y", "x"], ["b", "a"], ["a", "b"])
    assert lists != build(["x", "y"], ["a", "b"], ["b", "a"])
    full = build(["x", "y"], ["a", "b"], None)
    assert full == build(["y", "x"], ["a", "b"], None)
    assert full not in (lists, build(["x", "y"], ["b", "a"], None))


names = st.text(min_size=1)
some_text = st.text(min_size=1).filter(str.strip)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    corpus=st.dictionaries(names, some_text, min_size=1),
    query=names,
    text=some_text,
    file_format=st.sampled_from(["parquet", "jsonl", "jsonl.gz"]),
    data=st.data(),
)
def test_arbitrary_text_is_loaded_unchanged(
    tmp_path: Path,
    corpus: dict[str, str],
    query: str,
    text: str,
    file_format: str,
    data: st.DataObject,
) -> None:
    listed = data.draw(st.permutations(sorted(corpus)))
    for path in tmp_path.iterdir():
        path.unlink()
    write_flat(
        tmp_path,
        file_format,
        corpus=[{"_id": document, "text": body} for document, body in corpus.items()],
        queries=[{"_id": query, "text": text}],
        qrels=[{"query-id": query, "corpus-id": listed[0], "score": 1}],
        top_ranked=[{"query-id": query, "corpus-ids": listed}],
    )
    dataset = load_dataset(tmp_path)
    assert dataset.corpus == {document: body.strip() for document, body in corpus.items()}
    assert dataset.queries == {query: text}
    assert dataset.candidates == {query: listed}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary() | st.text().map(str.encode), name=st.sampled_from(["corpus", "qrels"]))
@pytest.mark.parametrize("file_format", ["jsonl", "jsonl.gz", "csv", "parquet"])
def test_random_content_raises_input_error(
    tmp_path: Path, content: bytes, name: str, file_format: str
) -> None:
    for path in tmp_path.iterdir():
        path.unlink()
    write_flat(tmp_path, "jsonl", **{name: []})
    (tmp_path / f"{name}.{file_format}").write_bytes(content)
    with pytest.raises(InputError):
        load_dataset(tmp_path)


@pytest.mark.parametrize("file_format", FORMATS)
def test_missing_column_error_lists_the_columns(tmp_path: Path, file_format: str) -> None:
    folder = write_flat(tmp_path, file_format, corpus=[{"_id": "d1", "body": "x"}])
    with pytest.raises(InputError, match=r"corpus: .*no column 'text' .*'_id', 'body'"):
        load_dataset(folder)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"qrels": [{"query-id": "q1", "corpus-id": "d1"}]}, "no column 'relevance' .*score"),
        ({"corpus": replace_fields(CORPUS, 1, _id="d1")}, "corpus: id 'd1' occurs twice"),
        ({"queries": replace_fields(QUERIES, 1, _id="q2")}, "queries: id 'q2' occurs twice"),
        ({"queries": replace_fields(QUERIES, 2, _id=None)}, "queries: the _id of row 3 is empty"),
        (
            {"queries": replace_fields(QUERIES, 0, text=["a", "b"])},
            "of row 1: expected text, found a list",
        ),
        (
            {"qrels": replace_fields(QRELS, 0, score="high")},
            "row 1 .*'q1'.* not a number: 'high'",
        ),
        (
            {"qrels": replace_fields(QRELS, 0, score="NaN")},
            "'d2' of query 'q1' is NaN, .* not valid",
        ),
        ({"qrels": replace_fields(QRELS, 3, score=1)}, r"'d3' of query 'q2' is judged .*\(2, 1\)"),
        ({"qrels": replace_fields(QRELS, 0, query_id="q9")}, "'q9' is judged but has no text"),
        (
            {"corpus": CORPUS[:2]},
            r"query 'q2' judges document 'd3'.* \(1 such",
        ),
        (
            {"top_ranked": replace_fields(TOP_RANKED, 1, corpus_ids=["d1", "x", "y"])},
            r"query 'q2' lists document 'x'.* \(2 such",
        ),
        (
            {"top_ranked": replace_fields(TOP_RANKED, 0, corpus_ids=["d1", "d2", "d1"])},
            "query 'q1': id 'd1' occurs twice",
        ),
        (
            {"top_ranked": replace_fields(TOP_RANKED, 0, corpus_ids="d1 d2")},
            "row 1: expected a list",
        ),
        ({"top_ranked": []}, "no candidate lists .*candidates='bm25' or 'full'"),
        ({"qrels": []}, "no table 'default' or 'qrels'; found: corpus, queries, top_ranked"),
        ({"qrels": QRELS[4:]}, r"nothing to evaluate \(.*1 queries without a relevant document"),
        (
            {"corpus": [], "queries": [], "qrels": [], "top_ranked": TOP_RANKED},
            "default: there is no column 'positive'",
        ),
    ],
)
def test_invalid_tables_raise_specific_errors(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_dataset(write_flat(tmp_path, **changed))  # type: ignore[arg-type]


def test_malformed_line_error_has_the_line_number(tmp_path: Path) -> None:
    path = write_flat(tmp_path) / "corpus.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], '{"_id": "d3",', *lines[3:]]))
    with pytest.raises(InputError, match=r"corpus\.jsonl, line 3: not valid JSON"):
        load_dataset(tmp_path)
    path.write_text("\n".join([*lines, "[1]"]))
    with pytest.raises(InputError, match=r"corpus\.jsonl, line 6: expected a JSON object"):
        load_dataset(tmp_path)


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    for path in write_flat(tmp_path, "csv").iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    check_small(load_dataset(tmp_path))
    path = write_flat(tmp_path / "lines") / "corpus.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    check_small(load_dataset(path.parent))


def test_damaged_gzip_raises_input_error(tmp_path: Path) -> None:
    path = write_flat(tmp_path, "jsonl.gz") / "corpus.jsonl.gz"
    complete = gzip.compress(b'{"_id": "d1", "text": "x"}\n' * 9)
    for damaged in (complete[:-9], complete[:12] + b"\xff" * 9 + complete[21:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"corpus\.jsonl\.gz: .* is damaged"):
            load_dataset(tmp_path)


def test_unknown_layout_split_or_subset_raises_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tables: none.*expected corpus"):
        load_dataset(tmp_path)
    folder = write_snapshot(write_snapshot(tmp_path, subset="en"), subset="de")
    with pytest.raises(InputError, match=r"several subsets.*subset=.* de, en"):
        load_dataset(folder)
    with pytest.raises(InputError, match=r"no subset 'fr'.*subset=.* de, en"):
        load_dataset(folder, subset="fr")
    with pytest.raises(InputError, match=r"no split 'dev'.*split=.* test"):
        load_dataset(folder, subset="en", split="dev")
    for split in ("train", "dev"):
        write_table(tmp_path / "en-qrels" / split, QRELS, "parquet")
        write_table(tmp_path / "en-corpus" / split, CORPUS, "parquet")
    (folder / "en-corpus" / "test-00000-of-00001.parquet").unlink()
    with pytest.raises(InputError, match=r"en-corpus has no split 'test'.* dev, train"):
        load_dataset(folder, subset="en")
    (folder / "en-qrels" / "test-00000-of-00001.parquet").unlink()
    with pytest.raises(InputError, match=r"no split 'test'.*split=.* dev, train"):
        load_dataset(folder, subset="en")
    with pytest.raises(InputError, match=r"no subset 'en'.*leave subset= out"):
        load_dataset(write_flat(tmp_path / "flat"), subset="en")
    with pytest.raises(InputError, match=r"qrels has no split 'test'.*leave split= out"):
        load_dataset(write_flat(tmp_path / "flat"), split="test")


def test_duplicate_table_raises_input_error(tmp_path: Path) -> None:
    write_table(write_flat(tmp_path) / "corpus", CORPUS, "parquet")
    with pytest.raises(InputError, match=r"corpus\.jsonl, corpus\.parquet"):
        load_dataset(tmp_path)
    (tmp_path / "corpus.jsonl").unlink()
    write_table(tmp_path / "corpus" / "test", CORPUS, "parquet")
    with pytest.raises(InputError, match="both a file and a folder called 'corpus'"):
        load_dataset(tmp_path)


def test_invalid_options_raise_input_error(tmp_path: Path) -> None:
    folder = write_flat(tmp_path)
    with pytest.raises(InputError, match=r"limit must be .* 1 or more, not 0"):
        load_dataset(folder, limit=0)
    with pytest.raises(InputError, match="'full' has no depth"):
        load_dataset(folder, candidates="full", depth=3)
    with pytest.raises(InputError, match=r"candidates='all' is unknown; .*given, bm25, full"):
        load_dataset(folder, candidates="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="only the hub has revisions"):
        load_dataset(folder, revision="main")
    with pytest.raises(InputError, match="no folder or file"):
        load_dataset(tmp_path / "absent")
    with pytest.raises(InputError, match="no folder or file"):
        load_dataset(r"C:\data\absent")


def test_importing_datasets_does_not_import_optional_packages() -> None:
    code = (
        "import sys, deadheat.lab.datasets; "
        "print({'datasets', 'bm25s', 'huggingface_hub', 'ir_datasets'} & set(sys.modules))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout == "set()\n"


@pytest.mark.skipif(not (SHARED / "cranfield").exists(), reason="no ../shared/data/cranfield")
def test_cranfield(tmp_path: Path) -> None:
    dataset = load_dataset(write_cranfield(SHARED / "cranfield", tmp_path), candidates="full")
    # Of 1,400 documents two are empty.
    assert (len(dataset.queries), len(dataset.corpus), dataset.split) == (225, 1398, "test")
    assert dataset.queries["3"].startswith("what problems of heat conduction in composite slabs")
    # The line `40 85  3` is spaced irregularly; code 3 stands for grade 2.
    assert dataset.judgements["40"]["85"] == 2
    assert sum(len(grades) for grades in dataset.judgements.values()) == 1837
    assert dataset.left_out == {"empty documents": 2}


@pytest.mark.skipif(not (SHARED / "wikiqa").exists(), reason="no ../shared/data/wikiqa")
@pytest.mark.parametrize(("part", "queries", "pairs"), [("test", 243, 2351), ("dev", 126, 1130)])
def test_wikiqa(tmp_path: Path, part: str, queries: int, pairs: int) -> None:
    dataset = load_dataset(write_wikiqa(SHARED / "wikiqa", tmp_path, part))
    assert (len(dataset.queries), dataset.pairs, dataset.split) == (queries, pairs, part)
    assert dataset.left_out == {}


@pytest.mark.skipif(not (SHARED / "recorded").exists(), reason="no ../shared/data/recorded")
def test_wikiqa_matches_ids_and_labels_of_recorded_logits(tmp_path: Path) -> None:
    dataset = load_dataset(write_wikiqa(SHARED / "wikiqa", tmp_path))
    recorded = pl.read_parquet(SHARED / "recorded" / "cross-encoder-wikiqa.parquet")
    rows = recorded.select("query_id", "doc_id", "relevance").unique(maintain_order=True).rows()
    assert rows == [
        (query, document, grade)
        for query, grades in dataset.judgements.items()
        for document, grade in grades.items()
    ]


def test_empty_folder_raises_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tables: none.*expected corpus, queries, qrels"):
        load_dataset(tmp_path)
