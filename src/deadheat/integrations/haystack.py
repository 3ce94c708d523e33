"""Haystack: a component that evaluates retrieved documents, and looks at their scores.

Haystack's own evaluators take documents in the order they come in, and never read the scores that
the retriever wrote on them.
"""

# No `from __future__ import annotations`: Haystack reads the types of `run` to check connections.
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, Result, check_views, evaluate_source
from deadheat.formats import read_qrels
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.packages import require_host
from deadheat.remarks import emit_warnings
from deadheat.settings import EvalSettings

_haystack: Any = require_host("haystack", "haystack", "`deadheat.integrations.haystack`")
if TYPE_CHECKING:
    from haystack import Document
else:
    Document = _haystack.Document


@_haystack.component
class TieAwareDocumentEvaluator:
    """Evaluates retrieved documents as Haystack's document evaluators do, with every view of ties.

    Every question counts, one without a retrieved or a relevant document as 0. A document that was
    retrieved twice counts where its score is highest.

    Parameters
    ----------
    measures
        As for `deadheat.evaluate`.
    views
        Which views of each.
    document_comparison_field
        What makes two documents the same: ``"content"``, ``"id"``, or a key of their ``meta`` such
        as ``"meta.file_id"``, as in Haystack.

    Examples
    --------
    >>> from haystack import Document
    >>> evaluator = TieAwareDocumentEvaluator(["MRR"], ["expected", "range"])
    >>> retrieved = [Document(content="heat", score=0.5), Document(content="cold", score=0.5)]
    >>> evaluator.run([[Document(content="heat")]], [retrieved])["metrics"]
    {'MRR': 0.75, 'MRR_range': 0.5}
    """

    def __init__(
        self,
        measures: str | Measure | Iterable[Any] = ("nDCG@10", "MRR@10"),
        views: Sequence[str] = VIEWS,
        document_comparison_field: str = "content",
    ) -> None:
        self.measures = parse_measures(measures)
        check_views(views)
        self.views = list(views)
        parts = document_comparison_field.split(".")
        if parts[0] not in ("content", "id", "meta") or (len(parts) > 1) != (parts[0] == "meta"):
            raise InputError(
                "document_comparison_field must be 'content', 'id' or 'meta.KEY', not "
                f"{document_comparison_field!r:.60}"
            )
        self.document_comparison_field = document_comparison_field

    def to_dict(self) -> dict[str, Any]:
        """Give what a stored pipeline holds of the component."""
        stored: dict[str, Any] = _haystack.default_to_dict(
            self,
            measures=[repr(measure) for measure in self.measures],
            views=self.views,
            document_comparison_field=self.document_comparison_field,
        )
        return stored

    @_haystack.component.output_types(  # type: ignore[untyped-decorator]
        score=float, individual_scores=list[float], metrics=dict[str, float], result=Result
    )
    def run(
        self,
        ground_truth_documents: list[list[Document]],
        retrieved_documents: list[list[Document]],
    ) -> dict[str, Any]:
        """Evaluate a list of retrieved documents for each question.

        Parameters
        ----------
        ground_truth_documents
            The relevant documents of each question. Their scores are grades, if they have any.
        retrieved_documents
            The documents retrieved for each question, with the retriever's scores.

        Returns
        -------
        dict
            ``score`` and ``individual_scores``: the expectation of the first measure, as the
            outputs of Haystack's evaluators; ``metrics``: all views by name; ``result``: the
            `deadheat.Result` with every question.
        """
        n = len(ground_truth_documents)
        if not n or n != len(retrieved_documents):
            raise InputError(
                f"{n} lists of ground_truth_documents and {len(retrieved_documents)} of "
                "retrieved_documents: give one of each for every question"
            )
        qrels, run = {}, {}
        for i, (truth, retrieved) in enumerate(
            zip(ground_truth_documents, retrieved_documents, strict=True)
        ):
            qrels[str(i)], run[str(i)] = self._lists(i, truth, retrieved)
        result = evaluate_source(read_qrels(qrels), run, self.measures, EvalSettings(queries="all"))
        emit_warnings(result.warnings)
        first = result.views[self.measures[0]].expected.tolist()
        return {
            "score": result[self.measures[0]].expected,
            "individual_scores": first,
            "metrics": result.flat(views=self.views),
            "result": result,
        }

    def _lists(
        self, question: int, truth: Sequence[Document], retrieved: Sequence[Document]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Grades and scores of a question's documents, by ids that tell documents apart."""
        if len({document.score is None for document in truth}) > 1:
            raise InputError(
                f"question {question}: some ground_truth_documents have a score and some have "
                "none; their scores are grades: give all or none"
            )
        values: list[Any] = []  # not all can be keys of a dict
        grades: dict[str, float] = {}
        for document in truth:
            value = self._compared(document)
            if value is None:
                continue
            if value not in values:
                values.append(value)
            name = f"relevant {values.index(value)}"
            grade = 1.0 if document.score is None else document.score
            grades[name] = max(grades.get(name, grade), grade)
        listed: dict[str, float] = {}
        for place, document in enumerate(retrieved):
            if document.score is None:
                raise InputError(
                    f"question {question}: the retrieved document {document.id!r:.60} has no "
                    "score, and without scores nobody can tell ties: use a retriever that scores"
                )
            value = self._compared(document)
            name = f"other {place}"
            if value is not None and value in values:
                name = f"relevant {values.index(value)}"
            if name in listed:  # once more: the better place counts
                listed[f"other {place}"] = min(listed[name], document.score)
                listed[name] = max(listed[name], document.score)
            else:
                listed[name] = document.score
        # What no document is relevant or retrieved to counts as 0: an irrelevant one stands there.
        return grades or {"nothing": 0.0}, listed or {"other": 0.0}

    def _compared(self, document: Document) -> Any:
        """What makes a document the same as another; None where it has no such thing."""
        field, *keys = self.document_comparison_field.split(".")
        value: Any = getattr(document, field)
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value
