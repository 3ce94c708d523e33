"""Write docs/audit.md: the effect of ties on public leaderboards.

    python benchmarks/audit.py BOARDS > docs/audit.md

BOARDS is a folder that `benchmarks/fetch_boards.py` fills from public files:

- ``trec-covid/round4/runs``, ``trec-covid/round4/leaderboard.csv``, ``trec-covid/round4.qrels``,
  and the same for all other rounds
- ``semeval2016/task3b``, ``semeval2016/task3b-published.csv``, ``semeval2016/task3b.qrels``

Files may be compressed. The audit includes all boards whose runs, published numbers and judgements
exist. Figures are written to the folder of ``--images``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import lzma
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import deadheat as dh
from deadheat._internal.remarks import texts
from deadheat.comparison.leaderboard.tables import SUMMARY
from deadheat.formats import read_run
from deadheat.report import describe_leaderboard
from deadheat.report.figures import rank_intervals
from deadheat.tables import Column, Table, render

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "benchmarks" / "audit.md").read_text(encoding="utf-8")
SHOWN = 8
"""Number of runs in the table of widest rank intervals, per board."""
SECTION = """## {name}

{about}

{finding}

{runs} runs, {queries} queries, {published:,} published numbers, of which {met:,} are met.{only}

### Which rule produced these numbers?

{rules}

{given}

### Effect of ties on the board

{summary}

- *range*: the number of runs that tie-breaking can move by more than 0, 0.001 and 0.01.
- *reversed*: pairs of runs, of {pairs:,}, whose published order differs from the order of their
  expected values.
- *undecided*: pairs for which random tie-breaking keeps the order of the expected values with a
  probability below {level:g}.
- *errors*: pairs that are reversed and not undecided.
- *τ*: Kendall's τ-b of the published order with the order by expected, best and worst values.

### Runs with the widest intervals of ranks

In {most}, the measure in which the intervals of most pairs overlap:

{widest}

{winners}

![Every run of the board as the interval of ranks that ties allow](images/{image})

