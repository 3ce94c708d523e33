"""Names of runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_ENDINGS = r"\.run|\.trec|\.res|\.txt|\.tsv|\.csv|\.jsonl?|\.parquet|\.gz|\.bz2|\.xz|\.zst|\.zip"
"""File name endings of runs: formats and compressions."""


def run_name(path: str) -> str:
    """Return the name of a run: its file name without endings and without ``input.``.

    >>> run_name("runs/input.bm25.txt.gz"), run_name("covidex.r4.duot5.xz")
    ('bm25', 'covidex.r4.duot5')
    """
    name = re.sub(rf"(?<=.)({_ENDINGS})+$", "", Path(path).name, flags=re.IGNORECASE)
    return re.sub(r"^input\.(?=.)", "", name) or path  # NIST archives runs as input.TAG


def name_runs(paths: Sequence[str], labels: Sequence[str | None] | None = None) -> list[str]:
    """Return distinct names of runs that are used together.

    The name of a run is its label, or its `run_name`. If two names are equal, runs without a label
    get their file name with its endings. If these are equal, too, they get their path.

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
