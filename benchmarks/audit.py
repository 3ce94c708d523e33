"""What ties do to a public leaderboard: the audit page of the docs, in one command.

    python benchmarks/audit.py TREC-COVID > docs/audit.md

TREC-COVID is a clone of https://github.com/castorini/TREC-COVID, which mirrors the official
submissions and leaderboards of NIST: ``round4/leaderboard.csv``, the runs in ``round4/runs``, and
so on. Beside the folder of a round lie its judgements, ``round4.qrels``, compressed or not, from
https://ir.nist.gov/trec-covid/data.html. Every round that has all three is audited; ``--round 4``
chooses. The figures go to the folder that ``--images`` names.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import lzma
import subprocess
import sys
from pathlib import Path

import polars as pl

import deadheat as dh
from deadheat._internal.remarks import texts
from deadheat.report.figures import rank_intervals
from deadheat.tables import Column, Table, render

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "benchmarks" / "audit.md").read_text(encoding="utf-8")
SHOWN = 8
"""Runs with the widest intervals of ranks that are shown per round."""
ROUND = """## {name}

{runs} runs, {queries} topics, {numbers} published numbers, of which {met} are met.{only}

### Which rule made these numbers?

{rules}

{outside}

### What ties do to the board

{summary}

*range > …*: runs that tie-breaking alone can move so far. *reversed*: pairs of runs, of {pairs:,},
whose published order is not that of their expected values; *errors*: those of them that ties do not
leave undecided. *undecided*: pairs that random tie-breaking leaves in the order of their expected
values with a probability below {level:g}. τ: Kendall's τ-b of the published order with those by
expected, best and worst values.

### Runs that ties can move farthest

In {most}, the measure in which ties leave most pairs open:

{widest}

{winners}

![Every run of the round as the interval of ranks that ties allow](images/{image})

{caption}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--round", type=int, action="append", help="only these rounds")
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images")
    arguments = parser.parse_args()
    rounds = arguments.round or range(1, 6)
    found = {n: parts for n in rounds if (parts := parts_of(arguments.folder, n))}
    if not found:
        sys.exit(f"{arguments.folder}: no round with leaderboard.csv, runs and judgements")
    audited = [audit(n, parts, arguments.images) for n, parts in found.items()]
    hashes = [f"round {n}: `{fingerprint(*parts)[:16]}`" for n, parts in found.items()]
    text = TEXT.replace("<!-- ROUNDS -->", "\n".join(audited).rstrip())
    text = text.replace("<!-- NAMES -->", " and ".join(f"round {n}" for n in found))
    text = text.replace("<!-- DATA -->", f"{', '.join(hashes)}{revision(arguments.folder)}")
    print(text.replace("<!-- VERSION -->", dh.__version__).rstrip())


def parts_of(folder: Path, n: int) -> tuple[Path, Path, Path] | None:
    """Judgements, runs and board of a round, where all of them are there."""
    judged = [
        path
        for pattern in (f"round{n}.qrels*", f"round{n}/qrels*", f"*covid*round{n}*")
        for path in sorted(folder.glob(pattern))
        if path.is_file() and path.suffix not in (".csv", ".run")
    ]
    runs, board = folder / f"round{n}" / "runs", folder / f"round{n}" / "leaderboard.csv"
    return (judged[0], runs, board) if judged and runs.is_dir() and board.is_file() else None


def audit(n: int, parts: tuple[Path, Path, Path], images: Path) -> str:
    """Audit one round, and draw the ranks in the measure that ties move most."""
    qrels, runs, published = parts
    board = dh.leaderboard(qrels, runs, published=published, progress=show, name=f"Round {n}")
    most = board.summary.sort("overlapping", descending=True)["measure"][0]
    ranking = board.ranking(most)
    kind = next((name for name in ("runtype", "type") if name in board.words), None)
    groups = {} if kind is None else dict(zip(ranking["run"], ranking[kind], strict=True))
    plot = rank_intervals(
        ranking.rename({"run": "system", "published_rank": "official_rank"}).with_columns(
            oblivious_rank=pl.col("oblivious").rank("min", descending=True)
        ),
        groups={run: group for run, group in groups.items() if group},
        what=f"{most} of round {n}",
        width="full",
    )
    image = images / f"audit-round{n}.svg"
    plot.save(image, force=True)
    numbers = board.rows.filter(pl.col("published").is_not_null())
    return ROUND.format(
        name=board.name,
        runs=len(board.entries),
        queries=board.rows["queries"].max(),
        numbers=f"{len(numbers):,}",
        met=f"{int(numbers['reproduced'].sum()):,}",
        only=only(board),
        rules="\n".join(f"- {rule}" for rule in board.rules)
        + "".join(f"\n- {text}" for text in board.notes if "different rankings" in text),
        outside=outside(board, qrels, runs, published),
        summary=summary(board),
        pairs=board.summary["pairs"][0],
        level=1 - board.alpha,
        most=most,
        widest=render([widest(ranking)], "markdown"),
        winners=winners(board),
        caption=plot.caption,
        image=image.name,
    )


