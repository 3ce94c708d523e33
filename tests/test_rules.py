"""Tie rules against the tools that they reproduce, on runs with many ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deadheat as dh

ir_measures = pytest.importorskip("ir_measures")
pytrec_eval = pytest.importorskip("pytrec_eval")

ids = st.text(st.sampled_from("aB1é~_-"), min_size=1, max_size=3)
scores = st.sampled_from([0.0, 0.5, 0.5000000001, 1.0, 1.00000000001, -1.0, 1e39, 7.0])


@st.composite
def collections(draw):
    """Draw judgements and a run of a few queries with many ties, some of them only in float32."""
    qrels, run = {}, {}
    for q in range(draw(st.integers(1, 3))):
        docs = draw(st.lists(ids, min_size=1, max_size=12, unique=True))
        run[f"q{q}"] = {d: draw(scores) for d in docs}
        judged = draw(st.lists(st.sampled_from([*docs, "absent"]), unique=True, min_size=1))
        qrels[f"q{q}"] = {d: draw(st.integers(0, 3)) for d in judged}
    return qrels, run


PYTREC_EVAL = {
    "nDCG": "ndcg",
    "nDCG@5": "ndcg_cut_5",
    "MRR": "recip_rank",
    "MAP": "map",
    "MAP@3": "map_cut_3",
    "Recall@5": "recall_5",
    "Precision@5": "P_5",
    "Success@1": "success_1",
    "R-Precision": "Rprec",
    "Hits": "num_rel_ret",
    "bpref": "bpref",
}


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@given(collection=collections())
def test_pytrec_eval_rule_matches_pytrec_eval(backend, collection):
    qrels, run = collection
    names = {"ndcg", "ndcg_cut.5", "recip_rank", "map", "map_cut.3", "recall.5", "P.5"}
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, names | {"success.1", "Rprec", "num_rel_ret", "bpref"}
    )
    theirs = evaluator.evaluate(run)
    result = dh.evaluate(
        qrels, run, list(PYTREC_EVAL), tie_break="pytrec_eval", queries="intersection"
    )
    for row in result.per_query.iter_rows(named=True):
        expected = theirs[row["query_id"]][PYTREC_EVAL[row["measure"]]]
        assert row["oblivious"] == pytest.approx(expected, abs=1e-6), row["measure"]


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@settings(max_examples=40)
@given(collection=collections())
def test_id_rules_match_ir_measures(collection):
    qrels, run = collection
    measures = {
        ir_measures.RR @ 4: "id_asc",
        ir_measures.Judged @ 4: "id_asc",
        ir_measures.nDCG @ 4: "pytrec_eval",
        ir_measures.AP @ 4: "pytrec_eval",
        ir_measures.P @ 4: "pytrec_eval",
        ir_measures.R(rel=2) @ 4: "pytrec_eval",
        ir_measures.Success @ 2: "pytrec_eval",
    }
    theirs = {(m.measure, m.query_id): m.value for m in ir_measures.iter_calc(measures, qrels, run)}
    for measure, rule in measures.items():
        result = dh.evaluate(qrels, run, [measure], tie_break=rule, queries="intersection")
        for row in result.per_query.iter_rows(named=True):
            found = theirs.get((measure, row["query_id"]), 0.0)
            assert row["oblivious"] == pytest.approx(found, abs=1e-6), str(measure)


def sort_by_rule(run: dict[str, float], rule: str, rank: dict[str, int]) -> list[str]:
    """Return the documents in the order of a rule, with Python's sort."""
    docs = list(run)
    if rule == "id_asc":
        docs.sort(key=lambda d: d.encode())
    elif rule in ("id_desc", "pytrec_eval"):
        docs.sort(key=lambda d: d.encode(), reverse=True)
    elif rule == "rank":
        docs.sort(key=lambda d: rank[d])
    with np.errstate(over="ignore"):
        score = {d: float(np.float32(s)) if rule == "pytrec_eval" else s for d, s in run.items()}
    return sorted(docs, key=lambda d: -score[d])


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("rule", dh.settings.TIE_RULES)
@pytest.mark.parametrize("source_type", ["dict", "file"])
@settings(max_examples=60)
@given(collection=collections(), random=st.randoms(use_true_random=False))
def test_rules_match_sorted_lists(tmp_path, rule, source_type, collection, random):
    qrels, run = collection
    ranks = {
        q: dict(zip(docs, random.sample(range(1, 99), len(docs)), strict=True))
        for q, docs in run.items()
    }
    if source_type == "dict" and rule == "rank":
        with pytest.raises(dh.InputError, match="ranks"):
            dh.evaluate(qrels, run, ["MRR"], tie_break=rule, queries="all")
        return
    source = run
    if source_type == "file":
        rows = [(q, d, ranks[q][d], s) for q, docs in run.items() for d, s in docs.items()]
        source = tmp_path / "run.txt"
        source.write_text("".join(f"{q} Q0 {d} {r} {s!r} t\n" for q, d, r, s in rows))
    result = dh.evaluate(qrels, source, ["MRR", "MAP"], tie_break=rule, queries="intersection")
    views = dict(zip(("MRR", "MAP"), result.views.values(), strict=True))
    for i, query in enumerate(result.query_ids):
        order = sort_by_rule(run[query], rule, ranks[query])
        relevant = [r for r, d in enumerate(order, 1) if qrels[query].get(d, 0) > 0]
        n = sum(grade > 0 for grade in qrels[query].values())
        assert views["MRR"].oblivious[i] == (1 / relevant[0] if relevant else 0)
        ap = sum(j / r for j, r in enumerate(relevant, 1)) / n if n else 0
        assert views["MAP"].oblivious[i] == pytest.approx(ap)


