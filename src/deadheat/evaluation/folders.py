"""Evaluate a run in a folder of files that do not fit in memory together.

A measure needs few numbers per query, and queries are independent. So the queries are split into
parts whose rows fit in memory, and each part is read and counted alone. The counts are joined
before measures are computed, so the result equals that of all rows in memory.

All files are scanned once to check them and to count the rows of each query, and once for every
part. If the rows of a query are adjacent in a file, as most tools write them, a scan skips the rows
of other parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from deadheat._internal.remarks import add_remarks
from deadheat.engines import Engine, LocalEngine
from deadheat.evaluation.evaluate import evaluate_run, result_of_counted
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, Piece, Run, RunFolder
from deadheat.measures import Measure
from deadheat.settings import EvalSettings
from deadheat.ties import Counted, TieGroups, count_groups

PART_ROWS = 1 << 21
"""Rows of a run that are in memory at a time: a few hundred megabytes."""


def evaluate_folder(
    judgements: Judgements,
    folder: RunFolder,
    measures: Sequence[Measure],
    settings: EvalSettings,
    *,
    engine: Engine | None = None,
) -> Result:
    """Evaluate the run of a folder: in memory if it fits, else in parts.

    Parameters
    ----------
    engine
        Where files are read and parts are counted. Default: this process, in one part if the run
        fits in memory. Files must have the same paths on all machines of a cluster.
    """
    if not folder.rows or (engine is None and folder.rows <= PART_ROWS):
        return evaluate_run(judgements, folder.whole(), measures, settings)
    engine = engine or LocalEngine()
    parts = _split(judgements, folder, engine)

    with_judged = any(measure.needs_judged for measure in measures)

    def count_part(number: int) -> Counted:
        query_ids, start, stop = parts[number]
        run = folder.select(query_ids)
        return count_groups(judgements.part(start, stop), run, settings, with_judged=with_judged)

    with engine.pool(lambda: count_part) as workers:
        counted = dict(workers.results(range(len(parts))))
    whole = together([counted[number] for number in range(len(parts))])
    return result_of_counted(whole, judgements, folder.source, measures, settings)


def run_parts(judgements: Judgements, folder: RunFolder) -> Iterator[tuple[Judgements, Run]]:
    """Yield the run of a folder in parts that fit in memory, with the judgements of their queries.

    Judged queries are in the order of the judgements, over all parts.
    """
    if folder.rows <= PART_ROWS:
        yield judgements, folder.whole()
        return
    for query_ids, start, stop in _split(judgements, folder, LocalEngine()):
        yield judgements.part(start, stop), folder.select(query_ids)


def _split(
    judgements: Judgements, folder: RunFolder, engine: Engine
) -> list[tuple[list[str], int, int]]:
    """Check all files, and split their queries into parts of at most `PART_ROWS` rows.

    Returns the queries of each part, and where they start and stop in the judgements. A query is
    never split. A part has judged queries only, or unjudged ones only, which stop where they start.
    """
    rows: Counter[str] = Counter()

    def count_rows(piece: Piece) -> dict[str, int]:
        return dict(folder.read(piece).query.value_counts(name="rows").iter_rows())

    with engine.pool(lambda: count_rows) as workers:
        for _, counts in workers.results(folder.pieces):
            rows.update(counts)
    judged = judgements.query_ids
    others = sorted(rows.keys() - set(judged))
    parts = [(judged[a:b], a, b) for a, b in _spans(judged, rows)]
    return parts + [(others[a:b], 0, 0) for a, b in _spans(others, rows)]


def _spans(queries: Sequence[str], rows: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of stretches of queries with at most `PART_ROWS` rows in total."""
    start = total = 0
    for i, query in enumerate(queries):
        own = rows.get(query, 0)
        if total and own and total + own > PART_ROWS:
            yield start, i
            start, total = i, 0
        total += own
    if total:
        yield start, len(queries)


def together(parts: Sequence[Counted]) -> Counted:
    """Join the counts of all parts. Parts of unjudged queries have no groups."""
    if len(parts) == 1:
        return parts[0]
    return Counted(
        [query for part in parts for query in part.query_ids],
        TieGroups.concat([part.groups for part in parts]),
        sum((part.report for part in parts[1:]), parts[0].report),
        list(add_remarks(part.remarks for part in parts)),
    )
