"""Tasks of MTEB whose results hold every view of their ties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deadheat.errors import InputError
from deadheat.integrations.corpus_counts import CorpusCounts
from deadheat.integrations.mteb.scores import tie_aware_scores, without_first
from deadheat.integrations.mteb.search import counting_search
from deadheat.packages import require_host


def tie_aware(tasks: Any) -> Any:
    """Let retrieval and reranking tasks report every view of their ties, beside MTEB's values.

    Parameters
    ----------
    tasks
        A task, or several: a list, a benchmark. They are changed in place; those that do not
        retrieve stay as they are.

    Returns
    -------
    object
        What was given, to pass on to ``mteb.evaluate``. The task result and its JSON file then
        have the keys that `tie_aware_scores` describes, unless MTEB finds an older result of the
        task in its cache: `tie_aware_cache`, or `deadheat.integrations.mteb.evaluate`, notices.

    Examples
    --------
    ::

        mteb.evaluate(wrap(model, regime="hps"), tie_aware(mteb.get_task("NFCorpus")))
    """
    require_host("mteb", "mteb", "`tie_aware`")
    for task in each_task(tasks):
        _add_hook(task)
    return tasks


def each_task(tasks: Any) -> Iterable[Any]:
    """Give the tasks that are evaluated, those inside aggregates, too."""
    from mteb.abstasks import AbsTask
    from mteb.abstasks.aggregated_task import AbsTaskAggregate

    if isinstance(tasks, AbsTaskAggregate):
        tasks = tasks.tasks
    elif isinstance(tasks, AbsTask):
        yield tasks
        return
    elif isinstance(tasks, str) or not isinstance(tasks, Iterable):
        raise InputError(f"{tasks!r:.60} is no task of MTEB: give what mteb.get_tasks(...) gives")
    for task in tasks:
        yield from each_task(task)


def aggregates(tasks: Any) -> list[Any]:
    """Give the tasks whose value is made of those of others."""
    from mteb.abstasks.aggregated_task import AbsTaskAggregate

    several = tasks if isinstance(tasks, list) else [tasks]
    return [task for task in several if isinstance(task, AbsTaskAggregate)]


def _add_hook(task: Any) -> None:
    from mteb.abstasks import AbsTaskRetrieval

    hooked = isinstance(getattr(task.evaluate, "__self__", None), _Hook)
    if isinstance(task, AbsTaskRetrieval) and not hooked:
        hook = _Hook(task)
        task.evaluate, task.task_specific_scores = hook.evaluate, hook.task_specific_scores


class _Hook:
    """Stands between MTEB and a task: counts the scores of a search, and adds the keys of ties."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.theirs = task.evaluate, task.task_specific_scores
        self.counts: CorpusCounts | None = None
        """Of the search that has run last, where it was one of the whole corpus."""

    def evaluate(self, model: Any, *args: Any, **options: Any) -> Any:
        """Evaluate as the task does; what an encoder finds in the whole corpus is counted."""
        from mteb.models import EncoderProtocol, SearchProtocol

        searches = isinstance(model, SearchProtocol)
        if isinstance(model, EncoderProtocol) and not searches and not self.task.skip_first_result:
            model = counting_search(model, self.start)
        self.counts = None
        return self.theirs[0](model, *args, **options)

    def start(
        self, query_ids: list[str], document_ids: list[str], subset: str, split: str
    ) -> CorpusCounts:
        """Begin to count a search."""
        data = self.task.dataset.get(subset, self.task.dataset)[split]
        self.counts = CorpusCounts(
            query_ids,
            document_ids,
            data["relevant_docs"],
            max(self.task.k_values),
            without_query=self.task.ignore_identical_ids,
        )
        return self.counts

    def task_specific_scores(
        self,
        scores: Any,
        qrels: Mapping[str, Mapping[str, float]],
        results: Mapping[str, Mapping[str, float]],
        **where: Any,
    ) -> dict[str, Any]:
        """Give the task's own scores and every view of the ties in its results."""
        own = self.theirs[1](scores, qrels, results, **where)
        if self.task.skip_first_result:
            results = {query: without_first(listed) for query, listed in results.items()}
        ties = tie_aware_scores(qrels, results, self.task.k_values, counts=self.counts)
        self.counts = None
        return {**own, **ties}
