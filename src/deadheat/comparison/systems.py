"""Compare systems: every pair or against a baseline, and all of them in ranks."""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Iterable
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deadheat._lazy import pl
from deadheat.comparison import significance, statistics
from deadheat.comparison.align import aligned, check_origins, checked, named, pairs_of
from deadheat.comparison.comparison import COLUMNS, FEW_SYSTEMS, TESTS, Comparison, Settings
from deadheat.comparison.significance import Pairs
from deadheat.comparison.statistics import METHODS, Outcomes, sign
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES, Result, evaluate_run
from deadheat.evaluation.result import Floats
from deadheat.formats import read_qrels, read_run
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.remarks import Remark, emits_warnings, note, warning
from deadheat.settings import EvalOptions, EvalSettings

if TYPE_CHECKING:
    from typing_extensions import Unpack

_POLL_SECONDS = 0.2
"""How often threads are waited for: a wait without end may not notice Ctrl-C."""


@emits_warnings
def compare(
    results_or_qrels: Any,
    runs: Any = None,
    measures: str | Measure | Iterable[Any] | None = None,
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
    seed: int = 0,
    **options: Unpack[EvalOptions],
) -> Comparison:
    """Compare systems: ``compare(results)`` or ``compare(qrels, runs, measures)``.

    Uncertainty from ties and uncertainty from having sampled these queries are kept apart:
    the first is in the tie std, the tie interval and the probabilities of winning, the second
    in the p-value and the query interval. `deadheat.comparison.verdict` says how both
    lead to one verdict.

    The p-values of a measure are corrected for the number of pairs: with a baseline, and up to
    four systems, by Holm; all pairs of more systems are tested by the randomised Tukey HSD test,
    whose p-values stay fine enough however many pairs there are.

    Parameters
    ----------
    results_or_qrels, runs, measures
        Results of `evaluate`, in a list or under names of your choice in a dict; they are
        compared in the measures they share. Or judgements, runs in a list or dict, and
        measures, to be evaluated first.
    baseline
        Name of the system to compare all others with; all pairs unless given.
    alpha
        Level of the tests and of the query interval (1 − alpha), and the largest accepted
        probability that random tie-breaking reverses two systems whose order is decided.
    resamples, seed
        Sign flips and permutations of the tests; all sign flips are taken where they are no more
        than `resamples`.
    **options
        As for `evaluate`; with results, only ``queries="intersection"`` can be given: it compares
        systems that were evaluated on different queries on those they share.

    Examples
    --------
    >>> import deadheat as dh
    >>> qrels = {f"q{i}": {"d1": 1} for i in range(8)}
    >>> first, tied = {"d1": 2.0, "d2": 1.0}, {"d1": 1.0, "d2": 1.0}
    >>> runs = {"first": dict.fromkeys(qrels, first), "tied": dict.fromkeys(qrels, tied)}
    >>> comparison = dh.compare(qrels, runs, ["MRR"])
    >>> comparison.pairs.select("difference", "lowest", "highest", "a_wins", "verdict").row(0)
    (0.25, 0.0, 0.5, 0.99609375, 'A is better')
    """
    settings = EvalSettings(**options)  # type: ignore[arg-type]
    if runs is not None:
        parsed = parse_measures(DEFAULT_MEASURES if measures is None else measures)
        judgements = read_qrels(results_or_qrels)

        def result_of(run: Any) -> Result:
            source = read_run(run, with_ranks=settings.needs_ranks)
            return evaluate_run(judgements, source, parsed, settings)

        systems = named(runs, result_of)
    elif late := [name for name in options if name != "queries"]:
        raise InputError(f"{', '.join(late)}: these results have been evaluated already")
    else:
        systems = named(results_or_qrels, checked)
    return compare_results(
        systems,
        measures,
        baseline=baseline,
        alpha=alpha,
        resamples=resamples,
        seed=seed,
        queries=settings.queries,
    )


def compare_results(
    systems: dict[str, Result],
    measures: Any = None,
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
    seed: int = 0,
    queries: str = "judged",
    progress: Progress | None = None,
) -> Comparison:
    """Compare named results as `compare` does, without emitting warnings.

    Parameters
    ----------
    progress
        Called with what is done, how many steps are done, and how many there are.
    """
    _check_options(alpha, resamples, seed)
    names = pairs_of(systems, baseline)
    remarks = check_origins(systems)
    systems, alignment = aligned(systems, measures, queries)
    n = len(_first(systems).query_ids)
    tukey = baseline is None and len(systems) > FEW_SYSTEMS
    test = None if n == 1 else "Tukey" if tukey else "Holm"
    settings = Settings(n, alpha, resamples, seed, baseline, test)
    least = _least_p_value(settings, len(names))
    pairs = _pairs(systems, names, settings, least=least, progress=progress)
    remarks += alignment + _power(settings, len(names), least) + _identical(systems)
    remarks += [
        note(f"A wins, {method}: {meaning}")
        for method, meaning in METHODS.items()
        if method in pairs["probability_method"]
    ]
    remarks += _how_tested(settings, len(names))
    return Comparison(
        pairs,
        ranking(systems),
        settings,
        {name: result.provenance for name, result in systems.items()},
        tuple(remarks),
        {name: result.remarks for name, result in systems.items()},
    )


