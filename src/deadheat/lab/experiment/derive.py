"""From a model's stored output to scores and results, under every regime."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deadheat._lazy import pl
from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.evaluation import Result, evaluate_run
from deadheat.evaluation.corpus.evaluate import Corpus, count_scores, evaluate_shards
from deadheat.formats import read_qrels, read_run
from deadheat.formats.ids import id_column
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.folder import CellFolder, Manifest
from deadheat.lab.experiment.parts import Parts
from deadheat.measures import Measure
from deadheat.numbers import exact_floats
from deadheat.provenance import InputFacts, ScoreFacts
from deadheat.scoring import Products
from deadheat.scoring.regimes import score, scoring_provenance
from deadheat.ties import TopCounter
from deadheat.ties.sizes import run_sizes

if TYPE_CHECKING:
    import torch

Scores = NDArray[Any]
CHUNK = 1 << 16
"""Documents of the full corpus whose embeddings are read together, and at most a part more."""
LONGEST_RUN = 10_000_000
"""Scores of the full corpus beyond which only results are written, and no run."""


@dataclass(frozen=True)
class Scorer:
    """Computes the scores of one regime from the stored output of a model."""

    function: Any
    regime: str
    model_dtype: str
    outputs: dict[str, torch.Tensor]

    def score_pairs(self) -> Scores:
        """Score every pair of a reranker."""
        name = "head_logits" if self.regime == "head" else "logits"
        logits = self.outputs[name]
        return self._score(**{name: logits.squeeze(1) if self.function == "sigmoid" else logits})

    def score_products(self, queries: slice, documents: Any) -> Scores:
        """Score queries with documents, both given by their places among the embeddings."""
        return self._score(
            queries=self.outputs["queries"][queries],
            documents=self.outputs["documents"][documents],
        )

    def _score(self, **given: Any) -> Scores:
        return score(self.function, regime=self.regime, model_dtype=self.model_dtype, **given)


@dataclass(frozen=True)
class RegimeResult:
    """The result of one regime, with its scores."""

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
    engine: Engine,
    progress: Progress | None = None,
) -> None:
    """Score and evaluate a complete cell under every regime, and store scores and results.

    `depth` cuts the ranked lists of the full corpus; None evaluates the whole of it, which the
    engine counts where it is too long to be stored. `progress` is called while that is done.
    """
    model = manifest.model
    full = dataset.candidates is None
    outputs = {} if full else cell.outputs()
    inputs = {
        stream: InputFacts(facts.count, facts.truncated, parts.halved())
        for (stream, facts), parts in zip(
            manifest.inputs.items(), cell.streams().values(), strict=True
        )
    }
    rule = manifest.dataset.candidates
    if depth is not None:
        rule = f"{rule}, first {depth}"
    function: Any = manifest.function
    for regime in regimes:
        report = _label_progress(progress, regime)
        if not full:
            scorer = Scorer(function, regime, model.model_dtype, outputs)
            scored = _score_lists(scorer, dataset, measures)
        elif depth is None:
            workplace = engine if dataset.pairs > LONGEST_RUN else LocalEngine()
            corpus = _open_corpus(cell, manifest, regime, dataset, workplace)
            scored = _score_corpus(corpus, dataset, measures, report)
        else:
            corpus = _open_corpus(cell, manifest, regime, dataset, LocalEngine())
            scored = _evaluate_frame(
                _select_best(corpus, dataset, depth, report), dataset, measures
            )
        provenance = replace(
            scored.result.provenance,
            run=f"{model.model} {model.model_dtype} {regime}",
            qrels=None,
            dataset=replace(manifest.dataset, candidates=rule),
            model=model,
            scoring=scoring_provenance(
                regime, model.model_dtype, function, threads=1 if full else None
            ),
            inputs=inputs,
            scores=scored.facts,
        )
        result = replace(scored.result, provenance=provenance)
        cell.write_result(regime, result, scored.frame)


def list_documents(dataset: RetrievalDataset) -> list[str]:
    """Return the documents that are a candidate of some query, in the order of the corpus."""
    if dataset.candidates is None:
        return list(dataset.corpus)
    listed = {doc for documents in dataset.candidates.values() for doc in documents}
    return [doc for doc in dataset.corpus if doc in listed]


def group_texts(dataset: RetrievalDataset) -> dict[str, list[str]]:
    """Return the texts of the listed documents, each once, with the documents that have it.

    A text is encoded once and scored once, so that its documents tie exactly: the place of a row in
    a product may change its last bit.
    """
    documents: dict[str, list[str]] = {}
    for doc in list_documents(dataset):
        documents.setdefault(dataset.corpus[doc], []).append(doc)
    return documents


def _score_lists(
    scorer: Scorer, dataset: RetrievalDataset, measures: Sequence[Measure]
) -> RegimeResult:
    """Score candidate lists."""
    lists = dataset.candidates or {}
    scores = scorer.score_pairs() if "logits" in scorer.outputs else _list_products(scorer, dataset)
    lengths = [len(documents) for documents in lists.values()]
    documents = [doc for listed in lists.values() for doc in listed]
    frame = _make_frame(id_column(list(lists)), lengths, id_column(documents), scores)
    return _evaluate_frame(frame, dataset, measures)


def _evaluate_frame(
    frame: pl.DataFrame, dataset: RetrievalDataset, measures: Sequence[Measure]
) -> RegimeResult:
    """Evaluate scored lists."""
    run = read_run(frame)
    result = evaluate_run(read_qrels(dict(dataset.judgements)), run, measures)
    return RegimeResult(result, run_sizes(run).facts, frame)


def _list_products(scorer: Scorer, dataset: RetrievalDataset) -> Scores:
    """Score each query with its own candidates alone."""
    texts = enumerate(group_texts(dataset).values())
    place = {doc: i for i, documents in texts for doc in documents}
    scores = []
    for q, documents in enumerate((dataset.candidates or {}).values()):
        # In the order of the list; a repeated text is scored once.
        rows = list(dict.fromkeys(place[doc] for doc in documents))
        column = {row: i for i, row in enumerate(rows)}
        own = scorer.score_products(slice(q, q + 1), rows)[0]
        scores.append(own[[column[place[doc]] for doc in documents]])
    return np.concatenate(scores)


@dataclass(frozen=True)
class StoredChunk:
    """Some stored parts of the embeddings of a corpus, read wherever this is called."""

    paths: list[Path]
    ids: list[str]
    positions: list[int]
    rows: list[int]
    """Per document: its row among the embeddings; documents of one text share it."""
    reuses_buffers: ClassVar[bool] = False

    def __call__(self) -> Iterator[Any]:
        """Yield the only chunk."""
        import torch
        from safetensors.torch import load

        vectors = [load(path.read_bytes())["documents"] for path in self.paths]
        yield self.ids, torch.cat(vectors), self.positions, self.rows


def _open_corpus(
    cell: CellFolder,
    manifest: Manifest,
    regime: str,
    dataset: RetrievalDataset,
    engine: Engine,
) -> Corpus:
    """Return the queries, and the documents as shards that read some stored parts each.

    An engine whose workers see the stored parts reads and counts them.
    """
    chunks = list(_list_chunks(cell.streams()["documents"], dataset))
    queries = read_queries(cell, manifest, regime)
    names = list(dataset.queries)
    return Corpus(queries, names, chunks, choose_engine(engine, chunks[0].paths[0]))


def read_queries(cell: CellFolder, manifest: Manifest, regime: str) -> Products:
    """Read the stored queries of a bi-encoder, ready to be multiplied with documents."""
    function: Any = manifest.function
    return Products.of(cell.streams()["queries"].read()["queries"], function, regime)


def choose_engine(engine: Engine, path: Path) -> Engine:
    """Return the engine if its workers see a file of this machine, else this process."""
    return engine if engine.ask(partial(Path.is_file, path)) else LocalEngine()


def _list_chunks(parts: Parts, dataset: RetrievalDataset) -> Iterator[StoredChunk]:
    position = {doc: i for i, doc in enumerate(dataset.corpus)}
    documents = list(group_texts(dataset).values())

    def chunk(paths: list[Path], texts: list[int]) -> StoredChunk:
        ids = [doc for text in texts for doc in documents[text]]
        rows = [row for row, text in enumerate(texts) for _ in documents[text]]
        return StoredChunk(paths, ids, [position[doc] for doc in ids], rows)

    paths: list[Path] = []
    texts: list[int] = []
    for path, own in parts.indices():
        paths.append(path.absolute())
        texts += own.tolist()
        if len(texts) >= CHUNK:
            yield chunk(paths, texts)
            paths, texts = [], []
    if texts:
        yield chunk(paths, texts)


def _select_best(
    corpus: Corpus, dataset: RetrievalDataset, depth: int, progress: Progress | None
) -> pl.DataFrame:
    """Keep the first documents of every query; at the cut ties keep the corpus' order."""
    make_counter = partial(TopCounter, len(dataset.queries), depth, judged=((), ()))
    rows, best = reduce(operator.add, count_scores(corpus, make_counter, progress)).top()
    documents = id_column(list(dataset.corpus)).gather(rows.reshape(-1))
    return _make_frame(id_column(list(dataset.queries)), rows.shape[1], documents, best.reshape(-1))


