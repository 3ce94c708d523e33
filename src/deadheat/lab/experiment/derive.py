"""Compute scores and results of a model's stored output under every regime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import exact_floats
from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.errors import InputError
from deadheat.evaluation import evaluate_run
from deadheat.evaluation.corpus import Corpus, evaluate_shards, open_shards, score_blocks
from deadheat.formats import id_column, read_qrels, read_run
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.folder import CellFolder, Manifest
from deadheat.lab.experiment.forward import ForwardPass, group_texts
from deadheat.scoring import (
    SCORED,
    Product,
    Products,
    Scores,
    Scoring,
    ranks_by_logit,
    score,
    scoring_provenance,
)
from deadheat.ties import TopCounter, run_sizes

if TYPE_CHECKING:
    import torch


CHUNK = 1 << 16
"""Documents of the full corpus whose embeddings are read together (at most one part more)."""
StoredChunk: TypeAlias = tuple[list[str], "torch.Tensor", list[int], list[int]]
"""Ids, embeddings, positions in the corpus, and the row of each document."""
LONGEST_RUN = 10_000_000
"""Largest number of scores of the full corpus for which a run is written, not only results."""


def evaluate_cell(
    forward: ForwardPass, cell: CellFolder, manifest: Manifest, engine: Engine, progress: Progress
) -> None:
    """Score and evaluate a complete cell under every regime, and store scores and results.

    The depth of a study is the largest length of the ranked lists of the full corpus. Without it,
    lists that are too long to be stored are counted by the engine.
    """
    study, dataset, model, origin = forward.study, forward.dataset, manifest.model, manifest.dataset
    regimes = list_regimes(study.regimes, manifest.function, model.model_dtype)
    regimes += [SCORED + dtype for dtype in study.scoring_dtypes]
    if not regimes:
        raise InputError("a bi-encoder has no scoring head; choose the regime native or hps")
    full = dataset.candidates is None
    depth = study.depth if full else None
    too_long = full and depth is None and dataset.pairs > LONGEST_RUN
    outputs, function = {} if full else cell.outputs(), cast(Scoring, manifest.function)
    if depth is not None:
        origin = replace(origin, candidates=f"{origin.candidates}, first {depth}")
    judgements, measures = read_qrels(dict(dataset.judgements)), study.all_measures
    for regime in dict.fromkeys([*regimes, *cell.regimes()]):
        frame = None
        if full:
            corpus = _open_corpus(cell, manifest, regime, dataset, engine)
            report = partial(_report_regime, progress, regime)
            if not too_long:
                frame = _score_corpus(corpus, dataset, depth, report)
        else:
            compute = partial(score, function, regime=regime, model_dtype=model.model_dtype)
            frame = score_lists(outputs, compute, dataset)
        if frame is None:
            result, _ = evaluate_shards(corpus, judgements, measures, progress=report)
            facts = result.provenance.scores
        else:
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
                regime, model.model_dtype, function, threads=1 if full else None
            ),
            inputs=manifest.inputs,
            scores=facts,
        )
        cell.write_result(regime, replace(result, provenance=provenance), frame)


def list_regimes(asked: Sequence[str], function: str, model_dtype: str) -> list[str]:
    """Return the regimes that an output of a model has; in FP32 several regimes are the same."""
    has_logits = function in ("sigmoid", "softmax")
    if model_dtype == "fp32" and asked:
        by_logit = has_logits and any(map(ranks_by_logit, asked))
        return ["native", "hps-logit"] if by_logit else ["native"]
    return [regime for regime in asked if has_logits or regime in ("native", "hps")]


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
        scores = compute(**outputs).reshape(-1)
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
    return _make_frame(lists, lengths, listed, scores)


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
    embeddings = cell.read_parts(parts["queries"])["queries"]
    queries = Products.of(embeddings, cast(Product, manifest.function), regime)
    files = [path.absolute() for path in cell.part_files(parts["documents"])]
    is_shared = engine.ask(partial(Path.is_file, files[0]))
    shards = open_shards(list(_list_chunks(files, dataset)))
    return Corpus(queries, list(dataset.queries), shards, engine if is_shared else LocalEngine())


def _list_chunks(
    files: Sequence[Path], dataset: RetrievalDataset
) -> Iterator[Callable[[], Iterator[StoredChunk]]]:
    """Yield functions that read a chunk each, from the files of some parts."""
    from safetensors import safe_open

    position = {doc: i for i, doc in enumerate(dataset.corpus)}
    documents = list(group_texts(dataset).values())
    paths: list[Path] = []
    texts: list[int] = []
    for path in files:
        paths.append(path)
        with safe_open(path, "numpy") as part:  # reads the index only, not the embeddings
            texts += part.get_tensor("index").tolist()
        if len(texts) >= CHUNK or path == files[-1]:
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
    return _make_frame(dataset.queries, rows.shape[1], listed, scores.reshape(-1))


def _make_frame(
    queries: Iterable[str], lengths: int | list[int], documents: pl.Series, scores: Scores
) -> pl.DataFrame:
    """Return a frame of query_id, doc_id and score, list after list."""
    names = id_column(list(queries))
    rows = np.repeat(np.arange(len(names)), lengths)
    return pl.DataFrame(
        {
            "query_id": names.gather(rows),
            "doc_id": documents,
            "score": pl.Series(scores, dtype=pl.Float32),
        }
    )