def compare_if_possible(
    systems: dict[str, Result], measures: Iterable[Measure], **options: Any
) -> tuple[Comparison | None, str]:
    """Compare systems on the queries they share; return None and the reason if that fails.

    Parameters
    ----------
    measures
        Those to compare in, as far as the systems share them.
    options
        As for `deadheat.compare`.
    """
    if len(systems) < 2:
        return None, "there is one system: nothing to compare it with"
    chosen = {
        name: replace(result, views={m: v for m, v in result.views.items() if m in measures})
        for name, result in systems.items()
    }
    try:
        return compare_results(chosen, queries="intersection", **options), ""
    except InputError as error:
        return None, str(error)


def _pairs(
    systems: dict[str, Result],
    names: list[tuple[str, str]],
    settings: Settings,
    *,
    least: float | None,
    progress: Progress | None,
) -> pl.DataFrame:
    """Compare every pair in every measure; `least` is the least p-value that is possible."""
    measures = list(_first(systems).views)
    testable = least is not None and least <= settings.alpha
    over_queries = _over_queries(systems, names, settings, progress)
    rows: dict[tuple[str, str, Measure], tuple[Any, ...]] = {}
    for m, tests in zip(measures, over_queries, strict=True):
        outcomes = {name: Outcomes.of(result, m, len(systems)) for name, result in systems.items()}
        marks = {name: _fingerprint(result, [m]) for name, result in systems.items()}
        for (name_a, name_b), tested in zip(names, tests, strict=True):
            a, b = systems[name_a][m], systems[name_b][m]
            difference, oblivious = a.expected - b.expected, a.oblivious - b.oblivious
            lowest, highest = a.worst - b.best, a.best - b.worst
            std = None if a.std is None or b.std is None else math.hypot(a.std, b.std)
            overlap = sign(lowest) <= 0 <= sign(highest)
            odds = statistics.duel(outcomes[name_a], outcomes[name_b], settings.alpha)
            verdict = statistics.verdict(
                difference,
                oblivious,
                odds.a_wins,
                odds.b_wins,
                tested[1] if testable else None,
                settings.alpha,
                error=odds.error,
                identical=marks[name_a] == marks[name_b],
            )
            ties = (difference, std, lowest, highest, overlap, *odds)
            against = sign(difference) * sign(oblivious) < 0
            rows[name_a, name_b, m] = (verdict, *ties, oblivious, against, *tested)
    words = {m: repr(m) for m in measures}
    table = [(a, b, words[m], *rows[a, b, m]) for a, b in names for m in measures]
    floats = dict.fromkeys(
        ("std", "p_value", "p_corrected", "interval_low", "interval_high"), pl.Float64
    )
    return pl.DataFrame(table, list(COLUMNS), schema_overrides=floats, orient="row")


def _over_queries(
    systems: dict[str, Result],
    names: list[tuple[str, str]],
    settings: Settings,
    progress: Progress | None,
) -> list[list[list[float | None]]]:
    """P-value, corrected p-value and interval of every pair, in every measure."""
    measures = list(_first(systems).views)
    if settings.test is None:
        return [[[None] * 4] * len(names)] * len(measures)
    place = {name: i for i, name in enumerate(systems)}
    pairs = np.array([(place[a], place[b]) for a, b in names])
    columns = [[result.views[m].expected for result in systems.values()] for m in measures]
    flips = min(2**settings.queries, settings.resamples)
    each = flips + (settings.resamples if settings.test == "Tukey" else 0)
    steps = _Steps(each * len(measures), progress)

    def test(of: list[Floats]) -> list[list[float | None]]:
        return _tested(np.column_stack(of), pairs, settings, steps.done)

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # NumPy releases Python's lock
        try:
            tests = [pool.submit(test, of) for of in columns]
            while wait(tests, _POLL_SECONDS, FIRST_EXCEPTION).not_done:
                if any(each.done() and each.exception() for each in tests):
                    break
            return [each.result() for each in tests]
        except BaseException:  # Ctrl-C: leaving the pool waits for its threads
            steps.stop()
            raise


