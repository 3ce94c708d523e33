"""Hits of a query as search services, rerankers and libraries return them."""

from __future__ import annotations

import json
from collections import namedtuple
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st
from ways_in import QRELS, RUN, facts, same

import deadheat as dh

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")

SHAPES = [shape for shape in dh.formats.HIT_SHAPES if shape != ("id", "distance")]
MORE = {"text": "a passage", "metadata": {"id": "other", "score": 7}, "_index": "wiki"}
"""What services return with a hit."""


def document(name, **metadata):
    """What LangChain's Document has."""
    return SimpleNamespace(id=name, page_content="a passage", metadata=metadata)


def hits(run, make):
    return {q: [make(doc, score) for doc, score in docs.items()] for q, docs in run.items()}


@pytest.mark.parametrize("shape", SHAPES, ids="/".join)
def test_hits_are_dicts_or_objects(shape, tmp_path):
    found = hits(RUN, lambda doc, score: {**MORE, shape[0]: doc, shape[1]: score})
    same(QRELS, found)
    same(QRELS, hits(RUN, lambda *hit: SimpleNamespace(**dict(zip(shape, hit, strict=True)))))
    for name, content in {
        "run.json": json.dumps(found),
        "one-line": json.dumps(found),
        "run.jsonl": "\n".join(json.dumps({"qid": q, "hits": own}) for q, own in found.items()),
        "matches.jsonl": "\n".join(
            json.dumps({"query_id": q, "Matches": own, "took": 3}) for q, own in found.items()
        ),
    }.items():
        (tmp_path / name).write_text(content)
        same(QRELS, str(tmp_path / name))


def test_named_tuples_and_pairs_of_langchain():
    scored = namedtuple("scored", "query_id doc_id score")  # as ir_measures has it
    same(QRELS, hits(RUN, lambda doc, score: scored("q", doc, score)))
    best_first = {q: dict(sorted(own.items(), key=lambda hit: -hit[1])) for q, own in RUN.items()}
    found = hits(best_first, lambda doc, score: (document(doc), score))
    assert facts(dh.evaluate(QRELS, found)) == facts(dh.evaluate(QRELS, best_first))


@given(
    run=st.dictionaries(
        st.text("qr7", min_size=1),
        st.dictionaries(st.integers(0, 30), st.floats(-9, 9) | st.integers(-9, 9), min_size=1),
        min_size=1,
    ),
    shape=st.sampled_from(SHAPES),
)
@settings(max_examples=60)
def test_round_trip(run, shape):
    found = hits(run, lambda *hit: dict(zip(shape, hit, strict=True)))
    truth = {q: {str(doc): score for doc, score in own.items()} for q, own in run.items()}
    assert dh.read_run(found).to_dict() == truth
    assert dh.read_run(json.loads(json.dumps(found))).to_dict() == truth
    distances = hits(run, lambda doc, score: {"id": doc, "distance": score})
    try:
        near = dh.search_results(distances, larger_is_better=False).to_dict()
    except dh.InputError as error:
        assert "fall along every list" in str(error)
    else:
        assert near == {q: {d: 0 - x for d, x in own.items()} for q, own in truth.items()}


def test_distances_need_a_direction():
    found = {"q": [{"id": 7, "distance": 0.25}, {"id": 3, "distance": 0.5, "entity": {}}]}
    with pytest.raises(dh.InputError, match=r"query 'q', hit 0 .*distance.*larger_is_better"):
        dh.evaluate({"q": {"7"}}, found, "MRR")
    with pytest.raises(dh.InputError, match="larger_is_better=False"):
        dh.search_results(found)
    run = dh.search_results(found, larger_is_better=False)
    assert dh.evaluate({"q": {"7"}}, run, "MRR")["MRR"].expected == 1
    cosine = {"q": found["q"][::-1]}
    run = dh.search_results(cosine, larger_is_better=True)
    assert dh.evaluate({"q": {"7"}}, run, "MRR")["MRR"].expected == 0.5


def test_pairs_of_langchain_whose_scores_rise_are_distances():
    found = {"q": [(document("a"), 0.25), (document("b"), 0.5)]}
    with pytest.raises(dh.InputError, match=r"query 'q'.*rise.*larger_is_better"):
        dh.evaluate({"q": {"a"}}, found, "MRR")
    run = dh.search_results(found, larger_is_better=False)
    assert dh.evaluate({"q": {"a"}}, run, "MRR")["MRR"].expected == 1
    tied = {"q": [(document("a"), 0.5), (document("b"), 0.5)]}
    assert dh.evaluate({"q": {"a"}}, tied, "MRR")["MRR"].expected == 0.75


def test_an_index_may_be_named():
    found = {"q": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.25}]}
    assert dh.read_run(found).to_dict() == {"q": {"1": 0.5, "0": 0.25}}
    named = dh.search_results(found, document_ids=["a", "b"])
    assert named.to_dict() == {"q": {"b": 0.5, "a": 0.25}}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([{"name": "a", "value": 1}], r"hit 0 is a dict of name, value;.*_id/_score"),
        ([{"id": "a", "score": 1}, {}], r"hit 1 is a dict of no keys"),
        ([{"id": "a", "score": 1}, {"id": "a", "score": 2}], "'a' more than once"),
        ([{"_id": "a", "_score": None}], "score of document 'a' .*is not a number: None"),
        ([{"id": ["a"], "score": 1}], "query 'q': a list is not an id"),
        ([(document(None, source="x.pdf"), 0.5)], r"id of the Document is None.*holds source"),
        (["a", "b"], r"hit 0 is 'a';.*ranked_groups"),
        ({"_id": "a"}, "is not a number"),
    ],
)
def test_bad_hits(found, words):
    with pytest.raises(dh.InputError, match=words) as caught:
        dh.read_run({"q": found})
    assert "'q'" in str(caught.value)


@pytest.mark.parametrize(
    ("given_", "options", "words"),
    [
        ({"q": {"a": 1}}, {}, "query 'q': .*hits.* dict"),
        ({"q": []}, {}, "search results .*no documents"),
        ({"q": [("a", 1)]}, {"scores": [[1]]}, "leave scores and query_ids out"),
        ({"q": [("a", 1)]}, {"query_ids": ["p"]}, "leave scores and query_ids out"),
    ],
)
def test_bad_search_results(given_, options, words):
    with pytest.raises(dh.InputError, match=words):
        dh.search_results(given_, **options)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([{"took": 3, "hits": []}], "no column 'query_id'"),
        ([{"query": "a", "hits": []}] * 2, "query 'a' .*several rows"),
        ([{"query": "a", "hits": 7}], "query 'a' .*int"),
        ([{"query": "a", "hits": []}], "no scored documents"),
        ([{"query": "a", "hits": [{"id": 1}]}], r"query 'a', hit 0 is a dict of id"),
    ],
)
def test_bad_lines_of_hits(lines, words, tmp_path):
    (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(dh.InputError, match=words) as caught:
        dh.read_run(tmp_path / "run.jsonl")
    assert "run.jsonl" in str(caught.value)
