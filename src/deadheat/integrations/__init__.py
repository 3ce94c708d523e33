"""Other libraries' objects and extension points: one module per library.

What the modules share is in `base` and `corpus_counts`. No module imports another, except where one
library runs the models of another: MTEB those of sentence-transformers.
"""