{caption}
"""
TREC_COVID = """\
TREC-COVID (2020) was a shared task of NIST in five rounds: teams submitted runs, NIST judged
documents and published a leaderboard. Its evaluator, trec_eval, rounds scores to float32 and orders
tied documents by descending ids."""
SEMEVAL = """\
Subtask B of SemEval-2016 Task 3 (Nakov et al. 2016) asked teams to rerank ten candidate questions
for each new question. The official scorer keeps tied documents in the order of the file. The
files list the candidates in the order of the search engine that retrieved them, and this order
alone has a MAP of {engine:.4f}. So input order favours a run with ties: its tied documents get the
order of the search engine."""


@dataclass(frozen=True)
class Board:
    """Name, description and files of a board."""

    name: str
    about: str
    qrels: Path
    runs: Path
    published: Path

    @property
    def image(self) -> str:
        """File name of the figure."""
        return f"audit-{self.runs.parent.name if self.runs.name == 'runs' else self.runs.name}.svg"

    def evaluate(self, **options: object) -> dh.Leaderboard:
        """Evaluate all runs, and check the published numbers."""
        return dh.leaderboard(
            self.qrels,
            self.runs,
            published=self.published,
            progress=show_progress,
            name=self.name,
            **options,  # type: ignore[arg-type]
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images")
    arguments = parser.parse_args()
    boards = list(find_boards(arguments.folder))
    if not boards:
        sys.exit(f"{arguments.folder}: no board with runs, published numbers and judgements")
    warnings.simplefilter("ignore", dh.DeadheatWarning)  # the page shows them
    evaluated = [board.evaluate() for board in boards]
    sections = [
        describe_board(board, own, arguments.images)
        for board, own in zip(boards, evaluated, strict=True)
    ]
    text = TEXT.replace("<!-- SUMMARY -->", summarise(evaluated))
    text = text.replace("<!-- BOARDS -->", "\n".join(sections).rstrip())
    hashes = [f"{board.name}: `{fingerprint(board)[:16]}`" for board in boards]
    text = text.replace("<!-- DATA -->", "; ".join(hashes))
    print(text.replace("<!-- VERSION -->", dh.__version__).rstrip())


def find_boards(folder: Path) -> Iterator[Board]:
    """Yield the boards of which all files exist."""
    for n in range(1, 6):
        place = folder / "trec-covid" / f"round{n}"
        runs, published = place / "runs", place / "leaderboard.csv"
        if (qrels := find_qrels(place)) and runs.is_dir() and published.is_file():
            yield Board(f"TREC-COVID, round {n}", TREC_COVID, qrels, runs, published)
    runs = folder / "semeval2016" / "task3b"
    published = runs.with_name("task3b-published.csv")
    if (qrels := find_qrels(runs)) and runs.is_dir() and published.is_file():
        about = SEMEVAL.format(engine=evaluate_engine(qrels, runs))
        yield Board("SemEval-2016 Task 3, subtask B", about, qrels, runs, published)


def find_qrels(place: Path) -> Path | None:
    """Return the judgements next to a folder, compressed or not."""
    names = (f"{place.name}.qrels", f"{place.name}.qrels.gz")
    return next((path for name in names if (path := place.with_name(name)).is_file()), None)


def evaluate_engine(qrels: Path, runs: Path) -> float:
    """Return the MAP of the search engine, whose ranks end the ids of candidates, as in Q318_R4."""
    candidates = read_run(min(runs.iterdir())).to_dict()
    ranked = {
        query: {document: -float(document.rpartition("_R")[2]) for document in documents}
        for query, documents in candidates.items()
    }
    return dh.evaluate(qrels, ranked, ["MAP"], queries="intersection")["MAP"].expected


def summarise(boards: list[dh.Leaderboard]) -> str:
    """Return one table over all boards, and the decision errors by name."""
    rows = []
    for board in boards:
        published = board.rows.filter(pl.col("published").is_not_null())
        rows.append(
            {
                "board": board.name,
                "runs": len(board.entries),
                "published": len(published),
                "met": int(published["reproduced"].sum()),
                "moved": board.rows.filter(pl.col("range") > 1e-12)["run"].n_unique(),
                "pairs": int(board.summary["pairs"].sum()),
                "reversed": int(board.summary["reversed"].sum()),
                "errors": len(board.decision_errors),
            }
        )
    columns = [
        Column("board", "name"),
        Column("runs", "count"),
        Column("published", "count", title="published numbers"),
        Column("met", "count", title="met"),
        Column("moved", "count", title="runs that ties can move"),
        Column("pairs", "count", title="pairs, all measures"),
        Column("reversed", "count", title="reversed"),
        Column("errors", "count", title="decision errors"),
    ]
    errors = [f"- {board.name}: {error}." for board in boards for error in board.decision_errors]
    listed = "\n".join(["Decision errors:", "", *errors]) if errors else "No decision errors."
    return f"{render([Table(pl.DataFrame(rows), columns)], 'markdown')}\n\n{listed}"


def describe_board(board: Board, own: dh.Leaderboard, images: Path) -> str:
    """Describe one board, and draw the ranks in the measure with the most overlapping pairs."""
    most = own.summary.sort("overlapping", descending=True)["measure"][0]
    ranking = own.ranking(most)
    kind = next((name for name in ("runtype", "type") if name in own.rows.columns), None)
    groups = {} if kind is None else dict(zip(ranking["run"], ranking[kind], strict=True))
    plot = rank_intervals(
        ranking.rename({"run": "system", "published_rank": "official_rank"}).with_columns(
            oblivious_rank=pl.col("oblivious").rank("min", descending=True)
        ),
        groups={run: group for run, group in groups.items() if group},
        what=f"{most} of {board.name}",
        width="full",
    )
    plot.save(images / board.image, force=True)
    finding = describe_leaderboard(own).removeprefix(f"{own.name}: ")
    different = [text for text in own.notes if "different rankings" in text]
    return SECTION.format(
        name=board.name,
        about=board.about,
        finding=finding,
        runs=len(own.entries),
        queries=own.rows["queries"].max(),
        published=own.summary["published"].sum(),
        met=own.summary["met"].sum(),
        only=describe_failures(own),
        rules="\n".join(f"- {text}" for text in [*map(str, own.rules), *different]),
        given=evaluate_unrounded(board, own),
        summary=render([Table(own.summary, SUMMARY)], "markdown"),
        pairs=own.summary["pairs"][0],
        level=1 - own.alpha,
        most=most,
        widest=render([widest_table(ranking)], "markdown"),
        winners=describe_winners(own),
        caption=plot.caption,
        image=board.image,
    )


def describe_failures(board: dh.Leaderboard) -> str:
    """Return a sentence on runs that could not be evaluated and on other warnings."""
    problems = [f"{name} was not evaluated ({why})" for name, why in board.failures.items()]
    problems += texts(board.remarks, "warning")
    return " " + "; ".join(problems) + "." if problems else ""


def evaluate_unrounded(board: Board, own: dh.Leaderboard) -> str:
    """Describe how many published numbers are outside [worst, best] without rounding scores."""
    settings = {rule.setting for rule in own.rules}
    if not any(setting.score_dtype for setting in settings):
        return "The scores are used as they were submitted."
    columns = {rule.column: rule.measure for rule in own.rules}
    given = board.evaluate(columns=columns, tie_break=next(iter(settings)).tie_break)
    rows = given.rows.filter(pl.col("published").is_not_null())
    slack = 0.5001 * pl.col("unit")
    outside = rows.filter(
        (pl.col("published") < pl.col("worst") - slack)
        | (pl.col("published") > pl.col("best") + slack)
    )
    missed = int((~rows["reproduced"]).sum())
    where = f" ({', '.join(sorted(set(outside['run'])))})" if len(outside) else ""
    return (
        f"With the submitted scores in double precision, {missed} of {len(rows)} numbers are not "
        f"met, and {len(outside)} of these are outside [worst, best]{where}. Rounding to float32 "
        "creates ties and orders that the runs do not have."
    )


def widest_table(ranking: pl.DataFrame) -> Table:
    """Return the runs with the widest intervals of ranks."""
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


def describe_winners(board: dh.Leaderboard) -> str:
    """Return a list of the first places that ties can change."""
    contested = [winner for winner in board.winners if winner.contested]
    if not contested:
        return "Ties cannot change any first place of this board."
    return "\n".join(
        f"- {winner.measure}: {winner.expected} comes first with a probability of "
        f"{winner.probability:.3f}; {len(winner.contenders)} runs can come first."
        for winner in contested
    )


def fingerprint(board: Board) -> str:
    """Return the SHA-256 of the decompressed files of a board."""
    digest = hashlib.sha256()
    runs = {
        path.name.removesuffix(".gz").removesuffix(".xz"): path for path in board.runs.iterdir()
    }
    for name, path in [("", board.qrels), ("", board.published), *sorted(runs.items())]:
        digest.update(name.encode() + b"\0" + hashlib.sha256(read_content(path)).digest())
    return digest.hexdigest()


def read_content(path: Path) -> bytes:
    """Return the bytes of a file, decompressed."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    return lzma.decompress(data) if path.suffix == ".xz" else data


def show_progress(what: str, done: int, total: int) -> None:
    """Print progress to standard error if it is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{what} {done}/{total}   ", end="", file=sys.stderr)


if __name__ == "__main__":
    main()
