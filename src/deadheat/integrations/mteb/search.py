"""A search of a whole corpus by MTEB, with every score counted as it passes by.

MTEB keeps a thousand documents of each query. Which of those that tie with the last one it
keeps is chance, and how many they are is lost; here they are counted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from deadheat.integrations.corpus_counts import CorpusCounts


def counting_search(encoder: Any, counts_of: Any) -> Any:
    """Give MTEB's search for an encoder, which counts what `counts_of` a search asks for.

    `counts_of` is called with the ids of queries and corpus, and the search's subset and split.
    """
    from mteb.models import SearchEncoderWrapper

    search = _search_class(SearchEncoderWrapper)(encoder)
    search.counts_of = counts_of
    return search


class _CountingSearch:
    model: Any
    task_corpus: Any
    counts_of: Any

    def search(self, queries: Any, *, top_ranked: Any = None, **options: Any) -> Any:
        """Search as MTEB does; a search of the whole corpus is counted."""
        upstream: Any = super()
        if top_ranked is not None:
            return upstream.search(queries, top_ranked=top_ranked, **options)
        encoder = self.model
        counts = self.counts_of(
            list(queries["id"]),
            list(self.task_corpus["id"]),
            subset=options["hf_subset"],
            split=options["hf_split"],
        )
        self.model = _Tap(encoder, counts)
        try:
            return upstream.search(queries, top_ranked=None, **options)
        finally:
            self.model = encoder


class _Tap:
    """An encoder whose scores are counted as they pass by."""

    def __init__(self, encoder: Any, counts: CorpusCounts) -> None:
        self.encoder = encoder
        self.counts = counts

    def similarity(self, queries: Any, documents: Any) -> Any:
        """Score as the encoder does."""
        scores = self.encoder.similarity(queries, documents)
        self.counts.add(scores)
        return scores

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)


@lru_cache
def _search_class(base: Any) -> Any:
    return type("CountingSearch", (_CountingSearch, base), {})
