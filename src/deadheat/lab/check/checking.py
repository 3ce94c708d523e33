"""``check``: do ties decide the numbers of a run or a model, why, and what to change.

A model is run once. Its logits or embeddings, and the input of its last linear layer, give the
scores of every regime, so that what a remedy leaves is measured.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from deadheat._internal.dtypes import parse_format
from deadheat._internal.lazy import pl
from deadheat._internal.packages import require
from deadheat._internal.remarks import emits_warnings
from deadheat.diagnosis import Check, CheckedRegime, check_regimes, check_run
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation import evaluate_run
from deadheat.formats import QrelsLike, RunLike, id_column, read_qrels, read_run
from deadheat.lab.datasets import RetrievalDataset, load_dataset
from deadheat.lab.models import BiEncoder, ClassifierReranker, Reranker
from deadheat.measures import Measure, parse_measures
from deadheat.provenance import ModelProvenance
from deadheat.scoring import (
    PROBE,
    REGIMES,
    Scores,
    Scoring,
    find_head,
    head_input,
    last_position,
    ranks_by_logit,
    score,
    scoring_format,
    torch_functions,
    uses_head,
    watch,
)
from deadheat.settings import EvalOptions, EvalSettings
from deadheat.ties import run_sizes

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Unpack

SAMPLES = 100
"""Queries that a model is run on. On WikiQA (243 queries), 95 of 100 draws of 100 queries give an
nDCG@10 range within 5 points of 27 for the recorded yes/no reranker in BF16, and within 0.7 points
of 0.45 for the recorded cross-encoder."""
BATCH_SIZE = 16
_CHUNK = 512
"""Texts that are embedded between two steps of the progress bar."""
NEEDS = (
    "check runs a sentence-transformers CrossEncoder, SentenceTransformer or MultiVectorEncoder, a "
    "PyLate ColBERT, a transformers sequence classifier with its tokenizer, or what "
    "deadheat.lab.models.load_model returns"
)


@emits_warnings
def check(
    subject: object,
    data: RunLike | RetrievalDataset,
    measures: str | Measure | Iterable[str | Measure] = "nDCG@10",
    *,
    samples: int = SAMPLES,
    batch_size: int = BATCH_SIZE,
    tokenizer: object = None,
    regime: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[EvalOptions],
) -> Check:
    """Check whether ties decide the numbers of a run or a model, why, and what to change.

    Parameters
    ----------
    subject, data
        Judgements and a run, as for `deadheat.evaluate`; or a model and a dataset. A model is a
        sentence-transformers ``CrossEncoder``, ``SentenceTransformer`` or ``MultiVectorEncoder``,
        a PyLate ``ColBERT``, a transformers sequence classifier, or what
        `deadheat.lab.models.load_model` returns. A dataset is a
        `deadheat.lab.datasets.RetrievalDataset`, or a folder, file or hub id to load one from.
    measures
        The measures to check.
    samples
        How many queries a model is run on, evenly spaced in the dataset.
    batch_size
        Inputs per forward pass of a model.
    tokenizer
        The tokenizer of a transformers model; unless given, that of its checkpoint.
    regime
        The regime that your own code scores in, where `subject` does not show it: a model of
        `deadheat.lab.models` (``"hps"`` unless given).
    progress
        Called with what is done, how much of it, and how much in all.
    **options
        Fields of `deadheat.EvalSettings`, as for `deadheat.diagnose`.

    Returns
    -------
    Check
        `effect`, `cause` and `remedy` as text; `print` shows the three lines. ``ok(max_range)``
        is for tests.

    Examples
    --------
    >>> import deadheat as dh
    >>> run = {"q1": {"d1": 0.75, "d2": 0.5, "d3": 0.5}}
    >>> found = dh.check({"q1": {"d3": 1}}, run, "MRR")
    >>> found.range, found.ok(max_range=0.01)
    (0.16666666666666669, False)
    """
    if not _is_model(subject):
        if isinstance(data, RetrievalDataset):
            raise InputError(f"a {type(subject).__name__} cannot be run: {NEEDS}")
        return check_run(cast("QrelsLike", subject), data, measures, **options)
    settings = EvalSettings(**options)  # type: ignore[arg-type]
    if samples < 1:
        raise InputError(f"samples must be 1 or more, not {samples}")
    parsed = parse_measures(measures)
    dataset, of = _sample(_load(data), samples)
    outputs = _run(subject, dataset, _Way(batch_size, tokenizer, regime, progress))
    judgements = read_qrels(dict(dataset.judgements))
    regimes = {}
    for name, scores in outputs.scores.items():
        run = replace(read_run(_frame(dataset, scores)), complete=True, source=outputs.name)
        sizes = run_sizes(run)
        regimes[name] = CheckedRegime(
            evaluate_run(judgements, run, parsed, settings),
            documents=sizes.facts.documents,
            tied=int(sizes.size[sizes.size > 1].sum()),
            duplicates=_count_duplicates(dataset, scores),
        )
    sampled = of > len(dataset.queries)
    used = f"{len(dataset.queries):,} of {of:,}" if sampled else f"{of:,}"
    return check_regimes(
        outputs.name,
        regimes,
        now=outputs.now,
        model_dtype=outputs.model_dtype,
        how=f"{outputs.how}, {used} queries",
        cost=outputs.cost,
        sampled=sampled,
    )


@dataclass(frozen=True)
class _Way:
    """How a model is run."""

    batch_size: int
    tokenizer: object
    regime: str | None
    progress: Progress | None

    def report(self, what: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(what, done, total)


@dataclass
class _Outputs:
    """The scores of all pairs under every regime."""

    name: str
    model_dtype: str
    scores: dict[str, Scores]
    now: str
    """The regime that the user's code computes."""
    how: str
    """Which code that is, in words."""
    cost: dict[str, float] = field(default_factory=dict)
    """Per regime: time that it adds to the forward pass, as a share of it."""


