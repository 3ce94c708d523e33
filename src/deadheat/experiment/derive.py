"""From a model's stored output to scores and results, under every regime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.datasets import RetrievalDataset
from deadheat.evaluation import Result, evaluated
from deadheat.experiment.folder import CellFolder, Manifest
from deadheat.formats import read_qrels, read_run
from deadheat.formats.ids import id_column
from deadheat.formats.shapes import Run, SharedDocuments
from deadheat.measures import Measure
from deadheat.provenance import InputFacts, ScoreFacts
from deadheat.scoring.regimes import score, scoring_provenance
from deadheat.ties.rules import RuleOrder, list_order
from deadheat.ties.sizes import run_sizes

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

    function: Any
    regime: str
    model_dtype: str
    outputs: dict[str, torch.Tensor]

    def pairs(self) -> Scores:
        """Score every pair of a reranker."""
        name = "head_logits" if self.regime == "head" else "logits"
        logits = self.outputs[name]
        return self._score(**{name: logits.squeeze(1) if self.function == "sigmoid" else logits})

    def products(self, queries: slice, documents: Any) -> Scores:
        """Score queries with documents, both given by their places among the embeddings."""
        return self._score(
            queries=self.outputs["queries"][queries],
            documents=self.outputs["documents"][documents],
        )

    def _score(self, **given: Any) -> Scores:
        return score(self.function, regime=self.regime, model_dtype=self.model_dtype, **given)


@dataclass(frozen=True)
class Scored:
    """What one regime gives."""

    result: Result
    facts: ScoreFacts
    frame: pl.DataFrame | None
    """query_id, doc_id, score in the order of the candidates; None where they are too many."""


def evaluate_cell(
    cell: CellFolder,
    manifest: Manifest,
    dataset: RetrievalDataset,
    regimes: Sequence[str],
    measures: Sequence[Measure],
    depth: int | None,
) -> None:
    """Score and evaluate a complete cell under every regime, and store scores and results.

    `depth` cuts the ranked lists of the full corpus; None evaluates the whole of it.
    """
    outputs, model = cell.outputs(), manifest.model
    inputs = {
        stream: InputFacts(facts.count, facts.truncated, parts.halved())
        for (stream, facts), parts in zip(
            manifest.inputs.items(), cell.streams().values(), strict=True
        )
    }
    rule = manifest.dataset.candidates
    if depth is not None:
        rule = f"{rule}, first {depth}"
    for regime in regimes:
        scorer = Scorer(manifest.function, regime, model.model_dtype, outputs)
        if dataset.candidates is None and depth is None:
            scored = _score_corpus(scorer, dataset, measures)
        else:
            scored = _score_lists(scorer, dataset, measures, depth)
        provenance = replace(
            scored.result.provenance,
            run=f"{model.model} {model.model_dtype} {regime}",
            qrels=None,
            dataset=replace(manifest.dataset, candidates=rule),
            model=model,
            scoring=scoring_provenance(regime, model.model_dtype, scorer.function),
            inputs=inputs,
            scores=scored.facts,
        )
        result = replace(scored.result, provenance=provenance)
        cell.write_result(regime, result, scored.frame)


def listed_documents(dataset: RetrievalDataset) -> list[str]:
    """Return the documents that are a candidate of some query, in the order of the corpus."""
    if dataset.candidates is None:
        return list(dataset.corpus)
    listed = {doc for documents in dataset.candidates.values() for doc in documents}
    return [doc for doc in dataset.corpus if doc in listed]


def _score_lists(
    scorer: Scorer, dataset: RetrievalDataset, measures: Sequence[Measure], depth: int | None
) -> Scored:
    """Score candidate lists, or the full corpus cut to lists of `depth`."""
    if dataset.candidates is None:
        frame = _best_of_corpus(scorer, dataset, depth)
    else:
        lists = dataset.candidates
        scores = scorer.pairs() if "logits" in scorer.outputs else _list_products(scorer, dataset)
        lengths = [len(documents) for documents in lists.values()]
        documents = [doc for listed in lists.values() for doc in listed]
        frame = _frame(id_column(list(lists)), lengths, id_column(documents), scores)
    run = read_run(frame)
    result = evaluated(read_qrels(dict(dataset.judgements)), run, measures)
    return Scored(result, run_sizes(run).facts, frame)


def _list_products(scorer: Scorer, dataset: RetrievalDataset) -> Scores:
    """Score each query with its own candidates alone."""
    place = {doc: i for i, doc in enumerate(listed_documents(dataset))}
    lists = (dataset.candidates or {}).values()
    return np.concatenate(
        [
            scorer.products(slice(q, q + 1), [place[doc] for doc in documents])[0]
            for q, documents in enumerate(lists)
        ]
    )


def _best_of_corpus(scorer: Scorer, dataset: RetrievalDataset, depth: int | None) -> pl.DataFrame:
    """Keep the first documents of every query; at the cut ties keep the corpus' order."""
    frames = []
    for run in _corpus_runs(scorer, dataset):
        by_input = RuleOrder(run.scores, None)
        bounds = zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True)
        lists = [list_order(by_input, start, stop, depth)[:depth] for start, stop in bounds]
        rows, lengths = np.concatenate(lists), list(map(len, lists))
        ids = run.documents.ids(rows)
        frames.append(_frame(id_column(run.query_ids), lengths, ids, run.scores[rows]))
    return pl.concat(frames)


def _score_corpus(scorer: Scorer, dataset: RetrievalDataset, measures: Sequence[Measure]) -> Scored:
    """Score and evaluate every document of the corpus, some queries at a time."""
    results, facts, frames = [], [], []
    short = dataset.pairs <= LONGEST_RUN
    for run in _corpus_runs(scorer, dataset):
        judgements = read_qrels({query: dataset.judgements[query] for query in run.query_ids})
        results.append(evaluated(judgements, run, measures))
        facts.append(run_sizes(run).facts)
        if short:
            ids = run.documents.ids(np.arange(len(run.scores)))
            frames.append(_frame(id_column(run.query_ids), np.diff(run.offsets), ids, run.scores))
    whole = ScoreFacts(
        sum(block.documents for block in facts),
        sum(block.distinct for block in facts),
        max(block.largest for block in facts),
    )
    return Scored(Result.concat(results), whole, pl.concat(frames) if short else None)


def _corpus_runs(scorer: Scorer, dataset: RetrievalDataset) -> Iterator[Run]:
    """Score some queries at a time with every document of the corpus."""
    queries, ids = list(dataset.queries), id_column(list(dataset.corpus))
    step = max(1, BLOCK // len(ids))
    for first in range(0, len(queries), step):
        block = slice(first, min(first + step, len(queries)))
        names = queries[block]
        scores = np.empty((len(names), len(ids)), np.float32)
        for start in range(0, len(ids), CHUNK):
            chunk = slice(start, start + CHUNK)
            scores[:, chunk] = scorer.products(block, chunk)
        offsets = np.arange(len(names) + 1, dtype=np.int64) * len(ids)
        documents = SharedDocuments(ids)
        yield Run("full corpus", names, offsets, scores.reshape(-1), documents, complete=True)


def _frame(queries: pl.Series, lengths: Any, documents: pl.Series, scores: Scores) -> pl.DataFrame:
    """Put the scores of lists under one another."""
    rows = np.repeat(np.arange(len(queries)), lengths)
    return pl.DataFrame(
        {
            "query_id": queries.gather(rows),
            "doc_id": documents,
            "score": pl.Series(scores, dtype=pl.Float32),
        }
    )
