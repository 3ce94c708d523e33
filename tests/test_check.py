"""`dh.check`: effect, cause and remedy for runs and for models."""

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


def make_run(scores: np.ndarray) -> dict[str, dict[str, float]]:
    return {
        f"q{q}": {f"d{d}": float(value) for d, value in enumerate(row)}
        for q, row in enumerate(scores)
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
def test_check_reports_the_cause_and_the_remedy(kind):
    scores, cause, remedy = CAUSES[kind]
    report = dh.check(QRELS, make_run(scores), "MAP")
    assert (report.cause_kind, report.range > 0) == (kind, True)
    assert cause in report.cause and remedy in report.remedy
    assert report.range == dh.evaluate(QRELS, make_run(scores), ["MAP"])["MAP"].range
    assert not report.ok(0) and report.ok(1)


def test_run_without_ties_needs_no_remedy():
    report = dh.check(QRELS, make_run(random_scores()), ["nDCG@10", "MAP"])
    assert (report.cause_kind, report.remedy_kind, report.range) == ("none", "none", 0)
    assert report.ok(0) and "cannot move your numbers" in report.effect
    assert report.remedy == "nothing to do"


def test_ties_without_effect_are_counted_and_need_no_remedy():
    run = {"q": {"a": 0.9, "b": 0.5, "c": 0.5}}
    report = dh.check({"q": {"a": 1}}, run)
    assert report.remedy_kind == "none" and report.cause.startswith("2 of 3 documents are tied")


def test_scores_that_are_equal_only_in_float32_are_reported():
    run = {"q": {"a": 1.00000000001, "b": 1.0, "c": 0.5}}
    report = dh.check({"q": {"b": 1}}, run, "MRR")
    assert (report.range, report.cause_kind, report.remedy_kind) == (0, "float32", "float64")
    assert "50.0 points" in report.effect


def test_lists_that_end_in_a_tie_are_reported():
    run = {"q": {"a": 0.9, "b": 0.5, "c": 0.5}}
    report = dh.check({"q": {"a": 1, "gone": 1}}, run, "nDCG@10")
    assert (report.cause_kind, report.remedy_kind) == ("cut lists", "more documents")
    assert "if the lists were cut" in report.remedy


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=4))
def test_any_report_has_three_paragraphs_within_80_columns(lists):
    run = {
        f"q{q}": {f"d{d}": s / 4 for d, s in enumerate(values)} for q, values in enumerate(lists)
    }
    report = dh.check({q: {"d0": 1} for q in run}, run)
    lines = str(report).splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [
        "Effect",
        "Cause",
        "Remedy",
    ]
    assert max(map(len, lines)) <= 80
    assert (report.remedy_kind == "none") <= (report.range == 0)
    assert json.loads(report.to_json())["range"] == report.range
    assert "Remedy" in report._repr_html_() and "nDCG@10" in report.table()


def test_cause_of_recorded_models_by_regime():
    kinds = {
        (recording.scoring, regime): dh.check(recording.qrels, run).cause_kind
        for recording in recordings().values()
        for regime, run in recording.runs.items()
    }
    assert {kinds[name] for name in kinds if name[1] == "fp32"} == {"none"}
    assert {kind for name, kind in kinds.items() if name[1] == "native"} == {"grid"}


def test_choose_regime_returns_the_cheapest_regime_that_is_good_enough():
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


def test_cross_encoder_check_matches_predict(tiny, dataset):
    model = cross_encoder(tiny[1], "bfloat16")
    activation = model.activation_fn
    report = dh.check(model, dataset, batch_size=4)
    assert model.activation_fn is activation
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
    assert report.result["nDCG@10"] == expected
    assert set(report.regimes) >= {"native", "hps", "head", "hps-logit", "head-logit"}
    assert report.regimes["head"].tied <= report.regimes["hps"].tied
    assert "sentence-transformers" in report.effect and "4 queries" in report.effect
    # One text has a copy in each of four lists; both tie if they are in the same batch.
    assert report.regimes["head"].duplicates in (2, 4, 6, 8)
    assert "(now)" in report.table()


