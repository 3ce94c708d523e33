"""Evaluate embeddings against a whole corpus that never has to fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from deadheat.engines import Engine, Here, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus_chunks import Chunks, are_shards, opened
from deadheat.evaluation.corpus_pieces import Interest, See, ShardWork
from deadheat.evaluation.corpus_shards import Corpus
from deadheat.evaluation.evaluate import DEFAULT_MEASURES
from deadheat.evaluation.result import Result
from deadheat.evaluation.views import need_judged, result_of, versions
from deadheat.forks import check_fork
from deadheat.formats import Judgements, QrelsLike, Run, read_qrels
from deadheat.formats.arrays import query_names
from deadheat.formats.ids import id_column
from deadheat.late import pl
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.provenance import Provenance, ScoreFacts
from deadheat.remarks import announcing, note
from deadheat.scoring import Products
from deadheat.scoring.functions import Product
from deadheat.ties import TieCounter, TieGroups
from deadheat.ties.groups import Ints
from deadheat.ties.lists import JudgedLists, judged_lists


@announcing
def evaluate_corpus(
    queries: tuple[Sequence[Any], Any],
    chunks: Chunks,
    qrels: QrelsLike,
    measures: str | Measure | Iterable[Any] = DEFAULT_MEASURES,
    *,
    similarity: Product = "dot",
    regime: Literal["native", "hps"] = "native",
    exact_ties: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Result:
    """Evaluate embeddings of queries against every document of a corpus, chunk by chunk.

    Every document counts, nothing is cut to a top-k, and all views are exact. A chunk is
    multiplied and counted before the next one is read, so that one chunk of embeddings and, in
    every thread, one block of scores are in memory, however large the corpus is.

    Parameters
    ----------
    queries
        ``(query_ids, embeddings)``: names, and ``[queries, width]`` as an array or a torch tensor.
    chunks
        Gives ``(document_ids, embeddings)``, or ``(document_ids, embeddings, positions)`` where
        documents do not come in the order of the corpus. A fourth item ``rows`` says which row of
        the embeddings each document has: documents that share one are scored once, and tie. It
        is passed twice, so it must be an iterable that can be started again, such as a list, or
        a function that makes an iterator.
        The first pass looks at the ids of all chunks and takes the embeddings of judged documents
        only, so that memory-mapped ones are hardly touched. Both passes must give the same.
        Chunks are made by the thread that calls this. One of a function is counted before the next
        is made, which may stand in its place; threads have more to share the larger it is.
        A list of such functions is a corpus in shards, one after the other: each function is
        called where its shard is counted.
    qrels, measures
        As for `deadheat.evaluate`.
    similarity
        ``"dot"``, ``"cosine"``, or ``"hamming"`` for binary embeddings (booleans, or packed into
        8-bit integers). 8-bit integers are multiplied exactly.
    regime
        ``"native"`` scores in the dtype of the embeddings, ``"hps"`` in FP32.
    exact_ties
        Count the distinct scores of all documents for ``provenance.scores``, which keeps them.
        Otherwise its numbers are of the tie groups with a judged document.
    engine
        Where shards are counted: this process unless given, or a
        `deadheat.engines.cluster.RayCluster`, whose workers open a shard each. The result is the
        same to the last bit, however many workers there are and however the corpus is sharded.
    progress
        Called with what is being done, how much is done, and of how much: shards whose ids were
        read, then documents that were counted. Not always by the thread that calls this.

    Returns
    -------
    Result
        As of `deadheat.evaluate`; the oblivious value breaks ties in the order of the corpus.

    Notes
    -----
    Documents are multiplied in blocks of one shape, which depends on the number of queries alone,
    and each product takes one thread: the last bits of a product depend on both. So a score
    depends on its query and its document, and not on where the document stands, how the corpus is
    cut into chunks and shards, or how many threads there are. As many blocks are multiplied and
    counted at a time as NumPy's or torch's own settings have threads for a product. NumPy's
    setting is 1 meanwhile, and as it was afterwards; a second evaluation of arrays waits.
    The judged documents are scored first, and their scores are checked as they pass by. Where a
    backend gives another score at another place, the first one stands in for the document itself,
    and the result says for how many. Workers of an engine show that their products are those of
    this process before they count; one that differs is refused.

    Every document has one id and one place: one that comes twice is refused, and places that no
    document has are told.

    Tensors are multiplied and counted on their device; tested on the CPU.

    Examples
    --------
    >>> import numpy as np
    >>> import deadheat as dh
    >>> documents = np.array([[1, 0], [0, 1], [1, 1], [1, 0]], np.int8)
    >>> chunks = [(["a", "b"], documents[:2]), (["c", "d"], documents[2:])]
    >>> queries = (["q"], np.array([[1, 0]], np.int8))
    >>> summary = dh.evaluate_corpus(queries, chunks, {"q": {"d": 1}}, ["MRR"])["MRR"]
    >>> round(summary.expected, 4), summary.worst, summary.best, summary.oblivious
    (0.6111, 0.3333333333333333, 1.0, 0.3333333333333333)
    """
    check_fork()
    judgements, parsed = read_qrels(qrels), parse_measures(measures)
    try:
        ids, embeddings = queries
    except (TypeError, ValueError):
        raise InputError("queries must be a pair: their ids, and their embeddings") from None
    ready = Products.of(embeddings, similarity_named(similarity), _regime(regime))
    shards, workplace = opened(chunks), engine or Here()
    if not hasattr(workplace, "pool"):
        raise InputError(
            "engine must be an engine such as deadheat.engines.cluster.RayCluster(), not "
            f"{workplace!r:.40}"
        )
    if not isinstance(workplace, Here) and not are_shards(chunks):
        raise InputError(
            "an engine reads a corpus where it lies: give chunks as a function that makes an "
            "iterator of them, or as a list of such functions, one for each shard"
        )
    corpus = Corpus(ready, query_names(ids, len(ready)), shards, workplace)
    result = corpus_result(corpus, judgements, parsed, exact_ties=exact_ties, progress=progress)
    return replace(result, remarks=(*result.remarks, *corpus.missing(judgements)))


@dataclass(frozen=True)
class _CorpusDocuments:
    """The judged documents of a corpus, as a run that lists the whole corpus for every query."""

    corpus: Corpus

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the first documents, for examples in messages."""
        return id_column([self.corpus.first_ids[row] for row in rows.tolist()])

    def find(self, queries: Ints, doc_ids: pl.Series) -> Ints:
        """Row of each document in the list of its query, −1 where the corpus lacks it."""
        found = [self.corpus.judged.get(document, -1) for document in doc_ids.to_list()]
        position = np.array(found, np.int64)
        return np.where(position >= 0, position + queries * self.corpus.documents, -1)