def _is_model(subject: object) -> bool:
    has_forward = callable(getattr(subject, "forward", None))
    return has_forward or isinstance(subject, Reranker | BiEncoder)


def _load(data: object) -> RetrievalDataset:
    if isinstance(data, RetrievalDataset):
        return data
    if isinstance(data, str | os.PathLike):
        return load_dataset(os.fspath(data))
    raise InputError(
        f"a model is checked on a dataset, not on a {type(data).__name__}: give a folder, a file, "
        "a hub id, or deadheat.lab.datasets.RetrievalDataset(name, queries, corpus, judgements, "
        "candidates)"
    )


def _sample(dataset: RetrievalDataset, samples: int) -> tuple[RetrievalDataset, int]:
    """Return the dataset with evenly spaced queries, and how many there were to choose from."""
    lists = dataset.candidates
    if lists is None:
        raise InputError(
            f"{dataset.name} has no candidate lists, which check scores: load it with "
            "deadheat.lab.datasets.load_dataset(…, candidates='bm25')"
        )
    judged = {
        query: grades
        for query, grades in dataset.judgements.items()
        if any(grade > 0 for grade in grades.values())
    }
    queries = [query for query in dataset.queries if query in judged and lists.get(query)]
    if not queries:
        raise InputError(
            f"{dataset.name} has no query with both candidates and a relevant judgement: check "
            "needs judgements to say how far ties can move a measure"
        )
    places = np.unique(np.linspace(0, len(queries) - 1, min(samples, len(queries))).astype(int))
    chosen = [queries[place] for place in places]
    part = replace(
        dataset,
        queries={query: dataset.queries[query] for query in chosen},
        judgements={query: judged[query] for query in chosen},
        candidates={query: lists[query] for query in chosen},
    )
    return part, len(queries)


def _pairs(dataset: RetrievalDataset) -> list[tuple[str, str]]:
    lists = dataset.candidates or {}
    return [(query, doc) for query, documents in lists.items() for doc in documents]