def test_cross_encoder_check_matches_high_precision_head(tiny, dataset):
    model = cross_encoder(tiny[1], "bfloat16")
    report = dh.check(model, dataset, batch_size=4)
    pairs = [
        (dataset.queries[q], dataset.corpus[d]) for q in dataset.queries for d in dataset.corpus
    ]
    scores = dh.high_precision(model, regime="head").predict(pairs, batch_size=4)
    run = {
        q: dict(zip(dataset.corpus, row.tolist(), strict=True))
        for q, row in zip(dataset.queries, scores.reshape(len(dataset.queries), -1), strict=True)
    }
    expected = dh.evaluate(dict(dataset.judgements), run, ["nDCG@10"])["nDCG@10"]
    assert report.regimes["head"].result["nDCG@10"].expected == pytest.approx(expected.expected)


def test_fp32_model_has_only_native_and_hps_logit(tiny, dataset):
    report = dh.check(cross_encoder(tiny[1], "float32"), dataset)
    assert set(report.regimes) == {"native", "hps-logit"}
    assert report.remedy_kind in ("none", "deduplicate")


def test_check_accepts_transformers_models_and_loaded_models(tiny, dataset):
    transformers = pytest.importorskip("transformers")
    auto = transformers.AutoModelForSequenceClassification
    model = auto.from_pretrained(tiny[1], dtype="bfloat16")
    report = dh.check(model, dataset, samples=2)
    assert report.now == "hps-logit" and "2 of 4 queries" in report.effect
    from deadheat.lab.models import load_model

    loaded = load_model(tiny[1], model_dtype="bf16")
    assert dh.check(loaded, dataset, regime="native").now == "native"
    with pytest.raises(dh.InputError, match="no regime 'nope'"):
        dh.check(loaded, dataset, regime="nope")


def test_bi_encoder_check_has_native_and_hps(tiny, dataset):
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(tiny[1]), model_kwargs={"dtype": "bfloat16"})
    report = dh.check(model, dataset)
    assert {"native", "hps"} <= set(report.regimes)
    assert report.regimes["native"].tied >= report.regimes["hps"].tied


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    """Build yes/no rerankers of sentence-transformers that use one logit or two."""
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


def make_pairs(dataset) -> list[tuple[str, str]]:
    """Return all pairs of query and document texts."""
    lists = dataset.candidates
    return [(dataset.queries[q], dataset.corpus[d]) for q in lists for d in lists[q]]


def evaluate_scores(dataset, scores):
    """Evaluate the scores of all pairs, in the order of `make_pairs`."""
    columns = zip(*((q, d) for q, docs in dataset.candidates.items() for d in docs), strict=True)
    frame = pl.DataFrame(dict(zip(("query_id", "doc_id"), map(list, columns), strict=True)))
    frame = frame.with_columns(score=pl.Series(np.asarray(scores, np.float32)))
    return dh.evaluate(dict(dataset.judgements), frame, ["nDCG@10"])["nDCG@10"]


@pytest.mark.parametrize("pair", [True, False])
def test_causal_reranker_check_matches_predict_and_high_precision(causal, dataset, pair):
    model = causal(pair=pair)
    report = dh.check(model, dataset, batch_size=4)
    assert set(report.regimes) >= {"native", "hps", "head", "hps-logit", "head-logit"}
    pairs = make_pairs(dataset)
    assert report.result["nDCG@10"] == evaluate_scores(dataset, model.predict(pairs, batch_size=4))
    for regime, options in {
        "hps": {"regime": "hps"},
        "head": {"regime": "head"},
        "head-logit": {"regime": "head", "scores": "logit"},
    }.items():
        scores = dh.high_precision(model, **options).predict(pairs, batch_size=4)
        expected = evaluate_scores(dataset, scores).expected
        assert report.regimes[regime].result["nDCG@10"].expected == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["cross-encoder", "transformers", "load_model"])
