"""The type of a retrieval dataset, loaded and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from deadheat.provenance import DatasetProvenance
from deadheat.remarks import Remark, texts


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
        Document id to text (title and text joined by a space), in the dataset's order. Where
        there are candidate lists, only documents that are listed or judged.
    judgements
        Query id to document id to grade; a grade above zero means relevant. A judged document
        that the corpus lacks is empty, and cannot be retrieved.
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
    left_out
        What was dropped, in words, and how much of it.
    remarks
        What the user of the dataset should know.

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
    left_out: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """The texts of the remarks that are warnings."""
        return texts(self.remarks, "warning")

    @property
    def pairs(self) -> int:
        """How many query-document pairs there are to score."""
        if self.candidates is None:
            return len(self.queries) * len(self.corpus)
        return sum(len(documents) for documents in self.candidates.values())

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Queries none of whose relevant documents is a candidate; they score 0."""
        return tuple(query for query in self.queries if not self._is_reachable(query))

    def _is_reachable(self, query: str) -> bool:
        listed = self.corpus if self.candidates is None else set(self.candidates[query])
        return any(grade > 0 and doc in listed for doc, grade in self.judgements[query].items())

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

    def provenance(self) -> DatasetProvenance:
        """Return everything that is needed to trace a number back to this data."""
        return DatasetProvenance(
            name=self.name,
            subset=self.subset,
            split=self.split,
            revision=self.revision,
            content_hash=self.content_hash,
            candidates=self.candidate_rule,
            queries=len(self.queries),
            documents=len(self.corpus),
            pairs=self.pairs,
            cut_inside_ties=len(self.cut_inside_ties),
            unreachable=len(self.unreachable),
            left_out=self.left_out,
        )
