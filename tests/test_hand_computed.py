"""Values that a reader can check by eye, worked out by hand from the definitions.

A list is written as its grades in the order of scores: ``1 0 (1 0)`` are four documents, the
last two of which are tied; ``-`` is a document that nobody judged.
"""

from __future__ import annotations

import math
import re

import pytest

import deadheat as dh
from deadheat.measures import MEASURES

L3 = math.log2(3)  # what the gain at rank 2 is divided by; at rank 1 it is 1, at rank 3 it is 2

WITHOUT_TIES = [
    # ranked, judged but not retrieved, measure, value
    ("3 0 2", "", "DCG@3", 3 / 1 + 0 / L3 + 2 / 2),
    ("3 2", "", "DCG@1", 3),
    ("3 2", "", "DCG", 3 / 1 + 2 / L3),
    ("3 2", "", "DCG(gain='exp')", 7 / 1 + 3 / L3),
    ("-1 - 1", "", "DCG", 1 / 2),
    ("1 0", "", "nDCG", 1),
    ("0 1", "", "nDCG", (1 / L3) / 1),
    ("3 0 2", "1", "nDCG@3", (3 + 2 / 2) / (3 + 2 / L3 + 1 / 2)),
    ("1 0", "1 1 1", "nDCG@2", 1 / (1 + 1 / L3)),
    ("0 2 1", "", "nDCG(gain='exp')@2", (3 / L3) / (3 + 1 / L3)),
    ("0 0", "1", "nDCG", 0),
    ("1 0 1", "", "MRR", 1),
    ("0 0 0 1", "", "MRR", 1 / 4),
    ("0 0 0 1", "", "MRR@3", 0),
    ("0 1 2", "", "MRR(rel=2)", 1 / 3),
    ("0 0", "1", "MRR", 0),
    ("1 0 1 0", "", "MAP", (1 / 1 + 2 / 3) / 2),
    ("1 0 1 0", "1", "MAP", (1 / 1 + 2 / 3) / 3),
    ("1 0 1 0", "1", "MAP@2", (1 / 1) / 3),
    ("1 0 1 0", "1", "MAP(divisor='min')@2", (1 / 1) / 2),
    ("1 2", "", "MAP(rel=2)", 1 / 2),
    ("1 0 1", "1", "Recall", 2 / 3),
    ("1 0 1", "1", "Recall@2", 1 / 3),
    ("1 0 1", "1", "R_cap@2", 1 / 2),
    ("1 0 1", "1", "R_cap@9", 2 / 3),
    ("1 2 3", "1", "Recall(rel=2)@2", 1 / 2),
    ("1 0 1 0 0", "", "Precision@2", 1 / 2),
    ("1 0 1 0 0", "", "Precision", 2 / 5),
    ("1 0 1 0 0", "", "Precision@10", 2 / 10),
    ("1 0 1", "1", "F1@2", 2 * 1 / (2 + 3)),
    ("1 0 1", "1", "F1", 2 * 2 / (3 + 3)),
    ("1 0 1", "1", "F1@10", 2 * 2 / (10 + 3)),
    ("1 0 1", "1", "Hits", 2),
    ("1 0 1", "1", "Hits@2", 1),
    ("1 2 3", "", "Hits(rel=2)", 2),
    ("0 1 1", "", "Success@1", 0),
    ("0 1 1", "", "Success@2", 1),
    ("0 1 1", "", "Success", 1),
    ("1 0 1", "", "R-Precision", 1 / 2),
    ("1 0 1", "1", "R-Precision", 2 / 3),
    ("1 1 0", "1", "R-Precision@1", 1 / 3),
    ("1 1", "", "RBP", 0.2 * (1 + 0.8)),
    ("1 0 1", "", "RBP(p=0.5)", 1 / 2 + 1 / 8),
    ("1 0 1", "", "RBP(p=0.5)@2", 1 / 2),
    ("1 0 2", "", "RBP(p=0.5)", 1 / 2 + 1 / 8),
    ("1 0 2", "", "RBP(p=0.5, gain='scaled')", 1 / 2 / 2 + 1 / 8),
    ("1 0 2", "4", "RBP(p=0.5, gain='scaled')", 1 / 4 / 2 + 2 / 4 / 8),
    ("1 -1 - 2", "", "RBP(p=0.5, gain='scaled', rel=2)", 1 / 16),
    ("0 0", "", "RBP(gain='scaled')", 0),
    ("3 0 2", "", "RBP(p=0.5, gain='linear')", 3 / 2 + 2 / 8),
    ("3 0 2", "", "rbp.5", 3 / 2 + 2 / 8),  # what ranx gives
    ("1 - 0", "", "RBP-residual(p=0.5)", 1 / 4 + 1 / 8),  # rank 2, and from rank 4 on
    ("1 - 0 -", "", "RBP-residual(p=0.5)@2", 1 / 4),
    ("1", "1", "RBP-residual(p=0.5)@2", 1 / 4),  # rank 2 may hold anything
    ("1 -1", "", "RBP-residual(p=0.5)@2", 1 / 4),  # a grade below 0 is no judgement
    ("1 0 1 0", "", "bpref", (1 + 1 / 2) / 2),
    ("1 0 1 0", "1", "bpref", (1 + 1 / 2) / 3),  # m = min(3, 2)
    ("1 0 1 0", "1 0", "bpref", (1 + 2 / 3) / 3),  # m = min(3, 3)
    ("0 - 0 1", "0", "bpref", 0),  # m = min(1, 3): one above is enough
    ("1 - -1 1", "", "bpref", 1),  # nothing was judged not relevant
    ("2 1 2 0", "", "bpref(rel=2)", (1 + 1 / 2) / 2),
    ("0 0", "0", "bpref", 0),
    ("1", "", "ERR", 1 / 2),
    ("0 1", "", "ERR", (1 / 2) / 2),
    ("1 1", "", "ERR", 1 / 2 + (1 / 2) * (1 / 2) / 2),
    ("1 1", "", "ERR@1", 1 / 2),
    ("2 1", "", "ERR", 3 / 4 + (1 / 4) * (1 / 4) / 2),
    ("1", "2", "ERR", 1 / 4),
    ("1", "", "ERR(max_grade=4)", 1 / 16),
    ("1 - 0 2", "", "Judged", 3 / 4),
    ("1 - 0 2", "", "Judged@2", 1 / 2),
    ("1 -", "1", "Judged@10", 1 / 2),
]

