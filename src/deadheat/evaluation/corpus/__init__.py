"""Evaluate embeddings against a whole corpus that need not fit in memory.

The steps are in `evaluate.py`: scan the ids, score the judged documents, count all blocks, merge
the counts, make tie groups of them.
"""
