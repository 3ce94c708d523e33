"""The measures, one file each; this table is their order in every listing."""

from deadheat.measures.base import Measure
from deadheat.measures.bpref import bpref
from deadheat.measures.dcg import DCG
from deadheat.measures.err import ERR
from deadheat.measures.f1 import F1
from deadheat.measures.hits import Hits
from deadheat.measures.judged import Judged
from deadheat.measures.map import MAP
from deadheat.measures.mrr import MRR
from deadheat.measures.ndcg import nDCG
from deadheat.measures.precision import Precision
from deadheat.measures.r_cap import RCap
from deadheat.measures.rbp import RBP
from deadheat.measures.rbp_residual import RBPResidual
from deadheat.measures.recall import Recall
from deadheat.measures.rprec import RPrecision
from deadheat.measures.success import Success

MEASURES: tuple[Measure, ...] = (
    nDCG,
    DCG,
    MRR,
    MAP,
    Recall,
    RCap,
    Precision,
    F1,
    Hits,
    Success,
    RPrecision,
    bpref,
    RBP,
    RBPResidual,
    ERR,
    Judged,
)

__all__ = [
    "DCG",
    "ERR",
    "F1",
    "MAP",
    "MEASURES",
    "MRR",
    "RBP",
    "Hits",
    "Judged",
    "Measure",
    "Precision",
    "RBPResidual",
    "RCap",
    "RPrecision",
    "Recall",
    "Success",
    "bpref",
    "nDCG",
]
