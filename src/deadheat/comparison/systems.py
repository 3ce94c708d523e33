"""Compare systems: all pairs or against a baseline, and a ranking of all systems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import check_number
from deadheat._internal.remarks import Remark, counted, emits_warnings, note, warning
from deadheat.comparison import significance
from deadheat.comparison.align import (
    align_systems,
    check_origins,
    check_result,
    list_pairs,
    name_systems,
)
from deadheat.comparison.comparison import FEW_SYSTEMS, TESTS, Comparison, Settings
from deadheat.comparison.statistics import (
    CLOSE,
    METHODS,
    Outcomes,
    duel,
    rank_columns,
    ranks,
    sign,
    verdict,
)
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES, Floats, Result, Views, evaluate_run
from deadheat.formats import QrelsLike, Run, RunLike, read_qrels
from deadheat.measures import Measure, parse_measures
from deadheat.settings import EvalOptions, EvalSettings

if TYPE_CHECKING:
    from typing_extensions import Unpack

MeasuresLike = str | Measure | Iterable[object]


@emits_warnings
def compare(
    results_or_qrels: Mapping[str, Result] | Iterable[Result] | QrelsLike,
    runs: Mapping[str, RunLike] | Iterable[RunLike] | None = None,
    measures: MeasuresLike | None = None,
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
    seed: int = 0,
    **options: Unpack[EvalOptions],
) -> Comparison:
    """Compare systems: ``compare(results)`` or ``compare(qrels, runs, measures)``.

    Two kinds of uncertainty are reported separately. Uncertainty from ties: tie std, tie interval
    and probabilities of winning. Uncertainty from the sample of queries: p-value and query
    interval. `deadheat.comparison.verdict` describes how both give one verdict.

    The p-values of a measure are corrected for the number of pairs. With a baseline, or with up to
    four systems, Holm's correction is used. All pairs of more systems are tested with the
    randomised Tukey HSD test, whose smallest possible p-value does not depend on the number of
    pairs.

    Parameters
    ----------
    results_or_qrels, runs, measures
        Either results of `evaluate`, as a list or as ``{name: result}``: they are compared in the
        measures that they share. Or judgements, runs (a list or ``{name: run}``) and measures:
        the runs are evaluated first.
    baseline
        Name of the system to compare all others with. Default: compare all pairs.
    alpha
        Level of the tests and of the query interval (1 − alpha), and the largest accepted
        probability that random tie-breaking reverses two systems whose order is decided.
    resamples, seed
        Number of random sign flips and permutations of the tests, and their seed. If there are at
        most `resamples` sign flips, all are used.
    **options
        As for `evaluate`. With results, only ``queries="intersection"`` is accepted: systems that
        were evaluated on different queries are compared on the queries that they share.

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
    settings = EvalSettings.from_options(options)
    if _is_one_system(runs):
        raise InputError(
            "several systems are needed: give results as compare([a, b]), and runs as "
            "compare(qrels, {name: run, …})"
        )
    if runs is not None:
        parsed = parse_measures(DEFAULT_MEASURES if measures is None else measures)
        judgements = read_qrels(cast(QrelsLike, results_or_qrels))
        evaluate = partial(evaluate_run, judgements, measures=parsed, settings=settings)
        systems = name_systems(runs, evaluate)
    elif late := [name for name in options if name != "queries"]:
        raise InputError(
            f"{', '.join(late)}: not accepted, because these results have been evaluated already; "
            "give judgements and runs to evaluate them with other options"
        )
    else:
        systems = name_systems(results_or_qrels, check_result)
    return compare_results(
        systems,
        measures,
        queries=settings.queries,
        baseline=baseline,
        alpha=alpha,
        resamples=resamples,
        seed=seed,
    )


def _is_one_system(runs: object) -> bool:
    """Return whether the object is one result or one run, such as {query: {document: score}}."""
    if isinstance(runs, (Result, Run)):
        return True
    documents = next(iter(runs.values()), None) if isinstance(runs, Mapping) else None
    return isinstance(documents, Mapping) and isinstance(next(iter(documents.values()), None), Real)


