"""From a model's stored output to scores and results, under every regime."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.datasets import RetrievalDataset
from deadheat.datasets.bm25 import top
from deadheat.errors import DeadheatWarning
from deadheat.evaluation import evaluate, evaluate_groups
from deadheat.experiment.store import StoredCell, write_file, write_json
from deadheat.experiment.texts import ID_ESCAPES, listed_documents, to_parquet, trec_id
from deadheat.formats import read_qrels
from deadheat.measures import Measure
from deadheat.result import Result, Views
from deadheat.scoring.regimes import describe_regime, score
from deadheat.ties import TieCounter

if TYPE_CHECKING:
    import torch

Scores = NDArray[Any]
BLOCK = 1 << 26
"""Scores of the full corpus that are in memory at once."""
CHUNK = 1 << 16
"""Documents of the full corpus that are multiplied at once."""
LONGEST_RUN = 10_000_000
"""Scores of the full corpus beyond which only results are written, and no run."""


@dataclass(frozen=True)
class Scorer:
    """Scores under one regime from what a cell stores."""

    kind: str
    regime: str
    model_dtype: str
    outputs: dict[str, torch.Tensor]

    def pairs(self) -> Scores:
        """Score every pair of a reranker."""
        name = "head_logits" if self.regime == "head" else "logits"
        logits = self.outputs[name]
        return self._score(**{name: logits.squeeze(1) if self.kind == "sigmoid" else logits})

    def products(self, queries: slice, documents: Any) -> Scores:
        """Score queries with documents, both given by their places among the embeddings."""
        return self._score(
            queries=self.outputs["queries"][queries],
            documents=self.outputs["documents"][documents],
        )

    def _score(self, **given: Any) -> Scores:
        kind: Any = self.kind
        return score(kind, regime=self.regime, model_dtype=self.model_dtype, **given)


@dataclass(frozen=True)
class Scored:
    """What one regime gives: a result, the ties it rests on, the seconds it took to score."""

    result: Result
    ties: dict[str, int]
    seconds: float
    frame: pl.DataFrame | None
    """query_id, doc_id, score in the order of the candidates; None where they are too many."""


def evaluate_cell(
    cell: StoredCell,
    dataset: RetrievalDataset,
    regimes: list[str],
    measures: list[Measure],
    depth: int | None,
) -> None:
    """Score and evaluate a complete cell under every regime, and store scores and results."""
    manifest, outputs, halved = cell.manifest, cell.outputs(), cell.halved()
    model, scoring = manifest["model"], manifest["scoring"]
    streamed = dataset.candidates is None and depth is None
    seconds: dict[str, Any] = {**cell.logged(), "scoring": {}}
    for regime in regimes:
        scorer = Scorer(scoring["kind"], regime, model["model_dtype"], outputs)
        scored = (
            _score_corpus(scorer, dataset, measures)
            if streamed
            else _score_lists(scorer, dataset, measures, depth)
        )
        seconds["scoring"][regime] = scored.seconds
        provenance = {
            **scored.result.provenance,
            "run": f"{model['model']} {model['model_dtype']} {regime}",
            "qrels": manifest["dataset"]["name"],
            "regime": regime,
            "regime_meaning": describe_regime(regime),
            "ties": scored.ties,
            "halved": halved,
            **{name: manifest[name] for name in ("scoring", "model", "dataset", "inputs")},
        }
        if scored.frame is not None:
            write_file(cell.folder / "scores" / f"{regime}.parquet", to_parquet(scored.frame))
            run = trec_run(scored.frame, f"{cell.folder.name}.{regime}")
            write_file(cell.folder / "runs" / f"{regime}.txt", run)
        result = replace(scored.result, provenance=provenance)
        write_file(cell.folder / "results" / f"{regime}.json", result.to_json().encode())
    write_json(cell.folder / "seconds.json", seconds)


def trec_run(frame: pl.DataFrame, tag: str) -> bytes:
    """Write scores as a TREC run, best first, with every digit; ties keep their order."""
    ordered = (
        frame.with_columns(pl.col("query_id").rle_id().alias("query"))
        .sort("query", "score", descending=[False, True], maintain_order=True)
        .with_columns((pl.int_range(pl.len()).over("query") + 1).alias("rank"))
    )
    columns = {
        "query_id": _trec_ids(ordered["query_id"]),
        "iteration": pl.Series(["Q0"]).new_from_index(0, len(frame)),
        "doc_id": _trec_ids(ordered["doc_id"]),
        "rank": ordered["rank"],
        "score": ordered["score"].cast(pl.Float64),
        "tag": pl.Series([trec_id(tag)]).new_from_index(0, len(frame)),
    }
    text = pl.DataFrame(columns).write_csv(include_header=False, separator=" ", quote_style="never")
    return text.encode()


def _trec_ids(ids: pl.Series) -> pl.Series:
    if not ids.str.contains(ID_ESCAPES).any():
        return ids
    return pl.Series([trec_id(each) for each in ids.to_list()])


def _score_lists(
    scorer: Scorer, dataset: RetrievalDataset, measures: list[Measure], depth: int | None
) -> Scored:
    """Score candidate lists, or the full corpus and cut it to lists of `depth`."""
    lists = dataset.candidates
    if lists is None:
        assert depth is not None
        frame, seconds = _best_of_corpus(scorer, dataset, depth)
    else:
        if "logits" in scorer.outputs:
            scores, seconds = timed(scorer.pairs)
        else:
            place = {doc: i for i, doc in enumerate(listed_documents(dataset))}
            rows = [[place[doc] for doc in documents] for documents in lists.values()]
            scores, seconds = timed(partial(_list_products, scorer, rows))
        lengths = [len(documents) for documents in lists.values()]
        frame = pl.DataFrame(
            {
                "query_id": np.repeat(np.array(list(lists), object), lengths),
                "doc_id": [doc for documents in lists.values() for doc in documents],
                "score": scores,
            },
            {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float32},
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)  # the result carries what was warned of
        result = evaluate(read_qrels(dict(dataset.judgements)), frame, measures)
    groups = frame.group_by("query_id", "score").len()["len"].to_numpy()
    ties = {"documents": len(frame), "distinct": len(groups), "largest": int(groups.max())}
    return Scored(result, ties, seconds, frame)


def _list_products(scorer: Scorer, rows: list[list[int]]) -> Scores:
    """Score each query with its own candidates alone."""
    each = (scorer.products(slice(q, q + 1), places)[0] for q, places in enumerate(rows))
    return np.concatenate(list(each))


def _best_of_corpus(
    scorer: Scorer, dataset: RetrievalDataset, depth: int
) -> tuple[pl.DataFrame, float]:
    """Keep the first `depth` documents of every query; at the cut ties keep the corpus' order."""
    names, documents = list(dataset.queries), np.array(list(dataset.corpus), object)
    frames, seconds = [], 0.0
    for first, scores, spent in _blocks(scorer, len(names), len(documents)):
        seconds += spent
        for query, row in zip(names[first:], scores, strict=False):
            best, _ = top(row, depth)
            frames.append(_frame([query], documents[best], row[best]))
    return pl.concat(frames), seconds


