"""``check``: effect, cause and remedy of ties in a run or a model.

A model is run once. The scores of every regime are computed from its logits or embeddings and from
the input of its last linear layer, so the effect of a remedy is measured.
"""

from __future__ import annotations

import copy
import os
import time
import timeit
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from deadheat._internal.dtypes import parse_format
from deadheat._internal.lazy import pl
from deadheat._internal.packages import require
from deadheat._internal.remarks import emits_warnings
from deadheat.diagnosis import Check, CheckedRegime, check_regimes, check_run
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation import evaluate_run
from deadheat.formats import QrelsLike, RunLike, read_qrels, read_run
from deadheat.lab.datasets import RetrievalDataset, load_dataset
from deadheat.lab.experiment import (
    group_texts,
    join_parts,
    list_pairs,
    list_regimes,
    plan_streams,
    run_batches,
    score_lists,
    scoring_function,
)
from deadheat.lab.models import BiEncoder, ClassifierReranker, Reranker
from deadheat.lab.models.rerankers import Head
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
    logit_rows,
    ranks_by_logit,
    score,
    torch_functions,
    uses_head,
    watch,
)
from deadheat.settings import EvalOptions, EvalSettings

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Unpack

SAMPLES = 100
"""Default number of queries for a model. The mean of values between 0 and 1 over 100 queries has
a standard error of at most 0.05."""
BATCH_SIZE = 16
GIVEN = "as given"
"""Name for the scores of a library that are those of no regime."""
NEEDS = (
    "give a sentence-transformers CrossEncoder, SentenceTransformer or MultiVectorEncoder, a "
    "PyLate ColBERT, a transformers sequence classifier with its tokenizer, or a model from "
    "deadheat.lab.models.load_model"
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
    """Check whether ties affect the numbers of a run or a model, why, and what to change.

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
        Number of queries to run a model on, evenly spaced in the dataset.
    batch_size
        Inputs per forward pass of a model.
    tokenizer
        The tokenizer of a transformers model. Default: that of its checkpoint.
    regime
        The regime of your own code, for a model of `deadheat.lab.models`, which does not define
        it. Default: ``"hps"``.
    progress
        Callback with a description, the amount of work done, and the total amount.
    **options
        Fields of `deadheat.EvalSettings`, as for `deadheat.diagnose`.

    Returns
    -------
    Check
        `effect`, `cause` and `remedy` as text; `print` shows the three lines. Use
        ``ok(max_range)`` in tests.

    Examples
    --------
    >>> import deadheat as dh
    >>> run = {"q1": {"d1": 0.75, "d2": 0.5, "d3": 0.5}}
    >>> found = dh.check({"q1": {"d3": 1}}, run, "MRR")
    >>> found.range, found.ok(max_range=0.01)
    (0.16666666666666669, False)
    """
    if not (isinstance(subject, Reranker | BiEncoder) or hasattr(subject, "forward")):
        if isinstance(data, RetrievalDataset):
            raise InputError(f"a {type(subject).__name__} cannot be run: {NEEDS}")
        return check_run(cast("QrelsLike", subject), data, measures, **options)
    settings, parsed = EvalSettings.from_options(options), parse_measures(measures)
    if samples < 1:
        raise InputError(f"samples must be 1 or more, not {samples}")
    dataset, of = _sample(_load(data), samples)
    report = progress or (lambda what, done, total: None)
    ran = _run(subject, dataset, batch_size, tokenizer, regime, report)
    frames = {
        name: score_lists(ran.outputs, function, dataset) for name, function in ran.scoring.items()
    }
    now = ran.now
    if now == GIVEN:
        now = _name_given(frames, ran.model_dtype)
        frames[now] = frames.pop(GIVEN)
    if now not in frames:
        raise InputError(f"this model has no regime {now!r}; choose one of {', '.join(frames)}")
    judgements = read_qrels(dict(dataset.judgements))
    regimes = {}
    for name, frame in frames.items():
        run = replace(read_run(frame), complete=True, source=ran.name)
        texts = pl.Series([dataset.corpus[doc] for doc in frame["doc_id"]])
        tied = frame.select(pl.len().over("query_id", "score") > 1).to_series()
        duplicates = frame.select(pl.len().over("query_id", "score", texts) > 1).to_series()
        regimes[name] = CheckedRegime(
            evaluate_run(judgements, run, parsed, settings),
            documents=len(frame),
            tied=int(tied.sum()),
            duplicates=int(duplicates.sum()),
        )
    sampled = of > len(dataset.queries)
    used = f"{len(dataset.queries):,} of {of:,}" if sampled else f"{of:,}"
    return check_regimes(
        ran.name,
        regimes,
        now=now,
        model_dtype=ran.model_dtype,
        how=f"{ran.how} ({now}), {used} queries",
        cost=ran.cost,
        sampled=sampled,
    )


_Output = tuple[dict[str, Any], dict[str, Callable[..., Scores]], Mapping[str, float]]
"""The last three fields of a `_Run`."""


class _Run(NamedTuple):
    """The outputs of a model for all pairs, and the scoring function of each regime."""

    name: str
    model_dtype: str
    now: str
    """The regime that the user's code computes, or `GIVEN`."""
    how: str
    """Description of the code that scores in `now`."""
    outputs: dict[str, Any]
    """The outputs, in the form that `deadheat.lab.experiment.score_lists` accepts."""
    scoring: dict[str, Callable[..., Scores]]
    """Per regime: the function that computes scores from the outputs."""
    cost: Mapping[str, float]
    """Per regime: the time that it adds, as a share of the forward pass."""


def _load(data: object) -> RetrievalDataset:
    if isinstance(data, RetrievalDataset):
        return data
    if isinstance(data, str | os.PathLike):
        return load_dataset(os.fspath(data))
    raise InputError(
        f"a model needs a dataset, not a {type(data).__name__}; give a folder, a file, a hub id, "
        "or a deadheat.lab.datasets.RetrievalDataset"
    )


def _sample(dataset: RetrievalDataset, samples: int) -> tuple[RetrievalDataset, int]:
    """Return the dataset with evenly spaced queries, and the number of all usable queries."""
    lists, judged = dataset.candidates or {}, dataset.judgements
    relevant = {query for query, own in judged.items() if any(grade > 0 for grade in own.values())}
    queries = [query for query in dataset.queries if query in relevant and lists.get(query)]
    if not queries:
        raise InputError(
            f"{dataset.name} has no query with both candidates and a relevant judgement; if it has "
            "no candidate lists, load it with load_dataset(…, candidates='bm25')"
        )
    places = np.linspace(0, len(queries) - 1, min(samples, len(queries))).astype(int)
    chosen = [queries[place] for place in places]
    part = replace(
        dataset,
        queries={query: dataset.queries[query] for query in chosen},
        judgements={query: judged[query] for query in chosen},
        candidates={query: lists[query] for query in chosen},
    )
    return part, len(queries)


def _name_given(frames: Mapping[str, pl.DataFrame], model_dtype: str) -> str:
    """Return the regime whose scores equal those of a library, else `GIVEN`."""
    if model_dtype == "fp32":
        return "native"
    for regime in ("hps", "native"):
        # The last bit of an FP32 function may depend on the batch size.
        if regime in frames and np.allclose(
            frames[regime]["score"], frames[GIVEN]["score"], rtol=3e-7, atol=0
        ):
            return regime
    return GIVEN


def _run(
    model: object,
    dataset: RetrievalDataset,
    batch_size: int,
    tokenizer: object,
    regime: str | None,
    progress: Progress,
) -> _Run:
    """Run a model of any kind."""
    names = {cls.__name__ for cls in type(model).__mro__}
    if isinstance(model, Reranker | BiEncoder):
        own = "native" if model.provenance.model_dtype == "fp32" else "hps"
        how = "scored as you named" if regime else "scored as most libraries do"
        return _run_loaded(model, dataset, progress, regime or own, how)
    if hasattr(model, "config") and type(model).__name__.endswith("ForSequenceClassification"):
        reranker = _wrap_classifier(model, tokenizer, batch_size)
        if len(reranker.provenance.outputs) == 1:
            return _run_loaded(reranker, dataset, progress, "hps-logit", "ranked by the logits")
        return _run_loaded(reranker, dataset, progress, "native", "softmax in the model's dtype")
    if "CrossEncoder" in names:
        ran = _run_cross_encoder(model, dataset, batch_size, progress)
    elif "SparseEncoder" not in names and names & {"SentenceTransformer", "MultiVectorEncoder"}:
        ran = _run_encoder(model, dataset, batch_size, progress)
    else:
        raise InputError(f"a {type(model).__name__} cannot be run: {NEEDS}")
    title = getattr(getattr(model, "model_card_data", None), "base_model", None)
    packages = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    library = "pylate" if "pylate" in packages else "sentence-transformers"
    how = f"as {library} {version(library)} scores"
    return _Run(str(title or type(model).__name__), _dtype_of(model), GIVEN, how, *ran)


def _run_loaded(
    model: Reranker | BiEncoder, dataset: RetrievalDataset, progress: Progress, now: str, how: str
) -> _Run:
    """Run a model of `deadheat.lab.models`."""
    streams, head = plan_streams(model, dataset)
    outputs: dict[str, Tensor] = {}
    begun = time.perf_counter()
    for stream, batches in streams.items():
        parts = []
        for number in range(len(batches)):
            parts.append(run_batches(batches, [number], stream, head))
            progress("running the model", number + 1, len(batches))
        outputs |= join_parts(parts)
    cost = _measure_cost(head, outputs, time.perf_counter() - begun)
    facts = model.provenance
    scoring = _scoring(scoring_function(facts), facts.model_dtype, outputs)
    return _Run(facts.model, facts.model_dtype, now, how, outputs, scoring, cost)


def _measure_cost(
    head: Head | None, outputs: Mapping[str, Tensor], seconds: float
) -> dict[str, float]:
    """Return the cost of the regimes with an FP32 head; `seconds` is that of the forward pass."""
    if head is None:
        return {}
    hidden = head.weight.new_zeros(len(outputs["logits"]), head.weight.shape[1])
    compute = partial(torch_functions.head_logits, hidden, head.weight, head.bias)
    added = min(timeit.repeat(compute, number=1, repeat=2))  # the first includes torch's setup
    return {regime: added / seconds for regime in REGIMES if uses_head(regime)}


def _scoring(
    kind: Scoring, model_dtype: str, outputs: Mapping[str, Tensor]
) -> dict[str, Callable[..., Scores]]:
    """Return the scoring function of each regime that is possible with these outputs."""
    return {
        regime: partial(score, kind, regime=regime, model_dtype=model_dtype)
        for regime in list_regimes(list(REGIMES), kind, model_dtype)
        if "head_logits" in outputs or not uses_head(regime)
    }


def _wrap_classifier(model: Any, tokenizer: Any, batch_size: int) -> ClassifierReranker:
    """Make a reranker from a sequence classifier of transformers."""
    if tokenizer is None:
        auto = require("transformers", "running a reranker").AutoTokenizer
        try:
            tokenizer = auto.from_pretrained(model.name_or_path)
        except Exception as error:  # transformers has many kinds of errors for this
            raise InputError(
                f"the tokenizer of this {type(model).__name__} was not found; pass tokenizer="
            ) from error
    longest = getattr(model.config, "max_position_embeddings", None) or 512
    settings = ModelProvenance(
        model=model.name_or_path or type(model).__name__,
        revision="",
        kind="cross-encoder",
        model_dtype=_dtype_of(model),
        device=str(model.device),
        batch_size=batch_size,
        max_length=min(tokenizer.model_max_length, longest, 8192),
        attn_implementation="",
        trust_remote_code=False,
    )
    return ClassifierReranker(model.eval(), copy.deepcopy(tokenizer), settings)


def _run_cross_encoder(
    model: Any, dataset: RetrievalDataset, batch_size: int, progress: Progress
) -> _Output:
    """Run a CrossEncoder through its own `predict`, and keep the input of its last layer."""
    import torch

    if model.num_labels > 2:
        raise InputError(f"a reranker must have one logit or two, not {model.num_labels}")
    rows, subtracts = logit_rows(model)
    own, texts = model.activation_fn, list_pairs(dataset)

    def predict(pairs: Iterable[tuple[str, str]], size: int, step: Callable[..., Any]) -> Tensor:
        module = torch.nn.Identity()  # before version 5.4 it must be a module
        vars(module)["forward"] = step
        options = {"convert_to_tensor": True, "show_progress_bar": False}
        try:
            scores = model.predict(list(pairs), batch_size=size, activation_fn=module, **options)
        finally:
            model.activation_fn = own  # before version 5.4 the argument would stay
        return cast("Tensor", scores.cpu())

    def probe() -> Tensor:
        return predict(PROBE, 1, lambda scores: scores).reshape(len(PROBE), -1)

    layer = head = None
    with suppress(InputError):  # no plain linear layer gives the logits
        layer = find_head(model, probe, rows, subtracts=subtracts).layer
        bias = None if layer.bias is None else layer.bias.detach()[rows].cpu()
        head = Head(layer.weight.detach()[rows].cpu(), bias)
    kept: list[dict[str, Tensor]] = []
    with watch([] if layer is None else [layer]) as activations:

        def collect(scores: Tensor) -> Tensor:
            """Keep a batch; return the number of each row instead of its score."""
            given = own(scores)
            if given.shape[-1] == 2:  # as with apply_softmax
                given = given.softmax(dim=-1)[:, 1:]
            batch = {"given": given.cpu(), "logits": scores.cpu()}
            if head is not None:
                logits = torch.cat([last_position(each.output) for each in activations])[:, rows]
                hidden = head_input(activations, rows, logits).cpu()
                activations.clear()
                in_fp32 = torch_functions.head_logits(hidden, head.weight, head.bias)
                batch |= {"logits": logits.cpu(), "head_logits": in_fp32}
            done = sum(len(each["given"]) for each in kept)
            kept.append(batch)
            progress("running the model", done + len(scores), len(texts))
            return torch.arange(done, done + len(scores), dtype=torch.float64).reshape(-1, 1)

        begun = time.perf_counter()
        place = predict(texts, batch_size, collect).long().reshape(-1)
        seconds = time.perf_counter() - begun
    outputs = {key: torch.cat([batch[key] for batch in kept])[place] for key in kept[0]}
    given, logits = partial(_to_array, outputs.pop("given")), outputs["logits"]
    kind: Scoring = "softmax" if logits.shape[1] == 2 else "sigmoid"
    scoring = _scoring(kind, _format_of(logits, model), outputs)
    activation = torch.nn.Identity if model.num_labels == 2 else torch.nn.Sigmoid
    if not isinstance(own, activation):
        scoring = {name: compute for name, compute in scoring.items() if ranks_by_logit(name)}
    if isinstance(own, torch.nn.Identity) and model.num_labels == 1:  # scores are logits
        by_logit = {name.removesuffix("-logit"): compute for name, compute in scoring.items()}
        scoring = {"native": given, **by_logit}
    cost = _measure_cost(head, outputs, seconds)
    return outputs, {GIVEN: given, **scoring}, cost


def _to_array(scores: Tensor, **_: object) -> Scores:
    return cast("Scores", scores.float().cpu().reshape(-1).numpy())


def _run_encoder(
    model: Any, dataset: RetrievalDataset, batch_size: int, progress: Progress
) -> _Output:
    """Run a SentenceTransformer, MultiVectorEncoder or ColBERT through its own methods."""
    import torch

    names = {cls.__name__ for cls in type(model).__mro__}
    texts = {"query": list(dataset.queries.values()), "document": list(group_texts(dataset))}
    embedded: list[Any] = []
    for role, own in texts.items():
        options = {} if "MultiVectorEncoder" in names else {"convert_to_tensor": True}
        if "ColBERT" in names:
            encode, options["is_query"] = model.encode, role == "query"
        else:
            encode = getattr(model, f"encode_{role}")
        found = encode(own, batch_size=batch_size, show_progress_bar=False, **options)
        if not isinstance(found, torch.Tensor):  # a matrix per text
            found = np.fromiter(found, object, len(found))
        embedded.append(found)
        progress(f"embedding {role} texts", len(embedded), len(texts))
    outputs = dict(zip(("queries", "documents"), embedded, strict=True))

    def compare(queries: Any, documents: Any, wide: bool = False) -> Scores:
        """Call the library's own similarity."""
        each = [(queries, documents)]
        if not isinstance(documents, torch.Tensor):  # one by one: numbers of tokens differ
            each = [(queries[0][None], document[None]) for document in documents]
        if wide:
            each = [(query.float(), own.float()) for query, own in each]
        found = [model.similarity(query, own) for query, own in each]
        return _to_array(torch.cat([scores.reshape(-1) for scores in found]))

    kind = str(getattr(model, "similarity_fn_name", ""))
    scoring: dict[str, Callable[..., Scores]] = {GIVEN: compare}
    if _dtype_of(model) != "fp32":
        scoring["hps"] = partial(compare, wide=True)
    if kind in ("dot", "cosine"):
        dtype = _format_of(outputs["documents"], model)
        scoring |= _scoring(cast("Scoring", kind), dtype, outputs)
    return outputs, scoring, {}


def _dtype_of(model: Any) -> str:
    """Return the format of a model's weights."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), "fp32")
    return parse_format(dtype).name


def _format_of(values: Tensor, model: Any) -> str:
    """Return the format of a model's output: that of its weights, or FP32 if it is finer."""
    own = parse_format(_dtype_of(model))
    return own.name if bool((values.to(own.torch) == values).all()) else "fp32"
