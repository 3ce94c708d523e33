"""Scores from logits or embeddings, in a named precision: native, hps or head."""

from deadheat.dtypes import FORMATS, Format, parse_format
from deadheat.scoring.functions import hamming, head_logits, product, sigmoid, softmax
from deadheat.scoring.products import Products
from deadheat.scoring.regimes import (
    REGIMES,
    SCORED,
    Regime,
    describe_regime,
    parse_regime,
    resolve_backend,
    score,
    scoring_format,
    scoring_provenance,
)

__all__ = [
    "FORMATS",
    "REGIMES",
    "SCORED",
    "Format",
    "Products",
    "Regime",
    "describe_regime",
    "hamming",
    "head_logits",
    "parse_format",
    "parse_regime",
    "product",
    "resolve_backend",
    "score",
    "scoring_format",
    "scoring_provenance",
    "sigmoid",
    "softmax",
]