def corpus_result(
    corpus: Corpus,
    judgements: Judgements,
    measures: Sequence[Measure],
    *,
    exact_ties: bool = False,
    see: See | None = None,
    progress: Progress | None = None,
) -> Result:
    """Evaluate a corpus as `evaluate_corpus` does, without a word.

    `see` is shown the positions and the scores of every block, judged or not, where the engine of
    the corpus is this process.
    """
    with corpus.engine.pool(ShardWork(corpus.products)) as pool:
        corpus.survey(set(judgements.doc_ids.to_list()), pool, progress)
        n = len(corpus.query_ids)
        offsets = np.arange(n + 1, dtype=np.int64) * corpus.documents
        documents = _CorpusDocuments(corpus)
        run = Run("corpus", corpus.query_ids, offsets, np.empty(0), documents, complete=True)
        lists, remarks = judged_lists(
            judgements, run, queries="judged", with_judged=need_judged(measures)
        )
        row_of = np.array([run.query_index.get(query, -1) for query in lists.query_ids])
        # The counter has the queries in the order of their embeddings: blocks need no copy.
        interest = Interest(
            n_queries=n,
            query=row_of[lists.query],
            score=corpus.announced(lists, row_of),
            grade=lists.grade,
            position=lists.position,
            sizes=exact_ties,
            probe=corpus.probe(),
        )
        counted = corpus.counted(interest, pool, see, progress)
    if counted.changed:
        pattern = (
            "{changed:score} of judged documents differed in the last bits when the corpus was "
            "passed: the one computed first stands in for the document itself"
        )
        remarks.append(note(pattern, changed=counted.changed))
    groups = _in_order(counted.counter, row_of, lists).groups()
    provenance = Provenance(
        run.source,
        judgements.source,
        scoring=corpus.products.provenance(),
        scores=_judged_facts(groups) if counted.sizes is None else counted.sizes.facts,
        versions=versions(),
    )
    remarks += corpus.remarks
    return result_of(lists.own_ids, groups, measures, provenance, remarks)


def _in_order(counter: TieCounter, row_of: Ints, lists: JudgedLists) -> TieCounter:
    """Bring the counts into the order of the judged queries; queries without a row are empty."""
    n = len(row_of)
    number = np.full(counter.n_queries, -1, np.int64)
    number[row_of[row_of >= 0]] = np.flatnonzero(row_of >= 0)
    query = number[counter.query]
    ordered = TieCounter.of(
        n, query, counter.score, counter.grade, counter.position, lists.unretrieved
    )
    order = np.lexsort((counter.position, -counter.score, query))
    ordered.counts[:] = counter.counts[:, order]
    ordered.passed[:] = counter.passed[order]
    ordered.retrieved[:] = np.where(row_of >= 0, counter.retrieved[row_of], 0)
    return ordered


def _judged_facts(groups: TieGroups) -> ScoreFacts:
    """Tie statistics of the groups that hold a document of interest."""
    sizes = groups.size
    return ScoreFacts(int(sizes.sum()), len(sizes), int(sizes.max(initial=0)), judged_only=True)


def similarity_named(name: str) -> Any:
    """Check the name of a product of embeddings."""
    if name not in ("dot", "cosine", "hamming"):
        raise InputError(f"unknown similarity {name!r}; choose dot, cosine or hamming")
    return name


def _regime(name: str) -> str:
    if name not in ("native", "hps"):
        raise InputError(f"unknown regime {name!r} of embeddings; choose native or hps")
    return name
