"""`write_report`: write a page about results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from deadheat._internal.output import write_whole
from deadheat.errors import InputError
from deadheat.evaluation import Result, name_results
from deadheat.formats import QrelsLike, RunLike, read_qrels, read_run
from deadheat.report.page.collection import Collection, System
from deadheat.report.page.render import render_page


def write_report(
    results: Result | Sequence[Result] | Mapping[str, Result],
    path: str | Path,
    *,
    qrels: QrelsLike | None = None,
    runs: Sequence[RunLike] | Mapping[str, RunLike] | None = None,
    title: str = "",
    force: bool = False,
) -> Path:
    """Write one self-contained web page about results.

    Parameters
    ----------
    results
        Results of `evaluate` with the same judgements, in a list or under names of your choice.
    path
        The file to write.
    qrels, runs
        The judgements, and the runs behind the results, in the same order or under the same
        names: with them the page shows ranked lists.
    title
        Heading of the page; the names of the systems unless given.
    force
        Replace the file if it exists.

    Returns
    -------
    Path
        Where the page is.
    """
    target = Path(path)
    if target.exists() and not force:
        raise InputError(f"{path}: exists already; use force=True to overwrite it")
    listed = [results] if isinstance(results, Result) else results
    if isinstance(listed, Mapping):
        names, given = list(map(str, listed)), list(listed.values())
    else:
        given = list(listed)
        names = name_results(given)
    if not given:
        raise InputError("there is no result to report: give at least one")
    if (qrels is None) != (runs is None):
        raise InputError("ranked lists need both qrels and runs")
    sources: list[RunLike | None] = [None] * len(given)
    if isinstance(runs, Mapping):
        sources = [runs.get(name) for name in names]
    elif runs is not None:
        sources = list(runs)
    if len(sources) != len(given):
        raise InputError(f"{len(given)} results, but {len(sources)} runs: give one for each")
    systems = [
        System(result, {"system": name}, None if run is None else read_run(run))
        for result, name, run in zip(given, names, sources, strict=True)
    ]
    judgements = None if qrels is None else read_qrels(qrels)
    collection = Collection(
        Path(given[0].provenance.judgements or "results").name, systems, judgements
    )
    page = render_page([collection.compare()], title=title or ", ".join(names[:3]))
    write_whole(target, page.encode())
    return target
