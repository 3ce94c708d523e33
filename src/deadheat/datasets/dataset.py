"""What a retrieval dataset is, once loaded and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Counts:
    """What was dropped or found odd on the way in.

    Attributes
    ----------
    queries_without_judgements
        Queries dropped because the split judges nothing for them.
    queries_without_relevant
        Queries dropped because no judged document has a grade above zero, as in the paper.
    queries_without_candidates
        Queries dropped because the dataset gives no candidates for them.
    queries_beyond_limit
        Queries left out because the caller asked for fewer.
    queries_without_relevant_candidate
        Queries kept although none of their relevant documents is among their candidates.
    repeated_judgements
        Judgements dropped because the same pair carries the same grade already.
    empty_queries
        Kept queries without text.
    empty_documents
        Documents of the corpus without text.
    """

    queries_without_judgements: int = 0
    queries_without_relevant: int = 0
    queries_without_candidates: int = 0
    queries_beyond_limit: int = 0
    queries_without_relevant_candidate: int = 0
    repeated_judgements: int = 0
    empty_queries: int = 0
    empty_documents: int = 0


@dataclass(frozen=True)
class RetrievalDataset:
    """Queries, documents, candidates and judgements, and where they came from.

    Attributes
    ----------
    name
        The hub id, the name of the folder, or the ``ir_datasets:`` id.
    queries
        Query id to text, in the dataset's order; every one has a relevant document.
    corpus
        Document id to text (title and text joined by a space), in the dataset's order.
    judgements
        Query id to document id to grade; a grade above zero means relevant.
    candidates
        Query id to the documents to score, in order; ``None`` means the whole corpus,
        in its order.
    candidate_rule
        How the candidates came about, in words.
    subset, split, revision
        Which part and which version of the source was read; ``revision`` is the commit
        on the hub where it is known.
    cut_inside_ties
        Queries whose BM25 list was cut between documents of equal score.
    counts
        What was dropped or found odd.

    Examples
    --------
    >>> data = RetrievalDataset(
    ...     "tiny", queries={"q": "what"}, corpus={"a": "this", "b": "that"},
    ...     judgements={"q": {"b": 1}}, candidates={"q": ["a", "b"]},
    ... )
    >>> data.pairs
    2
    """

    name: str
    queries: Mapping[str, str]
    corpus: Mapping[str, str]
    judgements: Mapping[str, Mapping[str, float]]
    candidates: Mapping[str, list[str]] | None = None
    candidate_rule: str = "given"
    subset: str | None = None
    split: str | None = None
    revision: str | None = None
    cut_inside_ties: tuple[str, ...] = ()
    counts: Counts = field(default_factory=Counts)

    @property
    def pairs(self) -> int:
        """How many query-document pairs there are to score."""
        if self.candidates is None:
            return len(self.queries) * len(self.corpus)
        return sum(len(documents) for documents in self.candidates.values())

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the content, whatever file it was read from.

        The order of candidates counts, and that of the corpus where it is the candidate
        list; the order of queries and judgements does not, nor do names and revisions.
        """
        digest = hashlib.sha256()
        for record in self._canonical_records():
            digest.update(json.dumps(record).encode() + b"\n")
        return digest.hexdigest()

    def _canonical_records(self) -> Iterator[list[Any]]:
        in_order = self.candidates is None
        for document, text in self.corpus.items() if in_order else sorted(self.corpus.items()):
            yield ["document", document, text]
        for query, text in sorted(self.queries.items()):
            grades = self.judgements[query]
            yield ["query", query, text]
            yield ["grades", {document: float(grades[document]) for document in sorted(grades)}]
            yield ["candidates", None if self.candidates is None else self.candidates[query]]

    def provenance(self) -> dict[str, Any]:
        """Everything needed to trace a number back to this data, ready for JSON."""
        return {
            "name": self.name,
            "subset": self.subset,
            "split": self.split,
            "revision": self.revision,
            "content_hash": self.content_hash,
            "candidates": self.candidate_rule,
            "queries": len(self.queries),
            "documents": len(self.corpus),
            "pairs": self.pairs,
            "cut_inside_ties": len(self.cut_inside_ties),
            "counts": asdict(self.counts),
        }
