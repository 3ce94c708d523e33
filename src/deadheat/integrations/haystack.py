"""Haystack: a component that evaluates retrieved documents by their scores.

Haystack's own evaluators use the order of the documents, and ignore the scores of the retriever.
"""

# No `from __future__ import annotations`: Haystack reads the types of `run` to check connections.
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deadheat._internal.remarks import emit_warnings
from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, Result, check_views, evaluate_run
from deadheat.formats import read_qrels
from deadheat.integrations.base import ALL_QUERIES, Measures, load_host, no_score
from deadheat.measures import parse_measures

_haystack = load_host("haystack")
if TYPE_CHECKING:
    from haystack import Document
else:
    Document = _haystack.Document


@_haystack.component
class TieAwareDocumentEvaluator:
    """Evaluates retrieved documents like Haystack's document evaluators, with every view of ties.

    The mean is over all questions; a question without a retrieved or a relevant document counts
    as 0. A document that was retrieved twice counts once, with its highest score.

    Parameters
    ----------
    measures
        As for `deadheat.evaluate`.
    views
        Views to return for each measure.
    document_comparison_field
        Field by which two documents are the same: ``"content"``, ``"id"``, or a key of ``meta``
        such as ``"meta.file_id"``, as in Haystack.

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
        measures: Measures = ("nDCG@10", "MRR@10"),
        views: Sequence[str] = VIEWS,
        document_comparison_field: str = "content",
    ) -> None:
        # Names, because a stored pipeline can only contain plain values.
        self.measures = [repr(measure) for measure in parse_measures(measures)]
        check_views(views)
        self.views = list(views)
        if not re.fullmatch(r"content|id|meta\..+", document_comparison_field):
            raise InputError(
                "document_comparison_field must be 'content', 'id' or 'meta.KEY', not "
                f"{document_comparison_field!r:.60}"
            )
        self.document_comparison_field = document_comparison_field

    @_haystack.component.output_types(  # type: ignore[untyped-decorator]
        score=float, individual_scores=list[float], metrics=dict[str, float], result=Result
    )
    def run(
        self,
        ground_truth_documents: list[list[Document]],
        retrieved_documents: list[list[Document]],
    ) -> dict[str, object]:
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
            ``score`` and ``individual_scores``: expected values of the first measure, in the form
            of Haystack's evaluators; ``metrics``: all views by name; ``result``: the
            `deadheat.Result` with every question.
        """
        n = len(ground_truth_documents)
        if not n or n != len(retrieved_documents):
            raise InputError(
                f"{n} lists of ground_truth_documents and {len(retrieved_documents)} of "
                "retrieved_documents; give one of each for every question"
            )
        pairs = zip(ground_truth_documents, retrieved_documents, strict=True)
        read = [self._read_question(i, *pair) for i, pair in enumerate(pairs)]
        qrels, run = (dict(enumerate(part)) for part in zip(*read, strict=True))
        measures = parse_measures(self.measures)
        result = evaluate_run(read_qrels(qrels), run, measures, ALL_QUERIES)
        emit_warnings(result.warnings)
        return {
            "score": result[measures[0]].expected,
            "individual_scores": result.views[measures[0]].expected.tolist(),
            "metrics": result.flat(views=self.views),
            "result": result,
        }

    def _read_question(
        self, question: int, truth: Sequence[Document], retrieved: Sequence[Document]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the grades and the scores of a question, by names of distinct documents."""
        if len({document.score is None for document in truth}) > 1:
            raise InputError(
                f"question {question}: some ground_truth_documents have a score and some have "
                "none; scores are grades, so give all or none"
            )
        if unscored := [document.id for document in retrieved if document.score is None]:
            raise no_score(f"question {question}: the retrieved document {unscored[0]!r:.60}")
        grades: dict[str, float] = {}
        for document in truth:
            name, grade = self._name(document), 1.0 if document.score is None else document.score
            grades[name] = max(grades.get(name, grade), grade)
        grades.pop("None", None)
        scores: dict[str, float] = {}
        by_score = sorted(retrieved, key=lambda document: document.score, reverse=True)
        for place, document in enumerate(by_score):
            name = self._name(document)
            scores[f"copy {place}" if name in scores else name] = document.score
        # A question without a relevant or a retrieved document counts as 0.
        return grades or {"nothing": 0.0}, scores or {"other": 0.0}

    def _name(self, document: Document) -> str:
        """Return the value by which documents are compared, as text; "None" if it is missing."""
        field, *keys = self.document_comparison_field.split(".")
        value: object = getattr(document, field)
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return repr(value)
