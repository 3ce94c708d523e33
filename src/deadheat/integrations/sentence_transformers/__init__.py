"""sentence-transformers models that score in high, or deliberately low, precision."""

from deadheat.integrations.sentence_transformers.views import high_precision, low_precision

__all__ = ["high_precision", "low_precision"]
