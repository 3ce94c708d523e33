"""Names of runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from deadheat.provenance import Provenance


def short_names(paths: Sequence[str]) -> list[str]:
    """Names of runs without their folders, where that leaves them distinct.

    >>> short_names(["out/bm25.run", "out/bf16.run"]), short_names(["a/x.run", "b/x.run"])
    (['bm25.run', 'bf16.run'], ['a/x.run', 'b/x.run'])
    """
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def run_name(path: str) -> str:
    """Return the name of a run: that of its file, without its endings and without ``input.``.

    >>> run_name("runs/input.bm25.txt.gz"), run_name("covidex.r4.duot5.xz")
    ('bm25', 'covidex.r4.duot5')
    """
    return _strip_endings(Path(path).name)


def short_labels(paths: Sequence[str]) -> list[str]:
    """Return short names of runs for figures and tables, or longer ones where two would be equal.

    A label is the `run_name` without the words with which all names begin or end. These words stay
    where a label would be left without a letter.

    >>> short_labels(["out/r4-bm25-titles.run.gz", "out/r4-bf16-titles.run.gz"])
    ['bm25', 'bf16']
    >>> short_labels(["run-1.txt", "run-2.txt"]), short_labels(["bm25.run", "bm25.txt"])
    (['run-1', 'run-2'], ['bm25.run', 'bm25.txt'])
    """
    names = short_names(paths)
    bare = list(map(_strip_endings, names))
    return _without_common_words(bare) if len(set(bare)) == len(set(names)) else names


def shown_names(origins: Mapping[str, Provenance]) -> dict[str, str]:
    """What each system is called in a table: the name that somebody chose, or a short label.

    >>> of = {"A": Provenance("x.run", label="A"), "r-bm25.run": Provenance("out/r-bm25.run")}
    >>> shown_names({**of, "r-bf16.run": Provenance("out/r-bf16.run")})
    {'A': 'A', 'r-bm25.run': 'bm25', 'r-bf16.run': 'bf16'}
    """
    unnamed = {
        name: origin.run
        for name, origin in origins.items()
        if origin.label is None and name in (origin.run, Path(origin.run).name)
    }
    labels = dict(zip(unnamed, short_labels(list(unnamed.values())), strict=True))
    shown = {name: labels.get(name, name) for name in origins}
    return shown if len(set(shown.values())) == len(shown) else {name: name for name in origins}


_ENDINGS = r"\.run|\.trec|\.res|\.txt|\.tsv|\.csv|\.jsonl?|\.parquet|\.gz|\.bz2|\.xz|\.zst|\.zip"
"""Endings of the names of run files."""


def _strip_endings(name: str) -> str:
    bare = re.sub(rf"(?<=.)({_ENDINGS})+$", "", name, flags=re.IGNORECASE)
    return re.sub(r"^input\.(?=.)", "", bare)  # NIST archives runs as input.TAG


def _without_common_words(names: list[str]) -> list[str]:
    """Leave out the words, set apart by separators, with which all names begin or end."""
    if len(set(names)) < 2:
        return names
    words = [re.split(r"([-_./ :]+)", name) for name in names]
    start = _shared_start(words) // 2 * 2
    end = _shared_start([part[:start:-1] for part in words]) // 2 * 2
    short = ["".join(part[start : len(part) - end]) for part in words]
    return short if all(re.search(r"[^\W\d_]", name) for name in short) else names


def _shared_start(lists: Sequence[Sequence[str]]) -> int:
    """With how many equal items all lists begin."""
    least = min(map(len, lists))
    return next((i for i in range(least) if len({part[i] for part in lists}) > 1), least)
