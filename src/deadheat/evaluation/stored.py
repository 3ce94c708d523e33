"""Read stored results, and check which judgements and runs they belong to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from deadheat.errors import InputError
from deadheat.evaluation.evaluate import evaluate_run
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, Run


def read_results(path: Path) -> list[Result]:
    """Read a file with one stored result, or with a list of results."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise InputError(
            f"{path}: this is not a stored result (JSON); for a run file, add --qrels"
        ) from None
    items = data if isinstance(data, list) else [data]
    if not items:
        raise InputError(f"{path}: the file has no results")
    results = []
    for item in items:
        try:
            results.append(Result.from_dict(item))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    return results


def same_judgements(one: Result, other: Result) -> bool:
    """Return whether two results name the same judgements; True if one names none."""
    here, there = one.provenance.judgements, other.provenance.judgements
    if here is None or there is None or here == there:
        return True
    return Path(here).resolve() == Path(there).resolve()


def is_reproduced_by(result: Result, judgements: Judgements, run: Run) -> bool:
    """Return whether a run reproduces a stored result; checks the first measure only."""
    measure = next(iter(result.views))
    try:
        again = evaluate_run(judgements, run, [measure], result.provenance.settings)
    except InputError:  # this run cannot be evaluated with the settings of the result
        return False
    return again.query_names == result.query_names and np.allclose(
        again.views[measure].expected, result.views[measure].expected, rtol=0, atol=1e-9
    )
