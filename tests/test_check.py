"""`dh.check`: effect, cause and remedy, of runs with known causes and of models that are run."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from model_outputs import outputs_of

import deadheat as dh
from deadheat.cli import main
from deadheat.demo import recordings
from deadheat.diagnosis import choose_regime
from deadheat.lab.datasets import RetrievalDataset
from deadheat.scoring import FORMATS, score

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
QRELS = {f"q{q}": {"d0": 1, "d3": 1} for q in range(20)}


def run_of(scores: np.ndarray) -> dict[str, dict[str, float]]:
    return {
        f"q{q}": {f"d{d}": float(value) for d, value in enumerate(own)}
        for q, own in enumerate(scores)
    }


def random_scores(size: int = 40) -> np.ndarray:
    return np.random.default_rng(0).random((20, size))


CAUSES = {
    "grid": (FORMATS["bf16"].round(random_scores()), "BF16", "if a BF16 model"),
    "decimals": (np.round(random_scores(400) * 50, 1), "1 decimal", "write all digits"),
    "few values": (np.floor(random_scores() * 5), "5 values", "finer scores"),
    "logits": (
        score(
            "sigmoid",
            regime="hps",
            model_dtype="bf16",
            backend="numpy",
            logits=FORMATS["bf16"].round(8 * random_scores() - 4),
        ),
        "logits are already tied",
        "high_precision(model)",
    ),
    "equal scores": (
        np.repeat(random_scores(20), 2, axis=1),
        "no sign of coarser rounding",
        "duplicates",
    ),
}


@pytest.mark.parametrize("kind", CAUSES)
def test_a_known_cause_is_found_and_its_remedy_named(kind):
    scores, cause, remedy = CAUSES[kind]
    found = dh.check(QRELS, run_of(scores), "MAP")
    assert (found.cause_kind, found.range > 0) == (kind, True)
    assert cause in found.cause and remedy in found.remedy
    assert found.range == dh.evaluate(QRELS, run_of(scores), ["MAP"])["MAP"].range
    assert not found.ok(0) and found.ok(1)


def test_a_run_without_ties_needs_nothing():
    found = dh.check(QRELS, run_of(random_scores()), ["nDCG@10", "MAP"])
    assert (found.cause_kind, found.remedy_kind, found.range) == ("none", "none", 0)
    assert found.ok(0) and "cannot move your numbers" in found.effect
    assert found.remedy == "nothing to do"


def test_ties_that_change_nothing_are_told_apart_from_none():
    run = {"q": {"a": 0.9, "b": 0.5, "c": 0.5}}
    found = dh.check({"q": {"a": 1}}, run)
    assert found.remedy_kind == "none" and found.cause.startswith("2 of 3 documents are tied")


def test_values_that_float32_ties_are_named():
    run = {"q": {"a": 1.00000000001, "b": 1.0, "c": 0.5}}
    found = dh.check({"q": {"b": 1}}, run, "MRR")
    assert (found.range, found.cause_kind, found.remedy_kind) == (0, "float32", "float64")
    assert "50.0 points" in found.effect


def test_lists_that_may_have_been_cut_are_named():
    run = {"q": {"a": 0.9, "b": 0.5, "c": 0.5}}
    found = dh.check({"q": {"a": 1, "gone": 1}}, run, "nDCG@10")
    assert (found.cause_kind, found.remedy_kind) == ("cut lists", "more documents")
    assert "if the lists were cut" in found.remedy


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=4))
def test_any_run_gets_three_lines_of_80_columns(lists):
    run = {f"q{q}": {f"d{d}": s / 4 for d, s in enumerate(own)} for q, own in enumerate(lists)}
    found = dh.check({q: {"d0": 1} for q in run}, run)
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [
        "Effect",
        "Cause",
        "Remedy",
    ]
    assert max(map(len, lines)) <= 80
    assert (found.remedy_kind == "none") <= (found.range == 0)
    assert json.loads(found.to_json())["range"] == found.range
    assert "Remedy" in found._repr_html_() and "nDCG@10" in found.table()


def test_recorded_models_get_the_remedy_that_their_regimes_need():
    kinds = {
        (recording.scoring, regime): dh.check(recording.qrels, run).cause_kind
        for recording in recordings().values()
        for regime, run in recording.runs.items()
    }
    assert {kinds[name] for name in kinds if name[1] == "fp32"} == {"none"}
    assert {kind for name, kind in kinds.items() if name[1] == "native"} == {"grid"}


def test_the_cheapest_regime_that_works_is_chosen():
    ranges = {"native": 0.27, "hps": 0.0045, "head": 0.0015, "hps-logit": 0.004, "head-logit": 0.0}
    assert choose_regime(ranges, "hps") == "head-logit"
    assert choose_regime({**ranges, "head": 0.00005}, "hps") == "head"
    assert choose_regime({"native": 0.1, "hps": 0.0}, "native") == "hps"
    assert choose_regime({"native": 0.0, "hps-logit": 0.0}, "native") == "native"


# Models


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    models = pytest.importorskip("tiny_models")
    return models, models.bert(tmp_path_factory.mktemp("bert"), labels=1)


@pytest.fixture(scope="module")
def dataset(tiny):
    models, _ = tiny
    texts = [*models.DOCUMENTS, *(f"{text} {text}" for text in models.DOCUMENTS)]
    corpus = {f"d{i}": text for i, text in enumerate(texts)} | {"copy": texts[0]}
    queries = {f"q{i}": text for i, text in enumerate(models.QUERIES)}
    judged = {query: {"d0": 1, "d4": 1} for query in queries}
    return RetrievalDataset("tiny", queries, corpus, judged, {q: list(corpus) for q in queries})


def cross_encoder(folder, dtype: str):
    library = pytest.importorskip("sentence_transformers")
    return library.CrossEncoder(str(folder), model_kwargs={"dtype": dtype})


def test_a_cross_encoder_is_measured_as_its_library_scores(tiny, dataset):
    model = cross_encoder(tiny[1], "bfloat16")
    own = model.activation_fn
    found = dh.check(model, dataset, batch_size=4)
    assert model.activation_fn is own
    texts = [
        (dataset.queries[q], dataset.corpus[d]) for q in dataset.queries for d in dataset.corpus
    ]
    frame = pl.DataFrame(
        {
            "query_id": [q for q in dataset.queries for _ in dataset.corpus],
            "doc_id": [d for _ in dataset.queries for d in dataset.corpus],
            "score": model.predict(texts, batch_size=4),
        }
    )
    expected = dh.evaluate(dict(dataset.judgements), frame, ["nDCG@10"])["nDCG@10"]
    assert found.result["nDCG@10"] == expected
    assert set(found.regimes) >= {"native", "hps", "head", "hps-logit", "head-logit"}
    assert found.regimes["head"].tied <= found.regimes["hps"].tied
    assert "sentence-transformers" in found.effect and "4 queries" in found.effect
    # A text and its copy, in four lists; they tie where they shared a batch.
    assert found.regimes["head"].duplicates in (2, 4, 6, 8)
    assert "(now)" in found.table()


def test_the_head_of_a_check_is_that_of_high_precision(tiny, dataset):
    model = cross_encoder(tiny[1], "bfloat16")
    found = dh.check(model, dataset, batch_size=4)
    pairs = [
        (dataset.queries[q], dataset.corpus[d]) for q in dataset.queries for d in dataset.corpus
    ]
    scores = dh.high_precision(model, regime="head").predict(pairs, batch_size=4)
    run = {
        q: dict(zip(dataset.corpus, own.tolist(), strict=True))
        for q, own in zip(dataset.queries, scores.reshape(len(dataset.queries), -1), strict=True)
    }
    expected = dh.evaluate(dict(dataset.judgements), run, ["nDCG@10"])["nDCG@10"]
    assert found.regimes["head"].result["nDCG@10"].expected == pytest.approx(expected.expected)


def test_a_model_in_fp32_is_said_to_be(tiny, dataset):
    found = dh.check(cross_encoder(tiny[1], "float32"), dataset)
    assert set(found.regimes) == {"native", "hps-logit"}
    assert found.remedy_kind in ("none", "deduplicate")


def test_plain_transformers_and_loaded_models(tiny, dataset):
    transformers = pytest.importorskip("transformers")
    auto = transformers.AutoModelForSequenceClassification
    model = auto.from_pretrained(tiny[1], dtype="bfloat16")
    found = dh.check(model, dataset, samples=2)
    assert found.now == "hps-logit" and "2 of 4 queries" in found.effect
    from deadheat.lab.models import load_model

    loaded = load_model(tiny[1], model_dtype="bf16")
    assert dh.check(loaded, dataset, regime="native").now == "native"
    with pytest.raises(dh.InputError, match="no regime 'nope'"):
        dh.check(loaded, dataset, regime="nope")


def test_an_encoder_is_measured_as_its_library_scores(tiny, dataset):
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(tiny[1]), model_kwargs={"dtype": "bfloat16"})
    found = dh.check(model, dataset)
    assert {"native", "hps"} <= set(found.regimes)
    assert found.regimes["native"].tied >= found.regimes["hps"].tied


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    """Yes/no rerankers of sentence-transformers: by one logit of a causal model, or by two."""
    library = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.cross_encoder.modules")
    transformer = pytest.importorskip("sentence_transformers.base.modules").Transformer
    models = pytest.importorskip("tiny_models")
    tokenizer = models.qwen_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    folder = models.qwen(tmp_path_factory.mktemp("causal"), tokenizer)
    body = transformer(str(folder), transformer_task="text-generation")
    yes, no = body.tokenizer.convert_tokens_to_ids(["yes", "no"])

    def build(*, pair: bool):
        score = modules.LogitScore(true_token_id=yes, false_token_id=no if pair else None)
        return library.CrossEncoder(modules=[body, score], device="cpu").bfloat16().eval()

    return build


def pairs_of(dataset) -> list[tuple[str, str]]:
    lists = dataset.candidates
    return [(dataset.queries[q], dataset.corpus[d]) for q in lists for d in lists[q]]


def evaluate_scores(dataset, scores):
    """Evaluate the scores of all pairs, in the order of `pairs_of`."""
    columns = zip(*((q, d) for q, own in dataset.candidates.items() for d in own), strict=True)
    frame = pl.DataFrame(dict(zip(("query_id", "doc_id"), map(list, columns), strict=True)))
    frame = frame.with_columns(score=pl.Series(np.asarray(scores, np.float32)))
    return dh.evaluate(dict(dataset.judgements), frame, ["nDCG@10"])["nDCG@10"]


@pytest.mark.parametrize("pair", [True, False])
def test_a_causal_reranker_is_measured_as_its_library_and_high_precision_score(
    causal, dataset, pair
):
    model = causal(pair=pair)
    found = dh.check(model, dataset, batch_size=4)
    assert set(found.regimes) >= {"native", "hps", "head", "hps-logit", "head-logit"}
    pairs = pairs_of(dataset)
    assert found.result["nDCG@10"] == evaluate_scores(dataset, model.predict(pairs, batch_size=4))
    for regime, options in {
        "hps": {"regime": "hps"},
        "head": {"regime": "head"},
        "head-logit": {"regime": "head", "scores": "logit"},
    }.items():
        scores = dh.high_precision(model, **options).predict(pairs, batch_size=4)
        expected = evaluate_scores(dataset, scores).expected
        assert found.regimes[regime].result["nDCG@10"].expected == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["cross-encoder", "transformers", "load_model"])
def test_a_classifier_of_two_labels_is_ranked_by_the_second(tiny, dataset, tmp_path, kind):
    transformers = pytest.importorskip("transformers")
    from deadheat.lab.models import load_model

    folder = tiny[0].bert(tmp_path / "two", labels=2)
    auto = transformers.AutoModelForSequenceClassification
    model = {
        "cross-encoder": lambda: cross_encoder(folder, "bfloat16"),
        "transformers": lambda: auto.from_pretrained(folder, dtype="bfloat16"),
        "load_model": lambda: load_model(folder, model_dtype="bf16"),
    }[kind]()
    found = dh.check(model, dataset, batch_size=4)
    assert set(found.regimes) == {"native", "hps", "head", "hps-logit", "head-logit"}
    logits = cross_encoder(folder, "float32").predict(pairs_of(dataset))
    in_fp32 = evaluate_scores(dataset, logits[:, 1] - logits[:, 0])
    assert found.regimes["head-logit"].result["nDCG@10"].expected == pytest.approx(
        in_fp32.expected, abs=0.1
    )


def test_a_loaded_bi_encoder(tiny, dataset, tmp_path):
    from deadheat.lab.models import load_model

    folder = tiny[0].add_pooling(tiny[0].bert_encoder(tmp_path / "encoder"), "mean")
    model = load_model(folder, model_dtype="bf16", kind="bi-encoder")
    found = dh.check(model, dataset)
    assert (set(found.regimes), found.now) == ({"native", "hps"}, "hps")
    queries = outputs_of(model, list(dataset.queries.values()), "query").vectors
    documents = outputs_of(model, list(dataset.corpus.values()), "document").vectors
    for regime in found.regimes:
        vectors = {"queries": queries, "documents": documents}
        scores = score("dot", regime=regime, model_dtype="bf16", **vectors)
        expected = evaluate_scores(dataset, scores.reshape(-1)).expected
        assert found.regimes[regime].result["nDCG@10"].expected == pytest.approx(expected)


def test_an_encoder_of_tokens(tiny, dataset, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    if not hasattr(library, "MultiVectorEncoder"):
        pytest.skip("sentence-transformers has a MultiVectorEncoder from 6.0 on")
    folder = tiny[0].bert_encoder(tmp_path / "encoder")
    model = library.MultiVectorEncoder(str(folder), device="cpu").bfloat16().eval()
    found = dh.check(model, dataset)
    assert "hps" in found.regimes and "sentence-transformers" in found.effect
    view = dh.high_precision(model)
    queries = view.encode_query(list(dataset.queries.values()))
    documents = view.encode_document(list(dataset.corpus.values()))
    scores = view.similarity(queries, documents)
    expected = evaluate_scores(dataset, scores.reshape(-1)).expected
    assert found.regimes["hps"].result["nDCG@10"].expected == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judgements": {}}, "no query with .*candidates and .*relevant"),
        ({"candidates": None}, "no query with .*candidates.* candidates='bm25'"),
    ],
)
def test_datasets_that_cannot_be_checked(tiny, dataset, change, message):
    from dataclasses import replace

    with pytest.raises(dh.InputError, match=message):
        dh.check(cross_encoder(tiny[1], "bfloat16"), replace(dataset, **change))


def test_models_that_cannot_be_run_are_named(dataset):
    torch = pytest.importorskip("torch")
    with pytest.raises(dh.InputError, match=r"a Linear cannot be run: .*sentence-transformers"):
        dh.check(torch.nn.Linear(2, 1), dataset)
    with pytest.raises(dh.InputError, match="a dict cannot be run"):
        dh.check({}, dataset)
    with pytest.raises(dh.InputError, match=r"dataset, not .*a dict"):
        dh.check(torch.nn.Linear(2, 1), {"q": {"d": 1.0}})


# The command


def call(*words: object, status: int = 0):
    done = CliRunner().invoke(main, ["check", *map(str, words)])
    assert done.exit_code == status, done.output
    return done


def test_the_gate_sets_the_exit_status(tmp_path):
    run = {q: {f"d{d}": 0.5 for d in range(4)} for q in QRELS}
    (tmp_path / "qrels.json").write_text(json.dumps(QRELS))
    (tmp_path / "run.json").write_text(json.dumps(run))
    files = (tmp_path / "qrels.json", tmp_path / "run.json")
    assert "Remedy" in call(*files).stdout
    assert "is above --max-range 0.01" in call(*files, "--max-range", 0.01, status=1).stderr
    call(*files, "--max-range", 1)
    assert json.loads(call(*files, "--format", "json").stdout)["range"] > 0.01
    assert "check needs judgements and one run" in call(files[0], status=2).stderr
    assert "check needs" in call(*files, "--model", "x", status=2).stderr


def test_the_command_runs_a_model(tiny, dataset, tmp_path):
    from deadheat.lab.datasets import write_dataset

    folder = tmp_path / "data"
    folder.mkdir()
    write_dataset(dataset, lambda name, data: (folder / name).write_bytes(data))
    words = ("--model", tiny[1], "--dataset", folder, "--model-dtype", "bf16")
    done = call(*words, "--samples", 3, "--details")
    assert "3 of 4 queries" in " ".join(done.stdout.split()) and "head-logit" in done.stdout