def _texts(dataset: RetrievalDataset) -> list[tuple[str, str]]:
    return [(dataset.queries[query], dataset.corpus[doc]) for query, doc in _pairs(dataset)]


def _frame(dataset: RetrievalDataset, scores: Scores) -> pl.DataFrame:
    queries, documents = map(list, zip(*_pairs(dataset), strict=True))
    columns = {"query_id": id_column(queries), "doc_id": id_column(documents)}
    return pl.DataFrame({**columns, "score": pl.Series(scores, dtype=pl.Float32)})


def _count_duplicates(dataset: RetrievalDataset, scores: Scores) -> int:
    """Count tied documents that have the text of another document with the same score."""
    texts = [dataset.corpus[doc] for _, doc in _pairs(dataset)]
    frame = _frame(dataset, scores).with_columns(text=pl.Series(texts))
    return int((frame.select(pl.len().over("query_id", "score", "text")).to_series() > 1).sum())


def _run(model: Any, dataset: RetrievalDataset, way: _Way) -> _Outputs:
    """Run a model of any kind, and score its output under every regime."""
    if isinstance(model, Reranker):
        now = way.regime or ("native" if model.provenance.model_dtype == "fp32" else "hps")
        return _run_reranker(model, dataset, way, now, _describe_way(now))
    if isinstance(model, BiEncoder):
        return _run_bi_encoder(model, dataset, way)
    names = {cls.__name__ for cls in type(model).__mro__}
    if "CrossEncoder" in names:
        return _run_cross_encoder(model, dataset, way)
    if "SparseEncoder" not in names and names & {"SentenceTransformer", "MultiVectorEncoder"}:
        return _run_encoder(model, dataset, way)
    if hasattr(model, "config") and type(model).__name__.endswith("ForSequenceClassification"):
        return _run_classifier(model, dataset, way)
    raise InputError(f"a {type(model).__name__} cannot be run: {NEEDS}")


def _describe_way(regime: str) -> str:
    """Say how a model of `deadheat.lab.models` is scored."""
    like = ", as sentence-transformers 6 does" if regime == "hps" else ""
    return f"scored in the regime {regime}{like}"


def _run_reranker(
    model: Reranker, dataset: RetrievalDataset, way: _Way, now: str, how: str
) -> _Outputs:
    """Run a reranker of `deadheat.lab.models`."""
    import torch

    try:
        head = model.head()
    except InputError:  # no plain linear layer gives the logits
        head = None
    batches = model.batches(_texts(dataset), with_hidden=head is not None)
    begun, outputs = time.perf_counter(), []
    for number in range(len(batches)):
        outputs.append(batches.run(number))
        way.report("running the model", number + 1, len(batches))
    seconds = time.perf_counter() - begun
    order = torch.tensor([i for own in batches.plan.batches for i in own]).argsort()
    logits, *hidden = (torch.cat(column)[order] for column in zip(*outputs, strict=True))
    settings = model.provenance
    in_fp32 = None if head is None else (hidden[0], head.weight, head.bias)
    scores, cost = _score_logits(logits, in_fp32, settings.model_dtype, seconds)
    if now not in scores:
        raise InputError(f"this model has no regime {now!r}: choose one of {', '.join(scores)}")
    return _Outputs(settings.model, settings.model_dtype, scores, now, how, cost)