def test_float32_cast_of_the_pytrec_eval_rule_creates_ties():
    qrels = {"q": {"a": 1}}
    run = {"q": {"a": 1.00000000001, "b": 1.0}}
    as_given = dh.evaluate(qrels, run, ["MRR"], tie_break="id_desc")["MRR"]
    with pytest.warns(dh.DeadheatWarning, match="outside"):
        as_cast = dh.evaluate(qrels, run, ["MRR"], tie_break="pytrec_eval")["MRR"]
    assert as_given.range == 0
    assert as_given.oblivious == 1
    assert as_cast.oblivious == 0.5


def test_ir_measures_uses_different_tie_rules_with_and_without_cutoff():
    """This inconsistency is why deadheat has several tie rules."""
    qrels = {"q": {"d0": 1}}
    run = {"q": {f"d{i}": 0.5 for i in range(10)}}
    theirs = ir_measures.calc_aggregate([ir_measures.RR, ir_measures.RR @ 10], qrels, run)
    assert theirs == {ir_measures.RR: pytest.approx(0.1), ir_measures.RR @ 10: 1.0}
    for rule, measure in (("pytrec_eval", "RR"), ("id_asc", "RR@10")):
        ours = dh.evaluate(qrels, run, [measure], tie_break=rule)[measure]
        assert ours.oblivious == pytest.approx({"RR": 0.1, "RR@10": 1.0}[measure])
        assert ours.expected == pytest.approx(sum(1 / i for i in range(1, 11)) / 10)


class TestTolerance:
    """Near-equal scores tie, also in chains; the oblivious value ignores the tolerance."""

    @given(
        docs=st.lists(st.integers(0, 30), min_size=1, max_size=12),
        tolerance=st.integers(0, 4),
        data=st.data(),
    )
    def test_groups_are_the_connected_components(self, backend, docs, tolerance, data):
        index = data.draw(st.integers(0, len(docs) - 1))
        component, neighbours = {index}, True
        while neighbours:
            neighbours = {
                j
                for i in component
                for j in range(len(docs))
                if abs(docs[i] - docs[j]) <= tolerance
            } - component
            component |= neighbours
        above = sum(score > max(docs[i] for i in component) for score in docs)
        run = {"q": {str(i): float(score) for i, score in enumerate(docs)}}
        summary = dh.evaluate({"q": {str(index): 1}}, run, ["MRR"], tie_tolerance=tolerance)["MRR"]
        assert summary.best == pytest.approx(1 / (above + 1))
        assert summary.worst == pytest.approx(1 / (above + len(component)))
        exact = sum(s > docs[index] for s in docs) + docs[:index].count(docs[index])
        assert summary.oblivious == pytest.approx(1 / (exact + 1))

    def test_evaluate_arrays_takes_a_tolerance(self):
        result = dh.evaluate_arrays([[1, 0, 0]], [[0.3, 0.31, 0.1]], ["MRR"], tie_tolerance=0.02)
        assert result["MRR"].expected == 0.75
        assert result["MRR"].oblivious == 0.5

    def test_infinite_scores_tie_only_with_equal_ones(self):
        scores = [[np.inf, np.inf, 1.0, -np.inf]]
        result = dh.evaluate_arrays([[1, 0, 0, 0]], scores, ["MRR"], tie_tolerance=1e300)
        assert result["MRR"].worst == 0.5
