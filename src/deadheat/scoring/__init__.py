"""Compute scores from logits or embeddings, in a named precision (`REGIMES`)."""

from deadheat._internal.dtypes import (
    FORMATS as FORMATS,
    Format as Format,
    parse_format as parse_format,
)
from deadheat.scoring.functions import (
    hamming as hamming,
    head_logits as head_logits,
    log_odds as log_odds,
    product as product,
    sigmoid as sigmoid,
    softmax as softmax,
)
from deadheat.scoring.head import (
    PROBE as PROBE,
    Activation as Activation,
    find_head as find_head,
    head_input as head_input,
    last_position as last_position,
    logit_rows as logit_rows,
    watch as watch,
)
from deadheat.scoring.outputs import Scores as Scores, Scoring as Scoring, score as score
from deadheat.scoring.products import (
    Matrix as Matrix,
    Product as Product,
    Products as Products,
    single_thread_blas as single_thread_blas,
)
from deadheat.scoring.regimes import (
    REGIMES as REGIMES,
    SCORED as SCORED,
    Regime as Regime,
    describe_regime as describe_regime,
    parse_regime as parse_regime,
    ranks_by_logit as ranks_by_logit,
    regime_order as regime_order,
    resolve_backend as resolve_backend,
    scoring_format as scoring_format,
    scoring_provenance as scoring_provenance,
    uses_head as uses_head,
)
