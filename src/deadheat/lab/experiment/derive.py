"""Compute scores and results of a model's stored output under every regime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import exact_floats
from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.evaluation import evaluate_run
from deadheat.evaluation.corpus import Corpus, evaluate_shards, open_shards, score_blocks
from deadheat.formats import id_column, read_qrels, read_run
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.folder import CellFolder, Manifest
from deadheat.measures import Measure
from deadheat.scoring import Product, Products, Scores, Scoring, score, scoring_provenance
from deadheat.ties import Ints, TopCounter, run_sizes

if TYPE_CHECKING:
    import torch


CHUNK = 1 << 16
"""Documents of the full corpus whose embeddings are read together (at most one part more)."""
StoredChunk: TypeAlias = tuple[list[str], "torch.Tensor", list[int], list[int]]
"""Ids, embeddings, positions in the corpus, and the row of each document."""
LONGEST_RUN = 10_000_000
"""Largest number of scores of the full corpus for which a run is written, not only results."""


def evaluate_cell(
    cell: CellFolder,
    manifest: Manifest,
    dataset: RetrievalDataset,
    regimes: Sequence[str],
    measures: Sequence[Measure],
    depth: int | None,
    engine: Engine,
    progress: Progress,
) -> None:
    """Score and evaluate a complete cell under every regime, and store scores and results.

    `depth` is the largest length of the ranked lists of the full corpus. None evaluates whole
    lists; if they are too long to be stored, the engine counts them and calls `progress`.
    """
    model, origin = manifest.model, manifest.dataset
    full = dataset.candidates is None
    too_long = full and depth is None and dataset.pairs > LONGEST_RUN
    outputs = {} if full else cell.outputs()
    if manifest.function == "sigmoid":
        outputs = {name: logits.squeeze(1) for name, logits in outputs.items()}
    compute = partial(score, cast(Scoring, manifest.function), model_dtype=model.model_dtype)
    if depth is not None:
        origin = replace(origin, candidates=f"{origin.candidates}, first {depth}")
    judgements = read_qrels(dict(dataset.judgements))
    for regime in regimes:
        frame = None
        if full:
            corpus = _open_corpus(
                cell, manifest, regime, dataset, engine if too_long else LocalEngine()
            )
            report = partial(_report_regime, progress, regime)
        if too_long:
            result, _ = evaluate_shards(corpus, judgements, measures, progress=report)
            facts = result.provenance.scores
        else:
            frame = (
                _score_corpus(corpus, dataset, depth, report)
                if full
                else score_lists(outputs, partial(compute, regime=regime), dataset)
            )
            run = replace(read_run(frame), complete=full and depth is None)
            result = evaluate_run(judgements, run, measures)
            facts = run_sizes(run).facts
        provenance = replace(
            result.provenance,
            run=f"{model.model} {model.model_dtype} {regime}",
            qrels=None,
            dataset=origin,
            model=model,
            scoring=scoring_provenance(
                regime, model.model_dtype, manifest.function, threads=1 if full else None
            ),
            inputs=manifest.inputs,
            scores=facts,
        )
        cell.write_result(regime, replace(result, provenance=provenance), frame)


def group_texts(dataset: RetrievalDataset) -> dict[str, list[str]]:
    """Return the distinct texts of the listed documents, each with its document ids.

    A text is encoded and scored once, so its documents tie exactly: the last bit of a product may
    depend on the position of its row.
    """
    lists = dataset.candidates
    listed = dataset.corpus if lists is None else {doc for own in lists.values() for doc in own}
    documents: dict[str, list[str]] = {}
    for doc, text in dataset.corpus.items():
        if doc in listed:
            documents.setdefault(text, []).append(doc)
    return documents


def _report_regime(progress: Progress, regime: str, what: str, done: int, total: int) -> None:
    progress(f"{regime}, {what}", done, total)


def score_lists(
    outputs: Mapping[str, Any], compute: Callable[..., Scores], dataset: RetrievalDataset
) -> pl.DataFrame:
    """Score candidate lists: pairs of a reranker, or each query with its own candidates.

    Parameters
    ----------
    outputs
        ``logits`` and optionally ``head_logits``, a row per pair; or ``queries`` and
        ``documents``, a row per query and per text of `group_texts`.
    compute
        Function that computes scores of pairs, or of a query and documents, from the outputs by
        name.
    """
    lists = dataset.candidates or {}
    if "logits" in outputs:
        scores = compute(**outputs)
    else:
        texts = enumerate(group_texts(dataset).values())
        place = {doc: i for i, documents in texts for doc in documents}
        of_queries = []
        for q, documents in enumerate(lists.values()):
            # In the order of the list; a repeated text is scored once.
            rows = list(dict.fromkeys(place[doc] for doc in documents))
            column = {row: i for i, row in enumerate(rows)}
            own = compute(
                queries=outputs["queries"][q : q + 1], documents=outputs["documents"][rows]
            ).reshape(-1)
            of_queries.append(own[[column[place[doc]] for doc in documents]])
        scores = cast(Scores, np.concatenate(of_queries))
    lengths = [len(documents) for documents in lists.values()]
    listed = id_column([doc for documents in lists.values() for doc in documents])
    return _make_frame(id_column(list(lists)), lengths, listed, scores)


def read_chunk(
    paths: list[Path], ids: list[str], positions: list[int], rows: list[int]
) -> Iterator[StoredChunk]:
    """Yield one chunk of a corpus, from some stored parts of its embeddings.

    Documents with the same text share a row of the embeddings.
    """
    import torch
    from safetensors.torch import load

    vectors = [load(path.read_bytes())["documents"] for path in paths]
    yield ids, torch.cat(vectors), positions, rows


def _open_corpus(
    cell: CellFolder,
    manifest: Manifest,
    regime: str,
    dataset: RetrievalDataset,
    engine: Engine,
) -> Corpus:
    """Return the queries, and the documents as shards that read some stored parts each.

    The workers of an engine read and count the shards if they can access the stored parts.
    """
    parts = cell.streams()
    embeddings = parts["queries"].read()["queries"]
    queries = Products.of(embeddings, cast(Product, manifest.function), regime)
    stored = [(path.absolute(), texts) for path, texts in parts["documents"].indices()]
    if not engine.ask(partial(Path.is_file, stored[0][0])):
        engine = LocalEngine()
    shards = open_shards(list(_list_chunks(stored, dataset)))
    return Corpus(queries, list(dataset.queries), shards, engine)


def _list_chunks(
    stored: Sequence[tuple[Path, Ints]], dataset: RetrievalDataset
) -> Iterator[Callable[[], Iterator[StoredChunk]]]:
    """Yield functions that read a chunk each, from parts and the numbers of their texts."""
    position = {doc: i for i, doc in enumerate(dataset.corpus)}
    documents = list(group_texts(dataset).values())
    paths: list[Path] = []
    texts: list[int] = []
    for path, own in stored:
        paths.append(path)
        texts += own.tolist()
        if len(texts) >= CHUNK or path == stored[-1][0]:
            ids = [doc for text in texts for doc in documents[text]]
            rows = [row for row, text in enumerate(texts) for _ in documents[text]]
            yield partial(read_chunk, paths, ids, [position[doc] for doc in ids], rows)
            paths, texts = [], []


def _score_corpus(
    corpus: Corpus, dataset: RetrievalDataset, depth: int | None, progress: Progress
) -> pl.DataFrame:
    """Score every document of the corpus, or keep the first documents of every query.

    Documents that tie at the cut keep the order of the corpus.
    """
    queries, documents = len(dataset.queries), len(dataset.corpus)
    if depth is None:
        rows = np.tile(np.arange(documents), (queries, 1))
        scores = np.empty((queries, documents), np.float32)
    else:
        counter = TopCounter(queries, depth, judged=((), ()))
    done = 0
    for block, own in score_blocks(corpus.products, corpus.read()):
        if depth is None:
            scores[:, block.positions] = exact_floats(own)
        else:
            counter.update(own, positions=block.positions)
        done += len(block.positions)
        progress("counting", done, documents)
    if depth is not None:
        rows, best = counter.top()
        scores = best.astype(np.float32)
    listed = id_column(list(dataset.corpus)).gather(rows.reshape(-1))
    names = id_column(list(dataset.queries))
    return _make_frame(names, rows.shape[1], listed, scores.reshape(-1))


def _make_frame(
    queries: pl.Series, lengths: int | list[int], documents: pl.Series, scores: Scores
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
