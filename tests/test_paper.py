"""Numbers of the paper: Figure 1 and Appendix B."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import deadheat as dh

# Appendix B: scores of Qwen3-Reranker-0.6B for the first query of MIRACLReranking. Run-length
# encoded in BF16, as printed with HPS.
BF16 = (
    [1.0] * 10
    + [0.99609375] * 19
    + [0.9921875] * 13
    + [0.98828125] * 7
    + [0.984375] * 2
    + [0.98046875]
    + [0.9765625] * 2
    + [0.97265625]
    + [0.96875] * 6
    + [0.9609375] * 4
    + [0.95703125] * 5
    + [0.953125] * 2
    + [0.94921875] * 2
    + [0.9453125] * 3
    + [0.94140625] * 2
    + [0.93359375]
    + [0.92578125] * 2
    + [0.91796875, 0.9140625]
    + [0.88671875] * 2
    + [0.87890625] * 2
    + [0.875, 0.8671875, 0.77734375, 0.609375, 0.515625, 0.46875, 0.34960938]
    + [0.30664062, 0.28125, 0.17285156, 0.08496094, 0.02441406]
)
HPS = np.fromstring(
    """
    0.99948066 0.99933332 0.99929035 0.99919587 0.99914408 0.99883050 0.99883050 0.99875510
    0.99858958 0.99829930 0.99767691 0.99767691 0.99752742 0.99752742 0.99736834 0.99719906
    0.99719906 0.99701905 0.99682730 0.99662340 0.99662340 0.99592990 0.99566853 0.99566853
    0.99509466 0.99509466 0.99477994 0.99444515 0.99444515 0.99408901 0.99408901 0.99408901
    0.99330717 0.99330717 0.99330717 0.99242276 0.99142247 0.99142247 0.99142247 0.99087441
    0.99087441 0.99029154 0.98967183 0.98901308 0.98901308 0.98901308 0.98831278 0.98831278
    0.98756832 0.98593640 0.98409361 0.98201376 0.97838473 0.97702265 0.97404259 0.97068775
    0.96885622 0.96885622 0.96885622 0.96691406 0.96691406 0.96267307 0.96036118 0.96036118
    0.96036118 0.95791227 0.95791227 0.95791227 0.95791227 0.95531917 0.95257413 0.95257413
    0.94966936 0.94966936 0.94659668 0.94659668 0.94659668 0.93991333 0.93991333 0.93245327
    0.92414182 0.92414182 0.91964257 0.91490096 0.88720459 0.88720459 0.88079703 0.88079703
    0.87407720 0.86703575 0.77729988 0.60766321 0.51561993 0.46879065 0.34864515 0.30735803
    0.28140560 0.17328820 0.08509904 0.02442309
    """,
    sep=" ",
)


def test_figure_1():
    """One document above three tied ones of which two are relevant: R@3 depends on the order."""
    scores = [[0.99, 0.97, 0.97, 0.97, 0.95]]
    relevance = [[1, 1, 0, 1, 0]]
    recall = dh.evaluate_arrays(relevance, scores, ["R@3"])["R@3"]
    assert recall.worst == pytest.approx(2 / 3)
    assert recall.best == 1
    assert recall.expected == pytest.approx((1 + 2 * 2 / 3) / 3)


def test_rounding_the_hps_scores_to_bf16_gives_the_bf16_scores():
    rounded = np.array(HPS, np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_allclose(rounded, BF16, atol=5e-9)


@pytest.mark.parametrize(
    ("scores", "distinct", "largest"), [(BF16, 33, 19), (HPS, 66, 4)], ids=["bf16", "hps"]
)
def test_tie_groups_shrink_under_hps(scores, distinct, largest):
    counter = dh.ties.TieCounter(1, np.zeros(100), scores, np.ones(100), np.arange(100))
    counter.update([scores])
    groups = counter.groups()
    assert len(groups.size) == distinct
    assert groups.size.max() == largest
    assert groups.size.sum() == 100