def _score_logits(
    logits: Tensor,
    head: tuple[Tensor, Tensor, Tensor | None] | None,
    model_dtype: str,
    seconds: float,
    activate: Callable[[Tensor, str], Scores] | None = None,
) -> tuple[dict[str, Scores], dict[str, float]]:
    """Return the scores of every regime, and what each adds to a forward pass of some seconds.

    Parameters
    ----------
    logits
        ``[n, 1]``, or ``[n, 2]`` in the order (no, yes), in the model's dtype.
    head
        Input, weight and bias of the linear layer that gave them; None where it is not known.
    activate
        Makes scores of logits in a dtype; a sigmoid or softmax unless given.
    """
    kind: Scoring = "sigmoid" if logits.shape[1] == 1 else "softmax"
    outputs, cost = {"logits": logits}, {}
    if head is not None and model_dtype != "fp32":
        for _ in range(2):  # the first time includes what torch sets up
            begun = time.perf_counter()
            outputs["head_logits"] = torch_functions.head_logits(*head)
            added = (time.perf_counter() - begun) / seconds
        cost = {regime: added for regime in REGIMES if uses_head(regime)}
    scores = {}
    for regime in REGIMES if model_dtype != "fp32" else ("native", "hps-logit"):
        made = outputs.get("head_logits" if uses_head(regime) else "logits")
        if made is None:
            continue
        if activate is None or ranks_by_logit(regime):
            own: dict[str, Any] = {name: each.squeeze(1) for name, each in outputs.items()}
            scores[regime] = score(kind, regime=regime, model_dtype=model_dtype, **own)
        else:
            scores[regime] = activate(made, scoring_format(regime, model_dtype).name)
    return scores, cost


def _run_classifier(model: Any, dataset: RetrievalDataset, way: _Way) -> _Outputs:
    """Run a sequence classifier of transformers."""
    tokenizer: Any = way.tokenizer
    if tokenizer is None:
        auto = require("transformers", "running a reranker").AutoTokenizer
        try:
            tokenizer = auto.from_pretrained(model.name_or_path)
        except Exception as error:  # transformers has many kinds of errors for this
            raise InputError(
                f"the tokenizer of this {type(model).__name__} was not found: pass tokenizer="
            ) from error
    longest = getattr(model.config, "max_position_embeddings", None) or 512
    settings = ModelProvenance(
        model=model.name_or_path or type(model).__name__,
        revision="",
        kind="cross-encoder",
        model_dtype=_dtype_of(model),
        device=str(model.device),
        batch_size=way.batch_size,
        max_length=min(tokenizer.model_max_length, longest, 8192),
        attn_implementation="",
        trust_remote_code=False,
    )
    model.eval()
    reranker = ClassifierReranker(model, copy.deepcopy(tokenizer), settings)
    if len(reranker.provenance.outputs) == 1:
        return _run_reranker(reranker, dataset, way, "hps-logit", "by the logits as they are")
    return _run_reranker(reranker, dataset, way, "native", "softmax in the model's dtype (native)")


