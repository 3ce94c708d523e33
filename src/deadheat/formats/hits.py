"""Read the hits of one query, as search services, rerankers and libraries return them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from deadheat.errors import InputError

HIT_SHAPES = (
    ("id", "score"),  # Pinecone, Qdrant, Haystack, PyLate
    ("_id", "_score"),  # Elasticsearch, OpenSearch
    ("doc_id", "score"),  # ir_datasets, ir_measures
    ("docid", "score"),  # Pyserini
    ("node_id", "score"),  # LlamaIndex
    ("corpus_id", "score"),  # sentence-transformers: rank, semantic_search
    ("index", "relevance_score"),  # Cohere, Jina, vLLM, Voyage
    ("index", "score"),  # Text Embeddings Inference
    ("id", "relevance"),  # Vespa
    ("id", "distance"),  # Milvus
)
"""Keys or attributes of a hit: the name of the document id, and the name of the score.

The first pair of names that a hit has is used. An index is the id of the document.
"""
_DISTANCE = "distance"
_HOW_TO = (
    "whether a larger one is better depends on the metric: write deadheat.search_results({query: "
    "hits}, larger_is_better=False), or True"
)


def read_hits(at: str, hits: Iterable[object], *, is_oriented: bool) -> list[tuple[object, object]]:
    """Return the id and the score of each hit.

    A hit is a dict or an object of one of `HIT_SHAPES`, a pair ``(id, score)``, or LangChain's
    pair ``(Document, score)``.

    Parameters
    ----------
    at
        Location of the hits, the start of a message.
    is_oriented
        Whether the caller passed `larger_is_better`. Otherwise distances are an error, and so are
        LangChain's pairs if the scores of the list rise, because its lists are best first.
    """
    pairs = [_read_hit(f"{at}, hit {i}", hit, is_oriented) for i, hit in enumerate(hits)]
    if not is_oriented and any(map(_has_document, hits)):
        scores: list[Any] = [score for _, score in pairs]
        are_numbers = all(isinstance(score, (int, float, np.number)) for score in scores)
        if are_numbers and scores[0] < scores[-1] and all(a <= b for a, b in pairwise(scores)):
            raise InputError(f"{at}: the scores rise along the list, as distances do; {_HOW_TO}")
    return pairs


def _read_hit(at: str, hit: object, is_oriented: bool) -> tuple[object, object]:
    for shape in HIT_SHAPES:
        doc, score = (_get(hit, name) for name in shape)
        if doc is _MISSING or score is _MISSING:
            continue
        if shape[1] == _DISTANCE and not is_oriented:
            raise InputError(f"{at} has a distance, and {_HOW_TO}")
        return doc, score
    if isinstance(hit, (list, tuple)) and len(hit) == 2 and not isinstance(hit[1], (str, bytes)):
        return _read_pair(at, hit)
    known = ", ".join("/".join(shape) for shape in HIT_SHAPES)
    keys = f"a dict of {', '.join(map(str, hit)) or 'no keys'}" if isinstance(hit, Mapping) else ""
    raise InputError(
        f"{at} is {keys or repr(hit):.200}; a hit must be a pair (document, score), or have one of "
        f"{known}; groups of tied documents without scores are read by "
        "deadheat.formats.ranked_groups"
    )


def _read_pair(at: str, pair: list[Any] | tuple[Any, ...]) -> tuple[object, object]:
    """Read (id, score) or (Document, score); raise an error for numbers that may be two ids."""
    doc, score = pair
    if isinstance(pair, list) and all(isinstance(value, (int, np.integer)) for value in pair):
        raise InputError(
            f"{at}: {pair!r:.60} may be a document and its score, or two tied documents; write the "
            "pair as a tuple, or give groups to deadheat.formats.ranked_groups"
        )
    if not _has_document(pair):
        return doc, score
    if doc.id is None:
        metadata = ", ".join(map(str, getattr(doc, "metadata", ()))) or "nothing"
        raise InputError(
            f"{at}: the id of the Document is None; give documents ids when they are indexed, or "
            f"write pairs (id, score) with an id of its metadata, which holds {metadata:.200}"
        )
    return doc.id, score


_MISSING = object()


def _get(hit: object, name: str) -> object:
    """Return a key or an attribute of a hit, but no methods."""
    if isinstance(hit, Mapping):
        return hit.get(name, _MISSING)
    value = getattr(hit, name, _MISSING)
    return _MISSING if callable(value) else value


def _has_document(hit: object) -> bool:
    """Return whether a hit is LangChain's pair of a Document and a score."""
    return isinstance(hit, (list, tuple)) and len(hit) == 2 and hasattr(hit[0], "page_content")
