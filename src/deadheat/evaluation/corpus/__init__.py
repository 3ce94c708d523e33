"""Evaluate embeddings against a whole corpus that need not fit in memory.

The steps are in `evaluate.py`: scan the ids, score the judged documents, count all blocks, merge
the counts, build the tie groups.
"""

from deadheat.evaluation.corpus.chunks import (
    open_shards as open_shards,
    score_blocks as score_blocks,
)
from deadheat.evaluation.corpus.evaluate import (
    Corpus as Corpus,
    evaluate_corpus as evaluate_corpus,
    evaluate_shards as evaluate_shards,
)
