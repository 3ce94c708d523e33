"""The type of a retrieval dataset, loaded and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from deadheat.provenance import DatasetProvenance


@dataclass(frozen=True)
class RetrievalDataset:
    """Queries, documents, candidates and judgements, and where they came from.

    Attributes
    ----------
    name
        The hub id, the name of the folder, or the ``ir_datasets:`` id.
    queries
        Query id to text, in the dataset's order; every query has a relevant document.
    corpus
        Document id to text (title and text joined by a space), in the dataset's order. If there
        are candidate lists, only documents that are listed or judged.
    judgements
        Query id to document id to grade; a grade above zero means relevant. A judged document
        that is not in the corpus is empty, and cannot be retrieved.
    candidates
        Query id to the documents to score, in order; ``None`` means the whole corpus,
        in its order.
    candidate_rule
        The rule that made the candidate lists, as text.
    subset, split, revision
        Part and version of the source; ``revision`` is the commit on the hub, if it is known.
    cut_inside_ties
        Queries whose BM25 list was cut between documents of equal score.
    left_out
        Descriptions of dropped data, each with its count.

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

    @property
    def pairs(self) -> int:
        """Number of query-document pairs to score."""
        if self.candidates is None:
            return len(self.queries) * len(self.corpus)
        return sum(len(documents) for documents in self.candidates.values())

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Queries without a relevant document among their candidates; they score 0."""
        unreachable = []
        for query, grades in self.judgements.items():
            listed = self.corpus if self.candidates is None else set(self.candidates[query])
            if not any(grade > 0 and doc in listed for doc, grade in grades.items()):
                unreachable.append(query)
        return tuple(unreachable)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the content, independent of the source files.

        It depends on the order of candidates, and on the order of the corpus if that is the
        candidate list. It does not depend on the order of queries and judgements, nor on names and
        revisions.
        """
        lists, corpus = self.candidates, self.corpus.items()
        digest = hashlib.sha256()

        def update(*record: object) -> None:
            digest.update(json.dumps(record).encode() + b"\n")

        for document, text in corpus if lists is None else sorted(corpus):
            update("document", document, text)
        for query, text in sorted(self.queries.items()):
            grades = self.judgements[query]
            update("query", query, text)
            update("grades", {document: float(grades[document]) for document in sorted(grades)})
            update("candidates", None if lists is None else lists[query])
        return digest.hexdigest()

    def provenance(self) -> DatasetProvenance:
        """Return the facts that identify this data, to store with results."""
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