def test_classifier_with_two_labels_is_ranked_by_the_second_label(tiny, dataset, tmp_path, kind):
    transformers = pytest.importorskip("transformers")
    from deadheat.lab.models import load_model

    folder = tiny[0].bert(tmp_path / "two", labels=2)
    auto = transformers.AutoModelForSequenceClassification
    model = {
        "cross-encoder": lambda: cross_encoder(folder, "bfloat16"),
        "transformers": lambda: auto.from_pretrained(folder, dtype="bfloat16"),
        "load_model": lambda: load_model(folder, model_dtype="bf16"),
    }[kind]()
    report = dh.check(model, dataset, batch_size=4)
    assert set(report.regimes) == {"native", "hps", "head", "hps-logit", "head-logit"}
    logits = cross_encoder(folder, "float32").predict(make_pairs(dataset))
    expected = evaluate_scores(dataset, logits[:, 1] - logits[:, 0])
    assert report.regimes["head-logit"].result["nDCG@10"].expected == pytest.approx(
        expected.expected, abs=0.1
    )


def test_loaded_bi_encoder_check_matches_score(tiny, dataset, tmp_path):
    from deadheat.lab.models import load_model

    folder = tiny[0].add_pooling(tiny[0].bert_encoder(tmp_path / "encoder"), "mean")
    model = load_model(folder, model_dtype="bf16", kind="bi-encoder")
    report = dh.check(model, dataset)
    assert (set(report.regimes), report.now) == ({"native", "hps"}, "hps")
    queries = outputs_of(model, list(dataset.queries.values()), "query").vectors
    documents = outputs_of(model, list(dataset.corpus.values()), "document").vectors
    for regime in report.regimes:
        vectors = {"queries": queries, "documents": documents}
        scores = score("dot", regime=regime, model_dtype="bf16", **vectors)
        expected = evaluate_scores(dataset, scores.reshape(-1)).expected
        assert report.regimes[regime].result["nDCG@10"].expected == pytest.approx(expected)


def test_multi_vector_encoder_check_matches_high_precision(tiny, dataset, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    if not hasattr(library, "MultiVectorEncoder"):
        pytest.skip("sentence-transformers has a MultiVectorEncoder from 6.0 on")
    folder = tiny[0].bert_encoder(tmp_path / "encoder")
    model = library.MultiVectorEncoder(str(folder), device="cpu").bfloat16().eval()
    report = dh.check(model, dataset)
    assert "hps" in report.regimes and "sentence-transformers" in report.effect
    view = dh.high_precision(model)
    queries = view.encode_query(list(dataset.queries.values()))
    documents = view.encode_document(list(dataset.corpus.values()))
    scores = view.similarity(queries, documents)
    expected = evaluate_scores(dataset, scores.reshape(-1)).expected
    assert report.regimes["hps"].result["nDCG@10"].expected == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judgements": {}}, "no query with .*candidates and .*relevant"),
        ({"candidates": None}, "no query with .*candidates.* candidates='bm25'"),
    ],
)
def test_dataset_without_judgements_or_candidates_is_rejected(tiny, dataset, change, message):
    from dataclasses import replace

    with pytest.raises(dh.InputError, match=message):
        dh.check(cross_encoder(tiny[1], "bfloat16"), replace(dataset, **change))


def test_unsupported_model_is_named(dataset):
    torch = pytest.importorskip("torch")
    with pytest.raises(dh.InputError, match=r"a Linear cannot be run: .*sentence-transformers"):
        dh.check(torch.nn.Linear(2, 1), dataset)
    with pytest.raises(dh.InputError, match="a dict cannot be run"):
        dh.check({}, dataset)
    with pytest.raises(dh.InputError, match=r"dataset, not .*a dict"):
        dh.check(torch.nn.Linear(2, 1), {"q": {"d": 1.0}})


# The command


def call(*args: object, status: int = 0):
    result = CliRunner().invoke(main, ["check", *map(str, args)])
    assert result.exit_code == status, result.output
    return result


def test_max_range_sets_the_exit_status(tmp_path):
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


def test_check_command_runs_a_model(tiny, dataset, tmp_path):
    from deadheat.lab.datasets import write_dataset

    folder = tmp_path / "data"
    folder.mkdir()
    write_dataset(dataset, lambda name, data: (folder / name).write_bytes(data))
    args = ("--model", tiny[1], "--dataset", folder, "--model-dtype", "bf16")
    result = call(*args, "--samples", 3, "--details")
    assert "3 of 4 queries" in " ".join(result.stdout.split()) and "head-logit" in result.stdout