def only(board: dh.Leaderboard) -> str:
    """Tell of runs that are not on the board or could not be read, and the reverse."""
    told = [f"{name} was not evaluated ({why})" for name, why in board.failures.items()]
    told += texts(board.remarks, "warning")
    return " " + "; ".join(told) + "." if told else ""


def outside(board: dh.Leaderboard, qrels: Path, runs: Path, published: Path) -> str:
    """Count the published numbers that no order of the ties of the scores as given explains."""
    given = dh.leaderboard(
        qrels,
        runs,
        published=published,
        columns={rule.column: rule.measure for rule in board.rules},
        tie_break="id_desc",
        progress=show,
    )
    rows = given.rows.filter(pl.col("published").is_not_null())
    slack = 0.5001 * pl.col("unit")
    gone = rows.filter(
        (pl.col("published") < pl.col("worst") - slack)
        | (pl.col("published") > pl.col("best") + slack)
    )
    missed = int((~rows["reproduced"]).sum())
    where = f" ({', '.join(sorted(set(gone['run'])))})" if len(gone) else ""
    return (
        f"With the scores as they were submitted, in double precision, {missed} of {len(rows)} "
        f"numbers are missed, and {len(gone)} of them lie outside what any order of tied documents "
        f"gives{where}: the rounding to float32 made ties, and orders, that the runs do not have."
    )


def summary(board: dh.Leaderboard) -> str:
    from deadheat.comparison.leaderboard.tables import SUMMARY

    return render([Table(board.summary, SUMMARY)], "markdown")


def widest(ranking: pl.DataFrame) -> Table:
    """Runs with the widest intervals of ranks."""
    width = pl.col("worst_rank") - pl.col("best_rank")
    rows = ranking.sort(width, "range", descending=True, maintain_order=True).head(SHOWN)
    return Table(
        rows,
        [
            Column("run", "name"),
            Column("published"),
            Column("expected"),
            Column(("worst", "best"), "span", title="worst–best"),
            Column("published_rank", "count", title="published rank"),
            Column("rank", "count", title="expected rank"),
            Column(("best_rank", "worst_rank"), "ranks", title="under ties"),
            Column("cut_lists", "count", title="cut lists"),
            Column("grid", "name", title="scores are"),
        ],
    )


def winners(board: dh.Leaderboard) -> str:
    """Say which first places ties leave open."""
    contested = [winner for winner in board.winners if winner.contested]
    if not contested:
        return "No first place of this round is contested: ties cannot change who wins."
    return "\n".join(
        f"- {winner.measure}: {winner.expected} comes first with a probability of "
        f"{winner.probability:.3f}; {len(winner.contenders)} runs can."
        for winner in contested
    )


def fingerprint(qrels: Path, runs: Path, board: Path) -> str:
    """SHA-256 of what was audited, whether it is stored compressed or not."""
    digest = hashlib.sha256()
    for path in (qrels, board, *sorted(runs.iterdir(), key=lambda path: stem(path.name))):
        name = stem(path.name).encode() if path.parent == runs else b""
        digest.update(name + b"\0" + hashlib.sha256(content(path)).digest())
    return digest.hexdigest()


def stem(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".xz")


def content(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    return lzma.decompress(data) if path.suffix == ".xz" else data


def revision(folder: Path) -> str:
    """Name the commit of a clone."""
    command = ["git", "-C", str(folder), "rev-parse", "--show-toplevel", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    words = done.stdout.split()
    if done.returncode or Path(words[0]).resolve() != folder.resolve():
        return ""
    return f"; castorini/TREC-COVID at {words[1][:12]}"


def show(what: str, done: int, total: int) -> None:
    print(f"\r{what} {done}/{total}   ", end="", file=sys.stderr)


if __name__ == "__main__":
    main()
