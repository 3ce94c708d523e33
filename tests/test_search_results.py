"""Input formats: search results, ranked groups, sets of ids, flat arrays and types of ids."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import oracle
import pytest
from hypothesis import assume, given, settings, strategies as st
from quiet import quiet
from ways_in import MEASURES, QRELS, RUN, facts, same

import deadheat as dh
from deadheat.evaluation import rank_query

# The runs in ways_in.py emit warnings, which the tests compare.
pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")

AT_K = ["nDCG@{k}", "MRR@{k}", "MAP@{k}", "Recall@{k}", "Success@{k}", "F1@{k}", "ERR@{k}"]
TYPES = [np.float32, np.float64, np.float16, np.uint8, np.int64]


def brute_force(distances, k, *, judged=None):
    """Return the first k documents, then the documents of `judged` that tie with the last.

    Also return their distances, and the sizes of the last tie groups.
    """
    ids, found = [], []
    for q, row in enumerate(distances):
        order = np.argsort(row, kind="stable")
        last = row[order[:k]][-1]
        more = [d for d in order[k:] if row[d] == last and judged is not None and judged[q][d]]
        ids.append(np.array([*order[:k], *more]))
        found.append(row[ids[-1]])
    sizes = [int((row == np.sort(row)[:k][-1]).sum()) for row in distances]
    return ids, found, sizes


def pad(rows, filling):
    width = max(map(len, rows))
    return np.array([[*row, *[filling] * (width - len(row))] for row in rows])


@st.composite
def collections(draw):
    """Draw integer distances with many ties, grades, and a cutoff."""
    queries, documents = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    shape = queries, documents
    numbers = st.lists(
        st.integers(0, 3), min_size=queries * documents, max_size=queries * documents
    )
    distances, grades = (np.array(draw(numbers)).reshape(shape) for _ in range(2))
    assume((grades > 0).any(1).all())
    return distances, grades, draw(st.integers(1, documents))


def judgements(grades):
    return {q: {d: int(g) for d, g in enumerate(row)} for q, row in enumerate(grades)}


@given(
    case=collections(),
    dtype=st.sampled_from(TYPES),
    as_array=st.booleans(),
    whole_group=st.booleans(),
)
@settings(max_examples=120)
def test_cut_list_with_last_group_size_equals_the_whole_collection(
    case, dtype, as_array, whole_group
):
    """If the list has the last group, or its relevant documents, and the size of that group."""
    distances, grades, k = case
    ids, found, sizes = brute_force(distances.astype(dtype), k, judged=(grades > 0) | whole_group)
    if as_array:
        ids, found = pad(ids, -1), pad(found, 0).astype(dtype)
    run = dh.search_results(ids, found, larger_is_better=False, last_group_size=sizes)
    measures = [name.format(k=k) for name in AT_K]
    result = dh.evaluate(judgements(grades), run, measures)
    assert not (whole_group and "cut inside" in "".join(result.warnings))
    for q, row in enumerate(grades):
        docs = [oracle.Doc(-float(d), float(g)) for d, g in zip(distances[q], row, strict=True)]
        for name in AT_K:
            ceiling = {"max_grade": int(grades.max())} if name.startswith("ERR") else {}
            truth = oracle.views(name.partition("@")[0], docs, (), cutoff=k, **ceiling)
            views = result.views[dh.measures.parse_measure(name.format(k=k))]
            for view, value in truth.items():
                values = getattr(views, view)
                if values is not None:
                    assert values[q] == pytest.approx(value, abs=1e-12), (name, view)


@given(case=collections())
@settings(max_examples=60)
def test_cut_list_without_last_group_size_equals_a_plain_run(case):
    distances, grades, k = case
    ids, found, _ = brute_force(distances, k)
    qrels = judgements(grades)
    run = dh.search_results(pad(ids, -1), pad(found, 9), larger_is_better=False)
    lists = {
        q: {int(d): -int(x) for d, x in zip(*row, strict=True)}
        for q, row in enumerate(zip(ids, found, strict=True))
    }
    one, other = (quiet(dh.evaluate)(qrels, each, MEASURES) for each in (run, lists))
    assert facts(one) == facts(other) and one.warnings == other.warnings


def test_tie_rules_order_the_listed_documents():
    ids, scores = [["b", "c", "a"], ["x"]], [[2.0, 1.0, 1.0], [1.0]]
    qrels = {"q": {"a"}, "r": ["x", "y"]}
    run = {"q": dict(zip(ids[0], scores[0], strict=True)), "r": {"x": 1.0}}
    for rule in ("input", "id_asc", "id_desc", "pytrec_eval"):
        cut = dh.search_results(ids, scores, query_ids=["q", "r"], last_group_size=[4, 1])
        from_cut = dh.evaluate(qrels, cut, "MRR", tie_break=rule)["MRR"]
        listed = dh.evaluate(qrels, run, "MRR", tie_break=rule)["MRR"]
        assert from_cut.oblivious == listed.oblivious
        assert from_cut.worst < listed.worst and from_cut.best == listed.best


def test_unlisted_relevant_document_in_last_group_emits_a_warning():
    arrays = {"ids": [[0, 1], [0, 1]], "scores": [[2, 1], [2, 1]]}
    qrels = {0: {1, 5}, 1: {1}}
    with pytest.warns(dh.DeadheatWarning, match="1 list cut inside a tie group"):
        dh.evaluate(qrels, dh.search_results(**arrays, last_group_size=[4, 4]), "MRR@2")
    whole = dh.search_results(**arrays, last_group_size=[1, 1])
    assert not dh.evaluate(qrels, whole, "MRR@2").warnings
    assert not dh.evaluate({0: {1}, 1: {1}}, whole, "MRR@2").warnings


def test_rank_query_equals_evaluation_of_all_queries():
    run = dh.search_results([[0, 1], [5, 6]], [[2, 1], [2, 1]], last_group_size=[1, 4])
    qrels = {0: {1}, 1: {6}}
    together = dh.evaluate(qrels, run, "MRR@2").views[dh.MRR @ 2]
    alone = rank_query(qrels, run, 1, "MRR@2").result.views[dh.MRR @ 2]
    assert (alone.expected[0], alone.worst[0]) == (together.expected[1], together.worst[1])
    assert alone.worst[0] == 0


def test_infinite_scores_tie():
    run = dh.search_results([[0, 1, 2]], [[1.0, np.inf, np.inf]], larger_is_better=False)
    assert dh.evaluate({0: {1}}, run, "MRR")["MRR"].range == pytest.approx(1 / 6)


def test_zero_distance_is_not_negative_zero():
    run = dh.search_results([[0, 1]], [[0, 1]], larger_is_better=False)
    assert not np.signbit(run.scores[0])
    assert not np.signbit(dh.formats.ranked_groups({"q": ["a", "b"]}).scores[0])


def test_padding_names_and_empty_queries():
    ids = np.array([[2, 0, -1], [-1, -1, -1], [1, -1, -1]])
    distances = np.array([[0.5, 0.75, np.inf], [np.inf] * 3, [0.25, np.nan, 7.0]], np.float32)
    names = {"query_ids": ["a", "b", "c"], "document_ids": ["x", "y", "z"]}
    run = dh.search_results(ids, distances, larger_is_better=False, **names)
    assert run.offsets.tolist() == [0, 2, 2, 3]
    assert run.documents.ids(np.arange(3)).to_list() == ["z", "x", "y"]
    assert run.scores.tolist() == [-0.5, -0.75, -0.25] and run.scores.dtype == np.float32
    result = dh.evaluate({"a": {"x"}, "b": {"x"}, "c": {"y"}}, run, "MRR")
    assert result.views[dh.MRR].expected.tolist() == [0.5, 0, 1]
    assert not result.warnings  # a query without results is not missing


def test_large_integer_distances_are_compared_exactly():
    ids, distances = [[0, 1, 2]], np.array([[2**60, 2**60 + 1, 2**60 + 1]], np.uint64)
    run = dh.search_results(ids, distances, larger_is_better=False)
    summary = dh.evaluate({0: {1}}, run, "MRR")["MRR"]
    assert (summary.best, round(summary.worst, 4)) == (0.5, 0.3333)
    with pytest.raises(dh.InputError, match=r"last_group_size.*tie_tolerance or score_dtype"):
        known = dh.search_results(ids, distances, larger_is_better=False, last_group_size=4)
        dh.evaluate({0: {1}}, known, "MRR", tie_tolerance=1)
    near = dh.search_results(ids, distances, larger_is_better=False, last_group_size=2)
    assert dh.evaluate({0: {1}}, near, "MRR", tie_tolerance=1)["MRR"].best == 1


def test_search_results_accepts_tensors():
    torch = pytest.importorskip("torch")
    scores = torch.tensor([[0.5, 0.5, 0.25]], dtype=torch.bfloat16)
    run = dh.search_results(torch.tensor([[4, 2, -1]]), scores)
    assert run.scores.tolist() == [0.5, 0.5]
    rows = dh.search_results([torch.tensor([4, 2])], [scores[0, :2]], last_group_size=[2])
    assert facts(dh.evaluate({0: {2}}, rows, "MRR")) == facts(dh.evaluate({0: {2}}, run, "MRR"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": [[1, 2]], "scores": [[1.0]]}, "query 0: scores of 1 .*ids of 2"),
        ({"ids": [[1], [2]], "scores": [[1.0]]}, "1 queries .*scores.* 2 .*ids"),
        ({"ids": [1, 2], "scores": [1.0, 2.0]}, "wrap a single query in a list"),
        ({"ids": "ab", "scores": [[1.0]]}, "ids .*shape"),
        ({"ids": [], "scores": []}, "scores .*empty"),
        ({"ids": [[-1]], "scores": [[1.0]]}, "search results .*no documents"),
        ({"ids": [[1, 1]], "scores": [[2.0, 1.0]]}, "'0' .*'1' .*once"),
        ({"ids": [[None]], "scores": [[1.0]]}, "a NoneType is not an id"),
        ({"ids": [[1]], "scores": [["x"]]}, "scores must be numbers"),
        ({"ids": [[1, 2]], "scores": [[1.0, 2.0]]}, "scores rise.*larger_is_better=False"),
        (
            {"ids": [[1, 2]], "scores": [[2.0, 1.0]], "larger_is_better": False},
            "scores fall.*larger_is_better=True",
        ),
        ({"ids": [[1]], "scores": [[1.0]], "document_ids": ["a"]}, "the id 1 .* 1 document_ids"),
        (
            {"ids": [["a"]], "scores": [[1.0]], "document_ids": ["a"]},
            "'a' is not an index of .* document_ids",
        ),
        ({"ids": [[0]], "scores": [[1.0]], "document_ids": "a"}, "document_ids .*sequence"),
        ({"ids": [[0]], "scores": [[1.0]], "query_ids": ["a", "b"]}, "query_ids .* 1 queries"),
        (
            {"ids": [[0, 1]], "scores": [[1, 1]], "last_group_size": [1]},
            "last_group_size of query 0 is 1, .* 2 doc",
        ),
        (
            {"ids": [[0]], "scores": [[1]], "last_group_size": [1, 2]},
            "last_group_size .* 1 queries",
        ),
        (
            {"ids": [[0]], "scores": [[1]], "last_group_size": [1.5]},
            "last_group_size .*whole number",
        ),
        ({"ids": [[0]], "scores": [[np.nan]], "last_group_size": [1]}, "NaN"),
        (
            {"ids": [[0], [-1]], "scores": [[1], [1]], "last_group_size": [1, 1]},
            "last_group_size of query 1 is 1, .* 0 documents",
        ),
    ],
)
def test_bad_search_results_raise(arguments, message):
    with pytest.raises(dh.InputError, match=message):
        dh.search_results(**arguments)


def test_nan_in_search_results_raises():
    with pytest.raises(dh.InputError, match=r"search results: query '0', document '4'.*NaN"):
        dh.evaluate({0: {1}}, dh.search_results([[1, 4]], [[1.0, np.nan]]), "MRR")


# Pairs and sets.


def test_run_of_lists_of_pairs():
    same(QRELS, {q: list(docs.items()) for q, docs in RUN.items()})
    same(QRELS, {q: tuple(docs.items()) for q, docs in RUN.items()})
    same(QRELS, {q: [list(pair) for pair in docs.items()] for q, docs in RUN.items()})
    same(QRELS, {q: [(np.str_(d), np.float64(x)) for d, x in RUN[q].items()] for q in RUN})


@pytest.mark.parametrize("name", ["id", "doc_id", "node_id"])
def test_run_of_objects_with_id_and_score(name):
    def make_hit(doc, score):
        return SimpleNamespace(**{name: doc, "score": score})

    same(QRELS, {q: [make_hit(d, x) for d, x in docs.items()] for q, docs in RUN.items()})


@pytest.mark.parametrize("kind", [set, frozenset, list, tuple, np.array, dict.fromkeys])
def test_qrels_of_sets_or_lists_of_ids(kind):
    if kind == dict.fromkeys:
        kind = lambda ids: dict.fromkeys(ids).keys()  # noqa: E731
    relevant = {q: [d for d, grade in docs.items() if grade > 0] for q, docs in QRELS.items()}
    graded = {q: dict.fromkeys(docs, 1) for q, docs in relevant.items()}
    measures = ["nDCG@3", "MRR", "MAP", "Recall@2", "bpref"]
    truth = dh.evaluate(graded, RUN, measures)
    found = dh.evaluate({q: kind(docs) for q, docs in relevant.items()}, RUN, measures)
    assert facts(found) == facts(truth) and found.warnings == truth.warnings


# Rankings without scores.


@given(st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=1, max_size=4), st.integers(0, 2))
@settings(max_examples=80)
def test_ranked_groups_against_the_oracle(groups, absent):
    grades = [grade for group in groups for grade in group]
    assume(any(grades))
    names = iter(range(len(grades)))
    ranking = [[next(names) for _ in group] for group in groups]
    qrels = {"q": {**dict(enumerate(grades)), **{f"absent{i}": 1 for i in range(absent)}}}
    docs = [oracle.Doc(-i, g) for i, group in enumerate(groups) for g in group]
    result = dh.evaluate(qrels, dh.formats.ranked_groups({"q": ranking}), ["nDCG@2", "MRR", "MAP"])
    for name, cutoff in (("nDCG", 2), ("MRR", None), ("MAP", None)):
        truth = oracle.views(name, docs, [1] * absent, cutoff=cutoff)
        views = result.views[
            dh.measures.parse_measure(name if cutoff is None else f"{name}@{cutoff}")
        ]
        for view, value in truth.items():
            assert getattr(views, view)[0] == pytest.approx(value, abs=1e-12), (name, view)
    assert "cut inside" not in "".join(result.warnings)  # groups are complete


def test_ranked_groups_accepts_ids_and_collections():
    run = dh.formats.ranked_groups(
        {7: ["b", ["d", "a"], {"f", "e"}, (3,), np.array([5, 4]), [], "c"]}
    )
    assert run.documents.ids(np.arange(9)).to_list() == [
        "b",
        "d",
        "a",
        "e",
        "f",
        "3",
        "5",
        "4",
        "c",
    ]
    assert run.scores.tolist() == [0, -1, -1, -2, -2, -3, -4, -4, -6]
    assert run.query_ids == ["7"]


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        ([["a"]], "ranked groups .* list"),
        ({"q": "abc"}, "query 'q': .*groups.* str"),
        ({"q": [["a"], [["b"]]]}, "query 'q': a list is not an id"),
        ({"q": [["a", "b"], "a"]}, "'a' more than once"),
        ({"q": [[]]}, "ranked groups .*no documents"),
        ({1: ["a"], "1": ["b"]}, "query '1' .*number .*text"),
    ],
)
def test_bad_ranked_groups_raise(rankings, message):
    with pytest.raises(dh.InputError, match=message):
        dh.formats.ranked_groups(rankings)


# Flat arrays.


@given(data=st.data())
@settings(max_examples=60)
def test_flat_arrays_equal_lists_per_query(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    total = sum(sizes)
    numbers = st.lists(st.integers(0, 3), min_size=total, max_size=total)
    scores, grades = np.array(data.draw(numbers), np.float32), np.array(data.draw(numbers))
    assume(grades.any())
    ids = data.draw(st.permutations([5, -3, 12, 0]))[: len(sizes)]
    query = np.repeat(ids, sizes)
    ends = np.cumsum(sizes)[:-1]
    rows = np.split(grades, ends), np.split(scores, ends)
    truth = dh.evaluate_arrays(*map(list, rows), MEASURES, query_ids=ids)
    flat = dh.evaluate_arrays(grades, scores, MEASURES, query=query)
    assert facts(flat) == facts(truth) and flat.query_ids == truth.query_ids
    # Candidates of a query may be interleaved with others; their order inside a query counts.
    mixed = np.argsort(data.draw(st.permutations(range(total))))
    order = np.empty(total, int)
    for q in ids:
        order[np.sort(mixed[query == q])] = np.flatnonzero(query == q)
    apart = dh.evaluate_arrays(grades[order], scores[order], MEASURES, query=query[order].tolist())
    assert facts(apart) == facts(truth)


def test_flat_arrays_of_tensors_and_text_ids():
    torch = pytest.importorskip("torch")
    arrays = [0, 1, 1], [0.5, 0.5, 0.25]
    truth = facts(dh.evaluate_arrays([[0, 1], [1]], [[0.5, 0.5], [0.25]], "MRR", query_ids=[4, 2]))
    tensors = [torch.tensor(row) for row in (*arrays, [4, 4, 2])]
    assert facts(dh.evaluate_arrays(*tensors[:2], "MRR", query=tensors[2])) == truth
    named = dh.evaluate_arrays(*arrays, "MRR", query=["b", "b", "a"])
    assert named.query_ids == ["b", "a"] and list(facts(named).values()) == list(truth.values())
    whole = dh.evaluate_arrays([1, 0], [2**60, 2**60 + 1], "MRR", query=[1, 1])
    assert whole["MRR"].expected == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [1.0, 2.0], [0]), r"scores \[2\], relevance \[2\], query \[1\]"),
        (([[1, 0]], [[1.0, 2.0]], [0, 0]), r"flat .*scores \[1, 2\]"),
        (([1], [1.0], 0), "query .*candidate, not 0"),
        (([1], [1.0], [None]), "a NoneType is not an id"),
        (([1], [1.0], [[0]]), r"query .*candidate, not \[\[0\]\]"),
        (([], [], []), "scores .*empty"),
        ((["x"], [1.0], [0]), "relevance must be numbers"),
    ],
)
def test_bad_flat_arrays_raise(arguments, message):
    with pytest.raises(dh.InputError, match=message):
        dh.evaluate_arrays(*arguments[:2], "MRR", query=arguments[2])


def test_query_and_query_ids_exclude_each_other():
    with pytest.raises(dh.InputError, match="query and query_ids"):
        dh.evaluate_arrays([1], [1.0], "MRR", query=[0], query_ids=["a"])


# Types of query ids.


@pytest.mark.parametrize("make", ["dict", "numpy", "tuples", "frame"])
def test_integer_query_ids_are_kept(make):
    qrels = {
        "dict": {7: {"a": 1}, 3: {"a": 1}},
        "numpy": {np.int64(7): {"a"}, np.int32(3): {"a"}},
        "tuples": [(7, "a", 1), (3, "a", 1)],
        "frame": pytest.importorskip("pandas").DataFrame(
            {"query_id": [7, 3], "doc_id": ["a", "a"], "relevance": 1}
        ),
    }[make]
    result = dh.evaluate(qrels, {"7": {"a": 1.0}, 3: {"b": 2.0, "a": 1.0}}, "MRR")
    assert result.query_ids == [7, 3] and all(type(query) is int for query in result.query_ids)
    assert result.query_names == ["7", "3"]
    assert result.per_query["query_id"].to_list() == [7, 3]
    assert dh.Result.from_json(result.to_json()).query_ids == [7, 3]
    named = dh.evaluate({"7": {"a"}, "3": {"a"}}, {"7": {"a": 1}, "3": {"b": 2, "a": 1}}, "MRR")
    assert named.query_ids == ["7", "3"]
    both = dh.compare({"one": result, "other": named})
    assert both.pairs["difference"].to_list() == [0]


@pytest.mark.parametrize("ids", [["a", 3], [2**70, 3], ["7", "3"], [1.5, 3]])
def test_other_query_ids_become_text(ids):
    qrels = {query: {"a"} for query in ids}
    assert dh.evaluate(qrels, {q: {"a": 1} for q in ids}, "MRR").query_ids == list(map(str, ids))


def test_integer_query_ids_of_arrays_and_groups_are_kept():
    result = dh.evaluate_arrays([[1], [1]], [[1.0], [1.0]], "MRR", query_ids=np.array([5, 9]))
    assert result.query_ids == [5, 9]
    counter = dh.ties.TopCounter(1, 1)
    counter.update([[1.0]])
    groups = counter.groups([0], [0], [1])
    assert dh.evaluation.evaluate_groups(groups, "MRR@1", query_ids=[5]).query_ids == [5]
    top = dh.evaluation.evaluate_top(
        {5: {"a"}}, counter, "MRR@1", query_ids=[5], document_ids=["a"]
    )
    assert top.query_ids == [5]
