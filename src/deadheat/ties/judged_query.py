"""The judgements of one query, ready to meet one list of scores after another."""

from __future__ import annotations

import numpy as np

from deadheat.formats import Judgements, Run
from deadheat.formats.shapes import DictDocuments
from deadheat.ties.lists import Fit, JudgedLists, like_grades

_FIRST = np.zeros(1, np.int64)


class JudgedQuery:
    """One query's documents of interest, looked up in lists that are dictionaries.

    Parameters
    ----------
    judgements
        Of this query and others: the highest grade is that of them all.
    query
        The index of the query.
    with_judged
        Whether judged documents that are not relevant are of interest, too.
    """

    def __init__(self, judgements: Judgements, query: int, *, with_judged: bool) -> None:
        rows = np.arange(*judgements.offsets[query : query + 2].tolist())
        grade = judgements.grades[rows]
        self.id = judgements.query_ids[query]
        self.has_relevant = bool((grade > 0).any())
        self._below = int(np.count_nonzero(grade < 0))
        kept = np.ones(len(rows), bool) if with_judged else grade > 0
        documents = judgements.doc_ids.gather(rows[kept]).to_list()
        self._wanted = dict(zip(documents, range(len(documents)), strict=True))
        self._grade = grade[kept]
        self._query = np.zeros(len(documents), np.int64)
        self._max_grade = float(judgements.grades.max(initial=0))
        self._like_grades = like_grades(judgements.grades)
        self._numbered = judgements.numbered

    def list_in(self, run: Run) -> tuple[JudgedLists, Fit]:
        """Give the query's list, the only one of the run; and how judgements and run fit."""
        documents = run.documents
        if not isinstance(documents, DictDocuments):
            raise TypeError("a run of dictionaries is needed")
        position = np.array(documents.places(0, self._wanted), np.int64)
        retrieved = position >= 0
        grade = self._grade[retrieved]
        found = bool((grade > 0).any())
        lost = self.has_relevant and not found
        fit = Fit(
            judged=1,
            counted=1,
            like_grades=not self._like_grades and like_grades(run.rounded),
            below=self._below,
            sought=tuple(self._wanted)[:2] if lost else (),
            retrieved=found,
            documents=tuple(map(str, documents.lists[0]))[:2] if lost else (),
        )
        lists = JudgedLists(
            [self.id],
            run.scores,
            (_FIRST, run.offsets[1:]),
            self._query[retrieved],
            position[retrieved],
            grade,
            (self._query[~retrieved], self._grade[~retrieved]),
            run.complete,
            run.exact,
            self._max_grade,
            numbered=self._numbered,
        )
        return lists, fit