WITH_TIES = [
    # ranked, judged but not retrieved, measure, expected, best, worst
    ("(1 0)", "", "DCG", (1 + 1 / L3) / 2, 1, 1 / L3),
    ("(3 1)", "", "DCG@1", (3 + 1) / 2, 3, 1),
    ("(3 1)", "", "DCG(gain='exp')@1", (7 + 1) / 2, 7, 1),
    ("(1 0)", "", "nDCG@1", 1 / 2, 1, 0),
    ("(1 0)", "", "nDCG", (1 + 1 / L3) / 2, 1, 1 / L3),
    ("(1 0)", "1", "nDCG@1", 1 / 2, 1, 0),
    ("(2 1)", "", "nDCG(gain='exp')@1", ((3 + 1) / 2) / 3, 1, 1 / 3),
    ("(1 0)", "", "MRR", (1 + 1 / 2) / 2, 1, 1 / 2),
    ("0 (1 0)", "", "MRR", (1 / 2 + 1 / 3) / 2, 1 / 2, 1 / 3),
    ("(1 0 0)", "", "MRR", (1 + 1 / 2 + 1 / 3) / 3, 1, 1 / 3),
    ("(1 0 0)", "", "MRR@2", (1 + 1 / 2 + 0) / 3, 1, 0),
    ("(1 1 0)", "", "MRR", (1 + 1 + 1 / 2) / 3, 1, 1 / 2),
    ("(1 0)", "", "MAP", (1 + 1 / 2) / 2, 1, 1 / 2),
    ("1 (1 0)", "", "MAP", (1 + (2 / 2 + 2 / 3) / 2) / 2, 1, (1 + 2 / 3) / 2),
    # 1 1 0, 1 0 1 and 0 1 1
    ("(1 1 0)", "", "MAP", (1 + 5 / 6 + 7 / 12) / 3, (1 + 1) / 2, (1 / 2 + 2 / 3) / 2),
    ("(1 1 0)", "", "Recall@2", (2 / 2 + 1 / 2 + 1 / 2) / 3, 1, 1 / 2),
    ("(1 0)", "1", "Recall@1", (1 / 2) / 2, 1 / 2, 0),
    ("(1 0)", "1", "R_cap@1", 1 / 2, 1, 0),
    ("(1 0 0)", "", "Precision@1", 1 / 3, 1, 0),
    ("1 (1 0) 0", "", "Precision@2", (1 + 1 / 2) / 2, 1, 1 / 2),
    ("(1 0)", "", "F1@1", 1 / 2, 1, 0),
    ("0 (1 1 0)", "", "Hits@3", (2 + 1 + 1) / 3, 2, 1),
    ("(1 0 0)", "", "Success@2", 2 / 3, 1, 0),
    ("(1 1 0 0)", "", "Success@2", 1 - (2 / 4) * (1 / 3), 1, 0),
    ("0 (1 1 0)", "", "R-Precision", (1 / 2 + 1 / 2 + 0) / 3, 1 / 2, 0),
    ("(1 0)", "", "RBP(p=0.5)", (1 / 2 + 1 / 4) / 2, 1 / 2, 1 / 4),
    # 2 1 and 1 2
    ("(2 1)", "", "RBP(p=0.5, gain='scaled')", (5 / 8 + 4 / 8) / 2, 5 / 8, 4 / 8),
    ("(1 -)", "", "RBP-residual(p=0.5)@2", (1 / 4 + 1 / 2) / 2, 1 / 2, 1 / 4),
    ("(1 0)", "", "bpref", 1 / 2, 1, 0),
    ("1 (1 - 0 0)", "1", "bpref", (1 + (1 + 1 / 2 + 0) / 3) / 3, 2 / 3, 1 / 3),
    ("(1 0)", "", "ERR", (1 / 2 + 1 / 4) / 2, 1 / 2, 1 / 4),
    # 2 1 and 1 2: the reader stops at grade 2 with 3/4, at grade 1 with 1/4
    ("(2 1)", "", "ERR", (25 / 32 + 17 / 32) / 2, 3 / 4 + 1 / 4 / 4 / 2, 1 / 4 + 3 / 4 * 3 / 4 / 2),
    ("(0 -)", "1", "Judged@1", 1 / 2, 1, 0),
]

