"""Integrations with other libraries: one module per library.

Shared code is in `base` and `corpus_counts`. No module imports another, except that of MTEB, which
runs models of sentence-transformers.
"""
