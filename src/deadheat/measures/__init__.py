"""The measures, one file each. Listings use the order of these imports."""

# ruff: isort: off
from deadheat.measures.base import Measure as Measure
from deadheat.measures.ndcg import nDCG as nDCG
from deadheat.measures.dcg import DCG as DCG
from deadheat.measures.mrr import MRR as MRR
from deadheat.measures.map import MAP as MAP
from deadheat.measures.recall import Recall as Recall
from deadheat.measures.r_cap import RCap as RCap
from deadheat.measures.precision import Precision as Precision
from deadheat.measures.f1 import F1 as F1
from deadheat.measures.hits import Hits as Hits
from deadheat.measures.success import Success as Success
from deadheat.measures.rprec import RPrecision as RPrecision
from deadheat.measures.bpref import bpref as bpref
from deadheat.measures.rbp import RBP as RBP
from deadheat.measures.rbp_residual import RBPResidual as RBPResidual
from deadheat.measures.err import ERR as ERR
from deadheat.measures.judged import Judged as Judged

MEASURES: tuple[Measure, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Measure)
)
"""Every measure, with its default parameters."""

# The parser imports the measures above.
from deadheat.measures.kernel import KERNEL_VIEWS as KERNEL_VIEWS  # noqa: E402
from deadheat.measures.parse import (  # noqa: E402
    parse_measure as parse_measure,
    parse_measures as parse_measures,
)