def _score_corpus(scorer: Scorer, dataset: RetrievalDataset, measures: list[Measure]) -> Scored:
    """Score and evaluate every document of the corpus, some queries at a time."""
    names, documents = list(dataset.queries), np.array(list(dataset.corpus), object)
    place = {doc: i for i, doc in enumerate(documents)}
    short = len(names) * len(documents) <= LONGEST_RUN
    results: list[Result] = []
    frames: list[pl.DataFrame] = []
    ties = {"documents": len(names) * len(documents), "distinct": 0, "largest": 0}
    seconds = 0.0
    for first, scores, spent in _blocks(scorer, len(names), len(documents)):
        seconds += spent
        some = names[first : first + len(scores)]
        results.append(_evaluate_block(dataset, some, place, scores, measures))
        for row in scores:
            sizes = np.unique(row, return_counts=True)[1]
            ties["distinct"] += len(sizes)
            ties["largest"] = max(ties["largest"], int(sizes.max()))
        if short:
            frames += [
                _frame([query], documents, row) for query, row in zip(some, scores, strict=True)
            ]
    return Scored(_joined(results), ties, seconds, pl.concat(frames) if short else None)


def _blocks(scorer: Scorer, queries: int, documents: int) -> Iterator[tuple[int, Scores, float]]:
    """Scores of some queries with all documents, the first query's number and the seconds."""
    step = max(1, BLOCK // documents)
    for first in range(0, queries, step):
        some = slice(first, min(first + step, queries))
        scores, seconds = timed(partial(_product_of_chunks, scorer, some, documents))
        yield first, scores, seconds


def _product_of_chunks(scorer: Scorer, queries: slice, documents: int) -> Scores:
    scores = np.empty((queries.stop - queries.start, documents), np.float32)
    for start in range(0, documents, CHUNK):
        chunk = slice(start, start + CHUNK)
        scores[:, chunk] = scorer.products(queries, chunk)
    return scores


def _evaluate_block(
    dataset: RetrievalDataset,
    names: list[str],
    place: dict[str, int],
    scores: Scores,
    measures: list[Measure],
) -> Result:
    """Count what stands above and beside the judged documents in [queries × documents]."""
    judged = any(measure.needs_judged for measure in measures)
    interest = [
        (query, place.get(doc, -1), grade)
        for query, name in enumerate(names)
        for doc, grade in dataset.judgements[name].items()
        if judged or grade > 0
    ]
    query, position, grade = np.array(interest, np.float64).T
    query, position = query.astype(np.int64), position.astype(np.int64)
    found = position >= 0
    counter = TieCounter(
        len(names),
        query[found],
        scores[query[found], position[found]],
        grade[found],
        position[found],
        unretrieved=(query[~found], grade[~found]),
    )
    counter.update(scores)
    return evaluate_groups(counter.groups(), measures, query_ids=names)


def _joined(results: list[Result]) -> Result:
    """One result of the queries of all."""

    def column(measure: Measure, name: str) -> Any:
        values = [getattr(result.views[measure], name) for result in results]
        return None if values[0] is None else np.concatenate(values)

    names = ("expected", "best", "worst", "oblivious", "variance")
    return replace(
        results[0],
        query_ids=[query for result in results for query in result.query_ids],
        views={
            measure: Views(**{name: column(measure, name) for name in names})
            for measure in results[0].views
        },
    )


def _frame(query: list[str], documents: Any, scores: Scores) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "query_id": pl.Series(query, dtype=pl.String).new_from_index(0, len(scores)),
            "doc_id": pl.Series(documents.tolist(), dtype=pl.String),
            "score": scores,
        }
    )


def timed(compute: Callable[[], Scores]) -> tuple[Scores, float]:
    """Compute, and measure the seconds; what is over in a moment is measured several times."""
    best = total = 0.0
    while True:
        start = time.perf_counter()
        scores = compute()
        spent = time.perf_counter() - start
        best = min(best or spent, spent)
        total += spent
        if total > 0.1:
            return scores, best