def _run_cross_encoder(model: Any, dataset: RetrievalDataset, way: _Way) -> _Outputs:
    """Run a CrossEncoder through its own `predict`, and keep what entered its last layer."""
    import torch

    if model.num_labels > 2:
        raise InputError(f"a reranker has one logit or two, not {model.num_labels}")
    judge = next((m for m in model.children() if type(m).__name__ == "LogitScore"), None)
    rows = list(range(model.num_labels))
    if judge is not None:
        rows = [i for i in (judge.false_token_id, judge.true_token_id) if i is not None]
    subtracts = judge is not None and len(rows) == 2
    own, name = model.activation_fn, f"this {type(model).__name__}"

    def predict(texts: Sequence[tuple[str, str]], size: int, step: Callable[..., Tensor]) -> Tensor:
        module = torch.nn.Identity()  # before version 5.4 it must be a module
        vars(module)["forward"] = step
        options = {"convert_to_tensor": True, "show_progress_bar": False}
        try:
            predicted: Tensor = model.predict(
                list(texts), batch_size=size, activation_fn=module, **options
            )
            return predicted
        finally:
            model.activation_fn = own  # before version 5.4 the argument would stay

    def difference(logits: Tensor) -> Tensor:
        return logits[:, 1:] - logits[:, :1]

    try:
        layer = find_head(
            model,
            lambda: predict(PROBE, 1, lambda scores: scores).reshape(len(PROBE), -1),
            rows,
            name,
            difference if subtracts else None,
        ).layer
    except InputError:
        layer = None
    texts = _texts(dataset)
    given: list[Tensor] = []
    logits: list[Tensor] = []
    hidden: list[Tensor] = []
    done = 0
    with watch([] if layer is None else [layer]) as activations:

        def collect(scores: Tensor) -> Tensor:
            """Keep a batch; return the number of each row instead of its score."""
            nonlocal done
            given.append(own(scores).cpu())
            if layer is None:
                logits.append(scores.cpu())
            else:
                made = torch.cat([last_position(each.output) for each in activations])[:, rows]
                logits.append(made.cpu())
                hidden.append(head_input(activations, rows, made, name).cpu())
                activations.clear()
            place = torch.arange(done, done + len(scores), dtype=torch.float64)
            done += len(scores)
            way.report("running the model", done, len(texts))
            return place.reshape(-1, 1).to(scores.device)

        begun = time.perf_counter()
        place = predict(texts, way.batch_size, collect).cpu().long().reshape(-1)
        seconds = time.perf_counter() - begun
    model_dtype = _dtype_of(model)

    def activate(logits: Tensor, dtype: str) -> Scores:
        wanted = logits.to(parse_format(dtype).torch)
        if subtracts and wanted.shape[1] == 2:
            wanted = difference(wanted)
        if wanted.shape[1] == 2:
            return cast("Scores", torch_functions.softmax(wanted, dtype).float().numpy())
        with torch.inference_mode():
            return cast("Scores", own(wanted).float().reshape(-1).numpy())

    head = None
    if layer is not None:
        weight = layer.weight.detach()[rows].cpu()
        bias = None if layer.bias is None else layer.bias.detach()[rows].cpu()
        head = (torch.cat(hidden)[place], weight, bias)
    made = torch.cat(logits)[place]
    scores, cost = _score_logits(made, head, model_dtype, seconds, activate)
    if isinstance(own, torch.nn.Identity) and made.shape[1] == 1:  # scores are logits already
        scores = {name: own for name, own in scores.items() if not name.endswith("-logit")}
    return _name_now(model, scores, torch.cat(given)[place], cost)


def _name_now(
    model: Any, scores: dict[str, Scores], given: Tensor, cost: dict[str, float]
) -> _Outputs:
    """Find the regime of the scores that a library gave, or name them by the library."""
    library = "sentence-transformers"
    how = f"as {library} {version(library)} scores"
    if given.ndim == 1 or given.shape[-1] == 1:
        now = given.float().reshape(-1).numpy()
        # FP32 functions may differ in their last bit with the size of a batch.
        near = (
            n for n in ("hps", "native") if n in scores and np.allclose(scores[n], now, 3e-7, 0)
        )
        name = next(near, "as given")
        scores = {**({} if name in scores else {name: now}), **scores, name: now}
    else:  # two columns: ranked by the probability of the second
        name = "hps" if "hps" in scores else "native"
    label = getattr(model, "model_card_data", None)
    title = getattr(label, "base_model", None) or type(model).__name__
    return _Outputs(str(title), _dtype_of(model), scores, name, f"{how} ({name})", cost)


def _run_encoder(model: Any, dataset: RetrievalDataset, way: _Way) -> _Outputs:
    """Run a SentenceTransformer, MultiVectorEncoder or ColBERT through its own methods."""
    queries = _encode(model, list(dataset.queries.values()), "query", way)
    texts = list(dict.fromkeys(text for _, text in _texts(dataset)))
    documents = _encode(model, texts, "document", way)
    model_dtype = _dtype_of(model)
    kind = str(getattr(model, "similarity_fn_name", ""))

    def similar(query: Any, own: list[Any]) -> Scores:
        return cast("Scores", model.similarity([query], own).float().cpu().reshape(-1).numpy())

    def widened(query: Any, own: list[Any]) -> Scores:
        return similar(query.float(), [each.float() for each in own])

    ways: dict[str, Callable[[Any, list[Any]], Scores]] = {"given": similar}
    if model_dtype != "fp32":
        ways["hps"] = widened
        if kind in ("dot", "cosine"):
            ways["native"] = _product(kind, model_dtype)
    scores = _score_embeddings(dataset, queries, dict(zip(texts, documents, strict=True)), ways)
    import torch

    given = torch.from_numpy(scores.pop("given"))
    if model_dtype == "fp32":
        scores = {"native": given.numpy()}
    return _name_now(model, scores, given, {})


