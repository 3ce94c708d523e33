"""`write_report`: write a page about results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from deadheat._internal.output import write_output
from deadheat.comparison import check_result, name_systems
from deadheat.errors import InputError
from deadheat.evaluation import Result
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
        Results of `evaluate` with the same judgements, as a list or as ``{name: result}``.
    path
        The file to write.
    qrels, runs
        The judgements, and the runs of the results in the same order or under the same names. With
        them, the page shows ranked lists.
    title
        Heading of the page. Default: the names of the systems.
    force
        Whether to replace an existing file. Default: False.

    Returns
    -------
    Path
        The path of the page.
    """
    named = name_systems(results, check_result)
    if not named:
        raise InputError("there is no result to report; give at least one")
    if (qrels is None) != (runs is None):
        raise InputError("ranked lists need both qrels and runs; give both or none")
    given = runs if isinstance(runs, Mapping) else dict(zip(named, runs or (), strict=False))
    if runs is not None and (len(runs) != len(named) or given.keys() != named.keys()):
        raise InputError(
            f"{len(named)} results, but {len(runs)} runs; give one for each, in the same order or "
            "under the same names"
        )
    read = {name: read_run(run) for name, run in given.items()}
    systems = [System(own, name, read.get(name)) for name, own in named.items()]
    judgements = None if qrels is None else read_qrels(qrels)
    about = systems[0].result.provenance.judgements or "results"
    collection = Collection(Path(about).name, systems, judgements).compare()
    page = render_page([collection], title=title or ", ".join(list(named)[:3]))
    return write_output(path, page.encode(), force=force)