class _Steps:
    """Counts the resamples that threads have done, and ends the threads when asked to."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress = total, progress
        self.count = 0
        self.lock, self.stopped = threading.Lock(), threading.Event()

    def done(self, steps: int) -> None:
        """Count steps; called by the threads between blocks of resamples."""
        if self.stopped.is_set():
            raise CancelledError
        if steps and self.progress is not None:
            with self.lock:
                self.count += steps
                self.progress("resampling", self.count, self.total)

    def stop(self) -> None:
        """End all threads at their next step."""
        self.stopped.set()


def _tested(
    values: Floats, pairs: Pairs, settings: Settings, step: significance.Step
) -> list[list[float | None]]:
    """P-value, corrected p-value and interval of every pair of columns."""
    resamples, seed = settings.resamples, settings.seed
    own = significance.sign_flip_p_values(values, pairs, resamples, seed, step)
    if settings.test == "Tukey":
        # Never below the pair's own: one erratic system must not lend its spread to others.
        family = significance.tukey_p_values(values, pairs, resamples, seed, step)
        corrected = np.maximum(own, family)
    else:
        corrected = significance.holm(own)
    intervals = significance.student_intervals(values, pairs, settings.alpha)
    rows: list[list[float | None]] = np.vstack([own, corrected, intervals]).T.tolist()
    return rows


def ranking(systems: dict[str, Result]) -> pl.DataFrame:
    """Rank all systems in every measure; they have the same measures and queries (`aligned`)."""
    frames = []
    for measure in _first(systems).views:
        of = [result[measure] for result in systems.values()]
        values = {
            view: np.array([getattr(summary, view) for summary in of], np.float64)
            for view in ("expected", "std", "worst", "best", "oblivious")
        }
        best_rank, worst_rank = statistics.rank_intervals(values["worst"], values["best"])
        places = {
            "rank": statistics.ranks(values["expected"]),
            "best_rank": best_rank,
            "worst_rank": worst_rank,
            "oblivious_rank": statistics.ranks(values["oblivious"]),
        }
        names = {"measure": [repr(measure)] * len(of), "system": list(systems)}
        frame = pl.DataFrame({**names, **places, **values}, nan_to_null=True)
        frames.append(frame.sort("rank", maintain_order=True))
    return pl.concat(frames)


def _first(systems: dict[str, Result]) -> Result:
    return next(iter(systems.values()))


def _fingerprint(result: Result, measures: Iterable[Measure]) -> bytes:
    """Tell apart results that differ in a bit of what ties leave or take."""
    digest = hashlib.blake2b()
    for views in (result.views[measure] for measure in measures):
        for values in (views.expected, views.best, views.worst):
            digest.update(values.tobytes())
    return digest.digest()


def _check_options(alpha: float, resamples: int, seed: int) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, not {alpha!r}")
    for name, value, least in (("resamples", resamples, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name} must be a whole number from {least}, not {value!r}")


def _least_p_value(settings: Settings, pairs: int) -> float | None:
    """Give the least corrected p-value that a pair can get; None where there is no test."""
    if settings.test is None:
        return None
    n, resamples = settings.queries, settings.resamples
    least = 2 / 2**n if 2**n <= resamples else 1 / (resamples + 1)
    return min(1.0, pairs * least) if settings.test == "Holm" else least


def _power(settings: Settings, pairs: int, least: float | None) -> list[Remark]:
    """Warn where no difference could be significant."""
    if least is None:
        return [warning("there is one query: nothing can be said about other queries")]
    if least <= settings.alpha:
        return []
    n, resamples = settings.queries, settings.resamples
    pattern = (
        "with {n:query}, {resamples:resample} and {pairs:pair} no corrected p-value can be below "
        "{least}: none can reach {alpha}"
    )
    if 2**n > resamples:
        family = pairs if settings.test == "Holm" else 1
        needed = math.ceil(family / settings.alpha) - 1
        pattern += "; take {needed:resample} or more" if needed < 2**n else ""
    else:
        needed = 0
    return [
        warning(
            pattern,
            n=n,
            resamples=resamples,
            pairs=pairs,
            least=f"{least:.2g}",
            alpha=f"{settings.alpha:g}",
            needed=needed,
        )
    ]


def _how_tested(settings: Settings, pairs: int) -> list[Remark]:
    """Say which test over queries was made, and how."""
    if settings.test is None:
        return []
    n, resamples = settings.queries, settings.resamples
    flips = f"all {2**n:,}" if 2**n <= resamples else f"{resamples:,} random"
    how = f"two-sided, {flips} sign flips"
    if settings.test == "Tukey":
        drawn = "permutations" if n < significance.MANY_QUERIES else "draws from their normal limit"
        how += f", {resamples:,} {drawn}; the larger p counts"
    return [
        note(
            "p ({test}): {meaning}, over queries, {how}, for {pairs:pair} in each measure; query "
            "interval: {level} % (Student's t), not corrected; seed {seed}",
            test=settings.test,
            meaning=TESTS[settings.test],
            how=how,
            pairs=pairs,
            level=f"{100 * (1 - settings.alpha):g}",
            seed=settings.seed,
        )
    ]


def _identical(systems: dict[str, Result]) -> list[Remark]:
    """Warn of systems that look like one run given twice."""
    alike: dict[bytes, list[str]] = {}
    for name, result in systems.items():
        alike.setdefault(_fingerprint(result, result.views), []).append(name)
    pattern = "{names} and {last} have the same values in every query: is it one run twice?"
    return [
        warning(pattern, names=", ".join(names[:-1]), last=names[-1])
        for names in alike.values()
        if len(names) > 1
    ]
