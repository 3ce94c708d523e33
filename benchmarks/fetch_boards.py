"""Download the public leaderboards that `benchmarks/audit.py` checks.

    python benchmarks/fetch_boards.py BOARDS

The folder BOARDS then has

- the submissions and leaderboards of TREC-COVID, mirrored from NIST in castorini/TREC-COVID, and
  the judgements of round 4 from NIST
- the submissions, scores and gold labels of SemEval-2016 Task 3: the official distribution, stored
  in bnsriram/NLPCommunityQuestionAnswering; subtask B becomes TREC runs, judgements and a table of
  MAP and MRR

Needs git and network access.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

TREC_COVID = "https://github.com/castorini/TREC-COVID"
QRELS = "https://ir.nist.gov/covidSubmit/data/qrels-covid_d4_j3.5-4.txt"
QRELS_MD5 = "b86dd338d6b0a41e62f18e566e541b96"
SEMEVAL = "https://github.com/bnsriram/NLPCommunityQuestionAnswering"
GOLD = "_gold/SemEval2016-Task3-CQA-QL-test.xml.subtaskB.relevancy"


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    clone(TREC_COVID, folder / "trec-covid")
    fetch(QRELS, QRELS_MD5, folder / "trec-covid" / "round4.qrels")
    clone(SEMEVAL, folder / "semeval2016-distribution")
    distribution = folder / "semeval2016-distribution" / "SemEval2016_task3_submissions_and_scores"
    convert_semeval(distribution, folder / "semeval2016")


def clone(address: str, target: Path) -> None:
    """Clone the last commit of a repository, unless the folder exists."""
    if not target.exists():
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", address, target], check=True)


def fetch(address: str, md5: str, target: Path) -> None:
    """Download a file, and check its MD5."""
    with urllib.request.urlopen(address) as answer:
        content = answer.read()
    if hashlib.md5(content).hexdigest() != md5:
        sys.exit(f"{address}: the file differs from the one that was audited")
    target.write_bytes(content)


def convert_semeval(distribution: Path, target: Path) -> None:
    """Write subtask B as TREC runs, judgements and a table of published MAP and MRR.

    Lines of submissions and gold labels have five fields: query, candidate, rank, score, label. A
    file ``.score`` next to each submission has MAP, average recall and MRR, in this order.
    """
    runs = target / "task3b"
    runs.mkdir(parents=True, exist_ok=True)
    table = ["run,MAP,MRR"]
    for path in sorted(distribution.glob("*/subtask_B_*.txt")):
        name = f"{path.parent.name}-{path.stem.removeprefix('subtask_B_')}"
        scores = path.with_name(f"{path.name}.score").read_text(encoding="utf-8")
        mean_ap, _, mean_rr = re.search(r"ALL SCORES:\s+(\S+)\s+(\S+)\s+(\S+)", scores).groups()
        table.append(f"{name},{mean_ap},{mean_rr}")
        lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        text = "".join(
            f"{query} Q0 {candidate} {place} {score} {name}\n"
            for place, (query, candidate, _, score, _) in enumerate(lines, 1)
        )
        (runs / f"{name}.run").write_text(text, encoding="utf-8")
    (target / "task3b-published.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    gold = (distribution / GOLD).read_text(encoding="utf-8").splitlines()
    judged = [(line.split()[0], line.split()[1], line.split()[-1] == "true") for line in gold]
    text = "".join(f"{query} 0 {candidate} {int(label)}\n" for query, candidate, label in judged)
    (target / "task3b.qrels").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