def compare_results(
    systems: dict[str, Result],
    measures: MeasuresLike | None = None,
    *,
    queries: str = "judged",
    baseline: str | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare named results like `compare`, but emit no warnings.

    Parameters
    ----------
    progress
        Callback with a description, the number of measures done, and the total number.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, not {alpha!r}")
    resamples = check_number("resamples", resamples, least=1)
    seed = check_number("seed", seed, least=0)
    if len(systems) < 2:
        raise InputError(f"a comparison needs two systems or more, not {len(systems)}")
    index_pairs = list_pairs(systems, baseline)
    remarks = check_origins(systems)
    systems, alignment = align_systems(systems, measures, queries)
    n = len(next(iter(systems.values())).query_ids)
    tukey = baseline is None and len(systems) > FEW_SYSTEMS
    test = None if n == 1 else "Tukey" if tukey else "Holm"
    settings = Settings(n, alpha, resamples, seed, baseline, test)
    about_test, testable = _describe_test(settings, len(index_pairs))
    pairs = _compare_pairs(systems, np.array(index_pairs), settings, testable, progress)
    methods = [
        note(f"A wins, {method}: {meaning}")
        for method, meaning in METHODS.items()
        if method in pairs["probability_method"]
    ]
    return Comparison(
        pairs,
        ranking(systems),
        settings,
        {name: result.provenance for name, result in systems.items()},
        (*remarks, *alignment, *methods, *about_test),
        {name: result.remarks for name, result in systems.items()},
    )


def compare_if_possible(
    systems: dict[str, Result], measures: MeasuresLike, **options: Any
) -> tuple[Comparison | None, str]:
    """Compare results on the queries that they share; if that fails, return None and the reason.

    Parameters
    ----------
    systems, measures, **options
        As for `compare_results`.
    """
    try:
        return compare_results(systems, measures, queries="intersection", **options), ""
    except InputError as error:
        return None, str(error)


def _compare_pairs(
    systems: dict[str, Result],
    pairs: significance.Pairs,
    settings: Settings,
    testable: bool,
    progress: Progress | None,
) -> pl.DataFrame:
    """Compare every pair in every measure.

    `testable` is whether a p-value can be significant at all.
    """
    names, results = list(systems), list(systems.values())
    a, b = pairs.T
    measures = list(results[0].views)
    close = 0.01 if len(systems) <= FEW_SYSTEMS else CLOSE
    frames: list[pl.DataFrame] = []
    for measure in measures:
        views = rank_columns([result[measure] for result in results])
        outcomes = [Outcomes(result, measure) for result in results]
        odds = [duel(outcomes[i], outcomes[j], settings.alpha, close=close) for i, j in pairs]
        tests = _test_pairs([result.views[measure].expected for result in results], pairs, settings)
        difference = views["expected"][a] - views["expected"][b]
        oblivious = views["oblivious"][a] - views["oblivious"][b]
        lowest, highest = views["worst"][a] - views["best"][b], views["best"][a] - views["worst"][b]
        verdicts = [
            verdict(
                difference[n],
                oblivious[n],
                odds[n].a_wins,
                odds[n].b_wins,
                tests["p_corrected"][n] if testable else None,
                settings.alpha,
                error=odds[n].error,
                identical=_are_identical(results[i].views[measure], results[j].views[measure]),
            )
            for n, (i, j) in enumerate(pairs)
        ]
        a_wins, b_wins, methods, errors = zip(*odds, strict=True)
        frame = pl.DataFrame(
            {
                "a": [names[i] for i in a],
                "b": [names[i] for i in b],
                "measure": repr(measure),
                "verdict": verdicts,
                "difference": difference,
                "std": list(map(math.hypot, views["std"][a], views["std"][b])),
                "lowest": lowest,
                "highest": highest,
                "overlap": (sign(lowest) <= 0) & (sign(highest) >= 0),
                "a_wins": a_wins,
                "b_wins": b_wins,
                "probability_method": methods,
                "probability_error": errors,
                "oblivious_difference": oblivious,
                "reversed": sign(difference) * sign(oblivious) < 0,
                **tests,
            }
        )
        frames.append(frame)
        if progress is not None:
            progress("resampling", len(frames), len(measures))
    order = np.arange(len(measures) * len(pairs)).reshape(len(measures), -1).T.ravel()
    table: pl.DataFrame = pl.concat(frames)[order]
    return table.fill_nan(None)


def _are_identical(a: Views, b: Views) -> bool:
    """Return whether two systems have the same expected, best and worst value in every query."""
    views = ("expected", "best", "worst")
    return all(np.array_equal(getattr(a, view), getattr(b, view)) for view in views)


def _test_pairs(
    values: list[Floats], pairs: significance.Pairs, settings: Settings
) -> dict[str, Floats]:
    """Return the p-values and query intervals of pairs; NaN without a test.

    `values` are the expected values of each system, per query.
    """
    if settings.test is None:
        missing = np.full(len(pairs), np.nan)
        return dict.fromkeys(("p_value", "p_corrected", "interval_low", "interval_high"), missing)
    table, resamples, seed = np.column_stack(values), settings.resamples, settings.seed
    own = significance.sign_flip_p_values(table, pairs, resamples, seed)
    if settings.test == "Tukey":
        # Never below the pair's own p-value: the Tukey test averages the spread of all systems,
        # which is too small for a pair with an erratic system.
        corrected = np.maximum(own, significance.tukey_p_values(table, pairs, resamples, seed))
    else:
        corrected = significance.holm(own)
    low, high = significance.student_intervals(table, pairs, settings.alpha)
    return {"p_value": own, "p_corrected": corrected, "interval_low": low, "interval_high": high}


def ranking(systems: dict[str, Result]) -> pl.DataFrame:
    """Rank systems that have the same measures and queries (`align_systems`), in every measure."""
    frames = []
    for measure in next(iter(systems.values())).views:
        columns = rank_columns([result[measure] for result in systems.values()])
        named = {"measure": repr(measure), "system": list(systems), **columns}
        named["oblivious_rank"] = ranks(columns["oblivious"])
        frames.append(pl.DataFrame(named, nan_to_null=True).sort("rank", maintain_order=True))
    places = ("rank", "best_rank", "worst_rank", "oblivious_rank")
    views = ("expected", "std", "worst", "best", "oblivious")
    return pl.concat(frames).select("measure", "system", *places, *views)


def _describe_test(settings: Settings, pairs: int) -> tuple[list[Remark], bool]:
    """Describe the test over queries; also return whether a p-value can be significant at all."""
    if settings.test is None:
        only = "there is only one query: differences cannot be tested over queries"
        return [warning(only)], False
    n, resamples = settings.queries, settings.resamples
    every = 2**n <= resamples
    family = pairs if settings.test == "Holm" else 1
    least = min(1.0, family * (2 / 2**n if every else 1 / (resamples + 1)))
    how = f"all {2**n:,} sign flips" if every else f"{resamples:,} random sign flips"
    if settings.test == "Tukey":
        drawn = "permutations" if n < significance.MANY_QUERIES else "draws from their normal limit"
        how += f", {resamples:,} {drawn}; the larger p is reported"
    remarks = [
        note(
            f"p ({settings.test}): {TESTS[settings.test]}, over queries, two-sided, {how}, for "
            f"{counted(pairs, 'pair')} in each measure; query interval: "
            f"{100 * (1 - settings.alpha):g} % (Student's t), not corrected; seed {settings.seed}"
        )
    ]
    if least > settings.alpha:
        needed = math.ceil(family / settings.alpha) - 1
        more = f"; use {counted(needed, 'resample')} or more" if resamples < needed < 2**n else ""
        text = (
            f"with {counted(n, 'query')}, {counted(resamples, 'resample')} and "
            f"{counted(pairs, 'pair')} no corrected p-value can be below {least:.2g}, so none can "
            f"reach {settings.alpha:g}{more}"
        )
        remarks.append(warning(text))
    return remarks, least <= settings.alpha
