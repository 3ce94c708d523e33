"""PyTerrier: experiments with tie-aware measures, offline and without Java."""

from __future__ import annotations

import pytest
from needed import import_host
from quiet import quiet

import deadheat as dh

pt = import_host("pyterrier")

import pandas as pd  # noqa: E402

# Warnings of the host libraries are not under test.
pytestmark = pytest.mark.filterwarnings("default")

from deadheat.integrations import ir_measures as ours  # noqa: E402

QRELS = {"q1": {"d1": 1}, "missed": {"d1": 1}, "q2": {"d1": 2, "d2": 1}}
RUN = {"q1": dict.fromkeys(["d0", "d1", "d2"], 0.5), "q2": {"d1": 0.5, "d3": 0.5, "d2": 0.25}}
TOPICS = pd.DataFrame({"qid": list(QRELS), "query": list(QRELS)})
LABELS = pd.DataFrame(
    [(q, d, grade) for q, docs in QRELS.items() for d, grade in docs.items()],
    columns=["qid", "docno", "label"],
)


def make_system():
    rows = [(q, d, s, 0) for q, docs in RUN.items() for d, s in docs.items()]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])
    return pt.Transformer.from_df(frame)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_experiment_reports_every_view(batch_size):
    names = {prefix: getattr(ours, f"{prefix}_nDCG") @ 2 for prefix in ours.VIEW_PREFIXES}
    [row] = pt.Experiment(
        [make_system()], TOPICS, LABELS, [*names.values()], names=["x"], batch_size=batch_size
    ).to_dict("records")
    result = quiet(dh.evaluate)(QRELS, RUN, "nDCG@2", tie_break="pytrec_eval")
    assert result["nDCG@2"].queries == 3
    # PyTerrier averages the values of every measure over queries, tie stds too.
    for prefix, view in ours.VIEW_PREFIXES.items():
        mean = result.per_query[view].mean()
        assert row[f"{prefix}_nDCG@2"] == pytest.approx(mean), view
    assert row["Std_nDCG@2"] > result["nDCG@2"].std > 0


def test_per_query_values_of_named_measures():
    table = pt.Experiment(
        [make_system()], TOPICS, LABELS, ["recip_rank", ours.E_RR @ 10], names=["x"], perquery=True
    )
    values = table[table["measure"] == "E_RR@10"].set_index("qid")["value"]
    assert values.to_dict() == pytest.approx(
        {"q1": (1 + 1 / 2 + 1 / 3) / 3, "q2": 0.75, "missed": 0}
    )
