"""Tasks of MTEB whose results contain every view of ties.

MTEB keeps a thousand documents of each query. Of the documents that tie with the last one, it keeps
arbitrary ones, and their number is lost. So if an encoder searches the whole corpus, every score is
counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from deadheat.errors import InputError
from deadheat.integrations.base import ByQuery, load_host
from deadheat.integrations.corpus_counts import CorpusCounts
from deadheat.integrations.mteb.scores import tie_aware_scores, without_first

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

_abstasks = load_host("mteb.abstasks")
_aggregated = load_host("mteb.abstasks.aggregated_task")
_models: Any = load_host("mteb.models")

Tasks = TypeVar("Tasks")


def tie_aware(tasks: Tasks) -> Tasks:
    """Make retrieval and reranking tasks report every view of ties with MTEB's values.

    Parameters
    ----------
    tasks
        A task, a list of tasks, or a benchmark. Retrieval and reranking tasks are changed in
        place; other tasks are not changed.

    Returns
    -------
    object
        The given object, for ``mteb.evaluate``. The task result and its JSON file then have the
        keys that `tie_aware_scores` describes, unless MTEB finds an older result of the task in
        its cache. `tie_aware_cache` and `deadheat.integrations.mteb.evaluate` detect that.

    Examples
    --------
    ::

        mteb.evaluate(wrap(model, regime="hps"), tie_aware(mteb.get_task("NFCorpus")))
    """
    for task in _each_task(tasks):
        hooked = isinstance(getattr(task.evaluate, "__self__", None), _Hook)
        if isinstance(task, _abstasks.AbsTaskRetrieval) and not hooked:
            hook = _Hook(task)
            task.evaluate, task.task_specific_scores = hook.evaluate, hook.task_specific_scores
    return tasks


def _each_task(tasks: object) -> Iterator[AbsTask]:
    """Yield the tasks that are evaluated, including those inside aggregates."""
    if isinstance(tasks, _aggregated.AbsTaskAggregate):
        tasks = tasks.tasks
    if isinstance(tasks, _abstasks.AbsTask):
        yield tasks
    elif isinstance(tasks, Iterable) and not isinstance(tasks, str):
        for task in tasks:
            yield from _each_task(task)
    else:
        raise InputError(f"{tasks!r:.60} is not a task of MTEB; give tasks of mteb.get_tasks(...)")


class _Hook:
    """Replaces two methods of a task: counts the scores of a search, and adds the keys of ties."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.own = task.evaluate, task.task_specific_scores
        self.counts: CorpusCounts | None = None
        """Counts of the last search, if it was a search of the whole corpus."""

    def evaluate(self, model: object, *args: object, **options: object) -> object:
        """Evaluate like the task; the scores of an encoder with the whole corpus are counted."""
        searches = isinstance(model, _models.SearchProtocol) or self.task.skip_first_result
        if isinstance(model, _models.EncoderProtocol) and not searches:
            model = _CountingSearch(model, self)
        self.counts = None
        return self.own[0](model, *args, **options)

    def task_specific_scores(
        self, scores: object, qrels: ByQuery, results: ByQuery, **where: object
    ) -> dict[str, object]:
        """Return the task's own scores and every view of the ties in its results."""
        own = self.own[1](scores, qrels, results, **where)
        if self.task.skip_first_result:
            results = {query: without_first(listed) for query, listed in results.items()}
        ties = tie_aware_scores(qrels, results, self.task.k_values, counts=self.counts)
        self.counts = None
        return {**own, **ties}


class _CountingSearch(_models.SearchEncoderWrapper):  # type: ignore[misc]
    """MTEB's search for an encoder; the hook of a task gets the counts of a whole corpus."""

    model: Any

    def __init__(self, model: object, hook: _Hook) -> None:
        super().__init__(model)
        self.hook = hook

    def search(self, queries: Any, *, top_ranked: object = None, **options: Any) -> object:
        """Search as MTEB does."""
        encoder, task = self.model, self.hook.task
        if top_ranked is None:
            subset, split = options["hf_subset"], options["hf_split"]
            data = task.dataset.get(subset, task.dataset)[split]
            counts = self.hook.counts = CorpusCounts(
                queries["id"],
                self.task_corpus["id"],
                data["relevant_docs"],
                max(task.k_values),
                without_query=task.ignore_identical_ids,
            )
            similarity = counts.counting(encoder.similarity)
            self.model = SimpleNamespace(encode=encoder.encode, similarity=similarity)
        try:
            return super().search(queries, top_ranked=top_ranked, **options)
        finally:
            self.model = encoder
