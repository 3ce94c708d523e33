"""Names of runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_ENDINGS = r"\.run|\.trec|\.res|\.txt|\.tsv|\.csv|\.jsonl?|\.parquet|\.gz|\.bz2|\.xz|\.zst|\.zip"
"""Endings of the names of run files: their formats and compressions."""


def run_name(path: str) -> str:
    """Return the name of a run: that of its file, without its endings and without ``input.``.

    >>> run_name("runs/input.bm25.txt.gz"), run_name("covidex.r4.duot5.xz")
    ('bm25', 'covidex.r4.duot5')
    """
    name = re.sub(rf"(?<=.)({_ENDINGS})+$", "", Path(path).name, flags=re.IGNORECASE)
    return re.sub(r"^input\.(?=.)", "", name) or path  # NIST archives runs as input.TAG


def name_runs(paths: Sequence[str], labels: Sequence[str | None] | None = None) -> list[str]:
    """Return distinct names of runs that are used together.

    A run has the label that its user gave it, or its `run_name`. Runs without a label that would
    have the name of another keep the endings of their files, or have their paths as names where
    these are equal, too.

    >>> name_runs(["out/bm25.run.gz", "out/bf16.run"]), name_runs(["a.run", "a.txt", "b.run"])
    (['bm25', 'bf16'], ['a.run', 'a.txt', 'b'])
    >>> name_runs(["one/bm25.run", "two/bm25.run"])
    ['one/bm25.run', 'two/bm25.run']
    """
    own = labels or [None] * len(paths)
    names = [label or run_name(path) for path, label in zip(paths, own, strict=True)]
    for longer in ([Path(path).name for path in paths], paths):
        count = Counter(names)
        names = [
            name if label or count[name] == 1 else longer[i]
            for i, (name, label) in enumerate(zip(names, own, strict=True))
        ]
    if len(set(names)) == len(names):
        return names
    return [label or path for path, label in zip(paths, own, strict=True)]
