"""MTEB: models in a named regime, tasks whose results know of ties, and stored predictions.

MTEB is imported when one of these is called, so stored predictions can be read without it.
"""

from deadheat.integrations.mteb.cache import tie_aware_cache
from deadheat.integrations.mteb.evaluate import evaluate
from deadheat.integrations.mteb.models import wrap
from deadheat.integrations.mteb.scores import tie_aware_scores
from deadheat.integrations.mteb.tasks import tie_aware

__all__ = ["evaluate", "tie_aware", "tie_aware_cache", "tie_aware_scores", "wrap"]
