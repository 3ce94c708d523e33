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
EXTRA_FIELDS = {"text": "a passage", "metadata": {"id": "other", "score": 7}, "_index": "wiki"}
"""Other fields that services return with a hit."""


def langchain_document(name, **metadata):
    """Return an object with the attributes of LangChain's Document."""
    return SimpleNamespace(id=name, page_content="a passage", metadata=metadata)


def make_hits(run, make):
    return {q: [make(doc, score) for doc, score in docs.items()] for q, docs in run.items()}


@pytest.mark.parametrize("shape", SHAPES, ids="/".join)
def test_hits_as_dicts_objects_and_files(shape, tmp_path):
    results = make_hits(RUN, lambda doc, score: {**EXTRA_FIELDS, shape[0]: doc, shape[1]: score})
    same(QRELS, results)
    same(QRELS, make_hits(RUN, lambda *hit: SimpleNamespace(**dict(zip(shape, hit, strict=True)))))
    for name, content in {
        "run.json": json.dumps(results),
        "one-line": json.dumps(results),
        "run.jsonl": "\n".join(json.dumps({"qid": q, "hits": own}) for q, own in results.items()),
        "matches.jsonl": "\n".join(
            json.dumps({"query_id": q, "Matches": own, "took": 3}) for q, own in results.items()
        ),
    }.items():
        (tmp_path / name).write_text(content)
        same(QRELS, str(tmp_path / name))


def test_hits_as_named_tuples_and_langchain_pairs():
    scored = namedtuple("scored", "query_id doc_id score")  # the fields of ir_measures
    same(QRELS, make_hits(RUN, lambda doc, score: scored("q", doc, score)))
    best_first = {q: dict(sorted(own.items(), key=lambda hit: -hit[1])) for q, own in RUN.items()}
    results = make_hits(best_first, lambda doc, score: (langchain_document(doc), score))
    assert facts(dh.evaluate(QRELS, results)) == facts(dh.evaluate(QRELS, best_first))


@given(
    run=st.dictionaries(
        st.text("qr7", min_size=1),
        st.dictionaries(st.integers(0, 30), st.floats(-9, 9) | st.integers(-9, 9), min_size=1),
        min_size=1,
    ),
    shape=st.sampled_from(SHAPES),
)
@settings(max_examples=60)
def test_hits_round_trip(run, shape):
    results = make_hits(run, lambda *hit: dict(zip(shape, hit, strict=True)))
    truth = {q: {str(doc): score for doc, score in own.items()} for q, own in run.items()}
    assert dh.read_run(results).to_dict() == truth
    assert dh.read_run(json.loads(json.dumps(results))).to_dict() == truth
    distances = make_hits(run, lambda doc, score: {"id": doc, "distance": score})
    try:
        near = dh.search_results(distances, larger_is_better=False).to_dict()
    except dh.InputError as error:
        assert "fall along every list" in str(error)
    else:
        assert near == {q: {d: 0 - x for d, x in own.items()} for q, own in truth.items()}


def test_distances_require_larger_is_better():
    results = {"q": [{"id": 7, "distance": 0.25}, {"id": 3, "distance": 0.5, "entity": {}}]}
    with pytest.raises(dh.InputError, match=r"query 'q', hit 0 .*distance.*larger_is_better"):
        dh.evaluate({"q": {"7"}}, results, "MRR")
    with pytest.raises(dh.InputError, match="larger_is_better=False"):
        dh.search_results(results)
    run = dh.search_results(results, larger_is_better=False)
    assert dh.evaluate({"q": {"7"}}, run, "MRR")["MRR"].expected == 1
    cosine = {"q": results["q"][::-1]}
    run = dh.search_results(cosine, larger_is_better=True)
    assert dh.evaluate({"q": {"7"}}, run, "MRR")["MRR"].expected == 0.5


def test_ascending_langchain_scores_are_treated_as_distances():
    results = {"q": [(langchain_document("a"), 0.25), (langchain_document("b"), 0.5)]}
    with pytest.raises(dh.InputError, match=r"query 'q'.*rise.*larger_is_better"):
        dh.evaluate({"q": {"a"}}, results, "MRR")
    run = dh.search_results(results, larger_is_better=False)
    assert dh.evaluate({"q": {"a"}}, run, "MRR")["MRR"].expected == 1
    tied = {"q": [(langchain_document("a"), 0.5), (langchain_document("b"), 0.5)]}
    assert dh.evaluate({"q": {"a"}}, tied, "MRR")["MRR"].expected == 0.75


def test_indices_are_mapped_to_document_ids():
    results = {"q": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.25}]}
    assert dh.read_run(results).to_dict() == {"q": {"1": 0.5, "0": 0.25}}
    named = dh.search_results(results, document_ids=["a", "b"])
    assert named.to_dict() == {"q": {"b": 0.5, "a": 0.25}}


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([{"name": "a", "value": 1}], r"hit 0 is a dict of name, value;.*_id/_score"),
        ([{"id": "a", "score": 1}, {}], r"hit 1 is a dict of no keys"),
        ([{"id": "a", "score": 1}, {"id": "a", "score": 2}], "'a' more than once"),
        ([{"_id": "a", "_score": None}], "score of document 'a' .*is not a number: None"),
        ([{"id": ["a"], "score": 1}], "query 'q': a list is not an id"),
        (
            [(langchain_document(None, source="x.pdf"), 0.5)],
            r"id of the Document is None.*holds source",
        ),
        (["a", "b"], r"hit 0 is 'a';.*ranked_groups"),
        ({"_id": "a"}, "is not a number"),
    ],
)
def test_invalid_hits_are_rejected(results, message):
    with pytest.raises(dh.InputError, match=message) as caught:
        dh.read_run({"q": results})
    assert "'q'" in str(caught.value)


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ({"q": {"a": 1}}, {}, "query 'q': .*hits.* dict"),
        ({"q": []}, {}, "search results .*no documents"),
        ({"q": [("a", 1)]}, {"scores": [[1]]}, "leave scores and query_ids out"),
        ({"q": [("a", 1)]}, {"query_ids": ["p"]}, "leave scores and query_ids out"),
    ],
)
def test_invalid_search_results_are_rejected(results, options, message):
    with pytest.raises(dh.InputError, match=message):
        dh.search_results(results, **options)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"took": 3, "hits": []}], "no column 'query_id'"),
        ([{"query": "a", "hits": []}] * 2, "query 'a' .*several rows"),
        ([{"query": "a", "hits": 7}], "query 'a' .*int"),
        ([{"query": "a", "hits": []}], "no scored documents"),
        ([{"query": "a", "hits": [{"id": 1}]}], r"query 'a', hit 0 is a dict of id"),
    ],
)
def test_invalid_lines_of_hits_are_rejected(lines, message, tmp_path):
    (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(dh.InputError, match=message) as caught:
        dh.read_run(tmp_path / "run.jsonl")
    assert "run.jsonl" in str(caught.value)