def _label_progress(progress: Progress | None, regime: str) -> Progress | None:
    """Return a progress callback that names the regime."""
    if progress is None:
        return None
    return lambda what, done, total: progress(f"{regime}, {what}", done, total)


def _score_corpus(
    corpus: Corpus,
    dataset: RetrievalDataset,
    measures: Sequence[Measure],
    progress: Progress | None,
) -> RegimeResult:
    """Score and evaluate every document of the corpus; keep the scores if they are few enough."""
    queries, documents = list(dataset.queries), list(dataset.corpus)
    judgements = read_qrels({query: dataset.judgements[query] for query in queries})
    if dataset.pairs > LONGEST_RUN:
        result, _ = evaluate_shards(corpus, judgements, measures, progress=progress)
        facts = result.provenance.scores
        return RegimeResult(result, facts or ScoreFacts(0, 0, 0, judged_only=True), None)
    scores = np.empty((len(queries), len(documents)), np.float32)

    def keep(positions: NDArray[np.int64], block: Any) -> None:
        scores[:, positions] = exact_floats(block)

    result, _ = evaluate_shards(corpus, judgements, measures, on_block=keep, progress=progress)
    rows = np.tile(np.arange(len(documents)), len(queries))
    listed = id_column(documents).gather(rows)
    frame = _make_frame(id_column(queries), len(documents), listed, scores.reshape(-1))
    return RegimeResult(result, run_sizes(read_run(frame)).facts, frame)


def _make_frame(
    queries: pl.Series, lengths: Any, documents: pl.Series, scores: Scores
) -> pl.DataFrame:
    """Return a frame of query_id, doc_id and score, list after list."""
    rows = np.repeat(np.arange(len(queries)), lengths)
    return pl.DataFrame(
        {
            "query_id": queries.gather(rows),
            "doc_id": documents,
            "score": pl.Series(scores, dtype=pl.Float32),
        }
    )