STANDARD_DEVIATIONS = [
    # ranked, measure, tie std: half the range where the two orders of a pair are all there is
    ("(1 0)", "nDCG@1", 1 / 2),
    ("(1 0)", "nDCG", (1 - 1 / L3) / 2),
    ("(3 1)", "DCG@1", (3 - 1) / 2),
    ("(1 0)", "MRR", (1 - 1 / 2) / 2),
    ("(1 0)", "MAP", (1 - 1 / 2) / 2),
    ("(1 0)", "RBP(p=0.5)", (1 / 2 - 1 / 4) / 2),
    ("(2 1)", "RBP(p=0.5, gain='scaled')", (5 / 8 - 4 / 8) / 2),
    ("(1 -)", "RBP-residual(p=0.5)@2", (1 / 2 - 1 / 4) / 2),
    ("(1 0)", "bpref", 1 / 2),
    ("(1 0)", "Precision@2", 0),
    # the three orders give 1, 0 and 0
    ("(1 0 0)", "Recall@1", math.sqrt(1 / 3 * 2 / 3)),
    ("(1 0 0)", "Success@1", math.sqrt(1 / 3 * 2 / 3)),
    # the three orders give 2, 1 and 1
    ("(1 1 0)", "Hits@2", math.sqrt(2) / 3),
]


def evaluated(ranked: str, unretrieved: str, measure: str) -> dh.evaluation.Summary:
    run, qrels = {}, {}
    for i, group in enumerate(re.findall(r"\(.*?\)|\S+", ranked)):
        for grade in group.strip("()").split():
            document = f"d{len(run)}"
            run[document] = -i / 8
            if grade != "-":
                qrels[document] = int(grade)
    qrels |= {f"unretrieved{i}": int(grade) for i, grade in enumerate(unretrieved.split())}
    return dh.evaluate({"q": qrels}, {"q": run}, measure, queries="all")[measure]


pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")


@pytest.mark.parametrize(("ranked", "unretrieved", "measure", "value"), WITHOUT_TIES)
def test_without_ties(ranked, unretrieved, measure, value):
    views = evaluated(ranked, unretrieved, measure)
    for view in (views.expected, views.best, views.worst, views.oblivious):
        assert view == pytest.approx(value, abs=1e-15)
    assert views.std == 0 or not dh.measures.parse_measure(measure).has_variance


@pytest.mark.parametrize(
    ("ranked", "unretrieved", "measure", "expected", "best", "worst"), WITH_TIES
)
def test_with_ties(ranked, unretrieved, measure, expected, best, worst):
    views = evaluated(ranked, unretrieved, measure)
    assert views.expected == pytest.approx(expected, abs=1e-15)
    assert views.best == pytest.approx(best, abs=1e-15)
    assert views.worst == pytest.approx(worst, abs=1e-15)


@pytest.mark.parametrize(("ranked", "measure", "std"), STANDARD_DEVIATIONS)
def test_standard_deviations(ranked, measure, std):
    assert evaluated(ranked, "", measure).std == pytest.approx(std, abs=1e-15)


@pytest.mark.parametrize("table", [WITHOUT_TIES, WITH_TIES], ids=["without ties", "with ties"])
def test_every_measure_is_there(table):
    assert {dh.measures.parse_measure(row[2]).name for row in table} == {m.name for m in MEASURES}