def _run_bi_encoder(model: BiEncoder, dataset: RetrievalDataset, way: _Way) -> _Outputs:
    """Run a bi-encoder of `deadheat.lab.models`."""
    texts = list(dict.fromkeys(text for _, text in _texts(dataset)))
    queries = model.embed_queries(list(dataset.queries.values())).vectors
    way.report("running the model", len(queries), len(queries) + len(texts))
    vectors = model.embed_documents(texts).vectors
    settings = model.provenance
    kind = "dot" if settings.normalised else "cosine"
    ways = {"native": _product(kind, settings.model_dtype)}
    if settings.model_dtype != "fp32":
        ways["hps"] = _product(kind, settings.model_dtype, "hps")
    by_text = dict(zip(texts, vectors, strict=True))
    scores = _score_embeddings(dataset, list(queries), by_text, ways)
    now = way.regime or ("hps" if "hps" in scores else "native")
    if now not in scores:
        raise InputError(f"this model has no regime {now!r}: choose one of {', '.join(scores)}")
    return _Outputs(settings.model, settings.model_dtype, scores, now, _describe_way(now))


def _product(
    kind: str, model_dtype: str, regime: str = "native"
) -> Callable[[Any, list[Any]], Scores]:
    import torch

    def multiply(query: Any, own: list[Any]) -> Scores:
        embedded = {"queries": query.reshape(1, -1).cpu(), "documents": torch.stack(own).cpu()}
        function = cast("Scoring", kind)
        return cast(
            "Scores", score(function, regime=regime, model_dtype=model_dtype, **embedded)[0]
        )

    return multiply


def _score_embeddings(
    dataset: RetrievalDataset,
    queries: Sequence[Any],
    documents: dict[str, Any],
    ways: dict[str, Callable[[Any, list[Any]], Scores]],
) -> dict[str, Scores]:
    """Score each query with its candidates; a text that a list repeats is scored once."""
    parts: dict[str, list[Scores]] = {name: [] for name in ways}
    lists = (dataset.candidates or {}).values()
    for query, listed in zip(queries, lists, strict=True):
        texts = [dataset.corpus[doc] for doc in listed]
        distinct = list(dict.fromkeys(texts))
        column = [distinct.index(text) for text in texts]
        for name, way in ways.items():
            parts[name].append(way(query, [documents[text] for text in distinct])[column])
    return {name: cast("Scores", np.concatenate(own)) for name, own in parts.items()}


def _encode(model: Any, texts: list[str], role: str, way: _Way) -> list[Any]:
    """Embed texts as the model's library does, in the model's dtype."""
    encode: Callable[..., Any] = getattr(model, f"encode_{role}", model.encode)
    options: dict[str, object] = {"batch_size": way.batch_size, "show_progress_bar": False}
    if "ColBERT" in {cls.__name__ for cls in type(model).__mro__}:
        encode, options["is_query"] = model.encode, role == "query"
    embedded: list[Any] = []
    for part in _parts(texts):
        embedded += list(encode(part, convert_to_tensor=True, **options))
        way.report(f"embedding {role} texts", len(embedded), len(texts))
    return embedded


def _parts(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), _CHUNK):
        yield texts[start : start + _CHUNK]


def _dtype_of(model: Any) -> str:
    """Return the format of a model's weights."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), "fp32")
    return parse_format(dtype).name
