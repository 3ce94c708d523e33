"""MTEB: wrapped models score as they do directly, and results have tie views."""

from __future__ import annotations

import json

import numpy as np
import pytest
from needed import import_host
from quiet import quiet

mteb = import_host("mteb")

import sentence_transformers as st  # noqa: E402
import tiny_models  # noqa: E402
import torch  # noqa: E402
from mteb_tasks import (  # noqa: E402
    Encoder,
    Scorer,
    make_reranking_split,
    make_split,
    make_task,
    only_scores,
)

import deadheat as dh  # noqa: E402
from deadheat.errors import DeadheatWarning, InputError  # noqa: E402
from deadheat.integrations.base import TIE_VIEWS  # noqa: E402
from deadheat.integrations.mteb import evaluate, tie_aware, tie_aware_cache, wrap  # noqa: E402
from deadheat.integrations.mteb.scores import measure_names, tie_rule  # noqa: E402
from deadheat.integrations.precision import regime_view  # noqa: E402

# Warnings of MTEB are not under test.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("error::deadheat.errors.DeadheatWarning"),
]

WORDS = [
    "heat",
    "race",
    "line",
    "runner",
    "horse",
    "mile",
    "nose",
    "photograph",
    "stand",
    "dead",
    "won",
    "furlong",
    "instant",
]
TEXTS = [" ".join(words) for words in np.random.default_rng(0).choice(WORDS, (60, 5))]
CUTOFFS = (1, 3, 5, 10, 20, 100, 1000)
VIEW_SUFFIXES = {"expected": "expected", **TIE_VIEWS}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    path = tiny_models.xlm_roberta(tmp_path_factory.mktemp("reranker"))
    return st.CrossEncoder(str(path), device="cpu").to(torch.bfloat16).eval()


@pytest.fixture(scope="module")
def bi_encoder(tmp_path_factory):
    path = tiny_models.bert_encoder(tmp_path_factory.mktemp("encoder"))
    tiny_models.add_pooling(path, "mean")
    return st.SentenceTransformer(str(path), device="cpu").to(torch.bfloat16).eval()


@pytest.fixture
def cache(tmp_path):
    return mteb.ResultCache(tmp_path / "cache")


@pytest.fixture
def data():
    return make_reranking_split(np.random.default_rng(1), TEXTS)


def run_task(model, task, function=evaluate, **options):
    options = {"cache": None, "show_progress_bar": False, "co2_tracker": False, **options}
    return function(model, task, **options)


def read_predictions(folder, task):
    text = (folder / f"{task.metadata.name}_predictions.json").read_text()
    return json.loads(text)["default"]["test"]


def model_state(model):
    """Return everything that MTEB could change in a model."""
    modules = {name: (id(m), type(m)) for name, m in model.named_modules()}
    hooks = {name: len(m._forward_hooks) for name, m in model.named_modules()}
    tensors = {name: (id(p), p.dtype) for name, p in model.named_parameters()}
    return modules, hooks, tensors


class TestRegimes:
    @pytest.mark.parametrize("regime", ["native", "hps", "head"])
    def test_reranker_scores_match_direct_scoring(self, reranker, data, regime, tmp_path):
        before = model_state(reranker)
        task = make_task(data)
        wrapped = wrap(reranker, regime)
        # One batch, because versions of MTEB batch pairs differently, which changes BF16 logits.
        options = {"prediction_folder": tmp_path, "encode_kwargs": {"batch_size": 1000}}
        scores = only_scores(run_task(wrapped, task, **options))
        stored = read_predictions(tmp_path, task)
        view = regime_view(reranker, regime)
        pairs = [(q, d) for q, docs in data["top_ranked"].items() for d in docs]
        texts = dict(zip(data["queries"]["id"], data["queries"]["text"], strict=True))
        texts |= dict(zip(data["corpus"]["id"], data["corpus"]["text"], strict=True))
        batch = [(texts[q], texts[d]) for q, d in pairs]
        direct = view.predict(batch, batch_size=1000, convert_to_tensor=True).tolist()
        assert [stored[q][d] for q, d in pairs] == direct
        result = quiet(dh.evaluate)(data["relevant_docs"], stored, ["nDCG@10"], queries="all")
        assert scores["ndcg_at_10_expected"] == result["nDCG@10"].expected
        assert model_state(reranker) == before

    def test_finer_regimes_have_more_distinct_scores(self, reranker, data, tmp_path):
        distinct = []
        for regime in ("native", "hps", "head"):
            task = make_task(data)
            run_task(wrap(reranker, regime), task, prediction_folder=tmp_path / regime)
            stored = read_predictions(tmp_path / regime, task)
            distinct.append(len({score for listed in stored.values() for score in listed.values()}))
        native, hps, head = distinct
        assert native < hps < head

    def test_mteb_changes_an_unwrapped_model(self, tmp_path):
        """The reason for `wrap`: if this fails, MTEB no longer changes models."""
        path = tiny_models.xlm_roberta(tmp_path / "model")
        model = st.CrossEncoder(str(path), device="cpu").to(torch.bfloat16).eval()
        before = model_state(model)
        run_task(
            model, make_task(make_reranking_split(np.random.default_rng(1), TEXTS)), mteb.evaluate
        )
        assert (model_state(model) == before) == (
            tuple(map(int, mteb.__version__.split(".")[:2])) < (2, 26)
        )

    @pytest.mark.parametrize("regime", ["native", "hps"])
    def test_bi_encoder_scores_match_direct_scoring(self, bi_encoder, data, regime, tmp_path):
        before = model_state(bi_encoder)
        task = make_task(data)
        run_task(wrap(bi_encoder, regime), task, prediction_folder=tmp_path)
        stored = read_predictions(tmp_path, task)
        view = regime_view(bi_encoder, regime)
        queries = view.encode_query(data["queries"]["text"])
        documents = view.encode_document(data["corpus"]["text"])
        direct = view.similarity(queries, documents)
        index = {d: i for i, d in enumerate(data["corpus"]["id"])}
        got = torch.tensor([list(listed.values()) for listed in stored.values()])
        expected = torch.stack(
            [direct[i, [index[d] for d in listed]] for i, listed in enumerate(stored.values())]
        )
        tolerance = 0 if regime == "native" else 1e-6  # FP32 products of other shapes differ
        torch.testing.assert_close(got, expected.float(), rtol=tolerance, atol=tolerance)
        if regime == "native":
            assert torch.equal(got, got.bfloat16().float())
            assert len(got.unique()) < got.numel() / 2
        assert model_state(bi_encoder) == before

    def test_wrapped_mteb_encoder_keeps_its_prompts(self, bi_encoder):
        loaded = mteb.models.SentenceTransformerEncoderWrapper(
            bi_encoder, model_prompts={"query": "find ", "document": ""}
        )
        wrapped = wrap(loaded, "native")
        assert wrapped.model_prompts == loaded.model_prompts
        assert wrapped.model.scoring.startswith("bf16, native")
        assert loaded.model is bi_encoder
        assert not loaded.mteb_model_meta.experiment_kwargs

    def test_regime_is_in_metadata_and_path(self, reranker, data, cache):
        for regime in ("native", "hps"):
            run_task(wrap(reranker, regime), make_task(data), cache=cache)
        metas = [
            json.loads(path.read_text()) for path in cache.cache_path.glob("**/model_meta.json")
        ]
        kwargs = [meta["experiment_kwargs"] for meta in metas if meta.get("experiment_kwargs")]
        assert {k["deadheat_regime"] for k in kwargs} == {"native", "hps"}
        paths = [str(path) for path in cache.cache_path.glob("**/DeadheatTask.json")]
        assert len(paths) == 2
        assert all(any(regime in path for path in paths) for regime in ("_native", "_hps"))

    def test_stored_results_are_loaded_by_their_regime(self, reranker, data, cache):
        """As in the recipe; by model name alone, MTEB averages the regimes."""

        def score(results):
            return float(results.to_dataframe().iloc[0, -1])

        stored = [
            run_task(wrap(reranker, regime), make_task(data), cache=cache).task_results[0]
            for regime in ("native", "hps")
        ]
        own = [result.get_score() for result in stored]
        loaded = [
            score(cache.load_results(experiment_kwargs={"deadheat_regime": regime}))
            for regime in ("native", "hps")
        ]
        assert loaded == own and own[0] != own[1]
        assert not cache.load_results().model_results
        mixed = cache.load_results(load_experiments="match_name")
        assert score(mixed) == pytest.approx(np.mean(own))

    def test_multi_vector_encoder_is_refused(self, tmp_path):
        if not hasattr(st, "MultiVectorEncoder"):
            pytest.skip("sentence-transformers has a MultiVectorEncoder from 6.0 on")
        folder = tiny_models.bert_encoder(tmp_path / "encoder")
        with pytest.raises(InputError, match="MultiVectorEncoder to MTEB"):
            wrap(st.MultiVectorEncoder(str(folder), device="cpu"))

    def test_unsupported_models_are_refused(self, reranker, bi_encoder):
        with pytest.raises(InputError, match="choose native, hps, head"):
            wrap(reranker, "bf16")
        with pytest.raises(InputError, match="no scoring head"):
            wrap(bi_encoder, "head")
        with pytest.raises(InputError, match="cannot change how a Scorer scores"):
            wrap(Scorer(len))
        loaded = mteb.models.CrossEncoderWrapper.__new__(mteb.models.CrossEncoderWrapper)
        with pytest.raises(InputError, match=r"load it with sentence-transformers"):
            wrap(loaded)


class TestKeys:
    def make_constant_task(self, prefix: str):
        """Return a task with ten candidates; ids of the two relevant ones start with `prefix`."""
        ids = [f"{prefix}{i}" for i in range(2)] + [f"m{i}" for i in range(8)]
        qrels = {"q": dict.fromkeys(ids[:2], 1)}
        return make_task(make_split({"q": "a"}, dict.fromkeys(ids, "b"), qrels, {"q": ids}))

    def test_expected_value_of_constant_scores_does_not_depend_on_ids(self):
        low, high = (
            only_scores(run_task(Scorer(lambda q, d: 0.5), self.make_constant_task(word)))
            for word in ("a", "z")
        )
        assert (round(low["ndcg_at_10"], 2), high["ndcg_at_10"]) == (0.36, 1.0)
        for scores in (low, high):
            assert round(scores["ndcg_at_10_expected"], 3) == 0.557
            assert round(scores["ndcg_at_10_worst"], 2) == 0.36
            assert scores["ndcg_at_10_best"] == 1
            assert round(scores["ndcg_at_10_range"], 2) == 0.64
            assert scores["ndcg_at_10_tie_std"] > 0.1
        assert low["ndcg_at_10_bias"] < 0 < high["ndcg_at_10_bias"]

    def test_every_score_of_mteb_has_views_and_bias(self, data):
        scores = only_scores(run_task(Scorer(lambda q, d: len(d) % 3), make_task(data)))
        names = [*measure_names(CUTOFFS), "accuracy"]
        assert {key for key in scores if key.endswith("_expected")} == {
            f"{n}_expected" for n in names
        }
        for name in names:
            views = {view: scores[f"{name}_{view}"] for view in VIEW_SUFFIXES}
            mteb_value = views["expected"] + views["bias"]
            assert mteb_value == pytest.approx(scores[name], abs=6e-6)  # MTEB rounds to five digits
            assert views["worst"] <= views["expected"] + 1e-12
            assert views["expected"] <= views["best"] + 1e-12
            assert views["range"] == views["best"] - views["worst"]

    def test_expected_values_match_mteb_without_ties(self, data):
        ranks = {text: i for i, text in enumerate(sorted(set(TEXTS)))}
        scores = only_scores(run_task(Scorer(lambda q, d: ranks[d] + 0.25), make_task(data)))
        for name in [*measure_names(CUTOFFS), "accuracy"]:
            assert scores[f"{name}_expected"] == pytest.approx(scores[name], abs=6e-6)
            assert scores[f"{name}_bias"] == pytest.approx(0, abs=1e-12)

    def test_queries_with_only_grade_0_count_as_in_mteb(self, data):
        qrels = dict(data["relevant_docs"])
        qrels["q0"] = dict.fromkeys(qrels["q0"], 0)
        data["relevant_docs"] = qrels
        scores = only_scores(run_task(Scorer(lambda q, d: len(d) % 3), make_task(data)))
        for name in ("ndcg_at_10", "mrr_at_10", "recall_at_5"):
            mteb_value = scores[f"{name}_expected"] + scores[f"{name}_bias"]
            assert mteb_value == pytest.approx(scores[name], abs=6e-6)

    @pytest.mark.parametrize("option", ["ignore_identical_ids", "skip_first_result"])
    def test_documents_excluded_by_mteb_are_excluded(self, data, option):
        corpus = {**dict(zip(data["corpus"]["id"], data["corpus"]["text"], strict=True))}
        corpus |= dict.fromkeys(data["top_ranked"], "the query itself")
        top = {q: [*docs[:20], q] for q, docs in data["top_ranked"].items()}
        queries = dict(zip(data["queries"]["id"], data["queries"]["text"], strict=True))
        changed = make_split(queries, corpus, data["relevant_docs"], top)
        task = make_task(changed, **{option: True})
        scores = only_scores(run_task(Scorer(lambda q, d: len(d) % 3), task))
        for name in ("ndcg_at_10", "mrr_at_10", "recall_at_5"):
            mteb_value = scores[f"{name}_expected"] + scores[f"{name}_bias"]
            assert mteb_value == pytest.approx(scores[name], abs=6e-6)

    def test_json_file_has_views(self, data, cache):
        run_task(Scorer(lambda q, d: 0.5), make_task(data), cache=cache)
        (path,) = cache.cache_path.glob("**/DeadheatTask.json")
        (scores,) = json.loads(path.read_text())["scores"]["test"]
        assert 0 < scores["ndcg_at_10_expected"] < scores["ndcg_at_10_best"]

    def test_every_subset_has_views(self, data):
        other = make_reranking_split(np.random.default_rng(2), TEXTS, queries=3)
        task = make_task(subsets={"en": data, "de": other})
        result = run_task(Scorer(lambda q, d: 0.5), task)
        per_subset = result.task_results[0].scores["test"]
        assert len(per_subset) == 2
        assert len({scores["ndcg_at_10_expected"] for scores in per_subset}) == 2

    def test_task_specific_scores_are_kept(self):
        nevir = mteb.get_task("NevIR")
        ids = ["a_doc1", "a_doc2"]
        qrels = {"a_q1": {"a_doc1": 1}, "a_q2": {"a_doc2": 1}}
        top = dict.fromkeys(qrels, ids)
        texts = dict.fromkeys(ids, "same")
        data = make_split({"a_q1": "one", "a_q2": "two"}, texts, qrels, top)
        nevir.dataset = {"default": {"test": data}}
        nevir.data_loaded = True
        scores = only_scores(run_task(Scorer(lambda q, d: 0.5), nevir))
        assert scores["paired_accuracy"] == 0
        assert scores["ndcg_at_10_range"] > 0

    def test_overridden_score_hooks_of_tasks_are_called(self):
        base = mteb.abstasks.AbsTaskRetrieval
        overriding = [
            cls
            for cls in all_subclasses(base)
            if cls.task_specific_scores is not base.task_specific_scores
            and cls.__module__.startswith("mteb.tasks")
        ]
        assert len(overriding) > 30
        for cls in overriding:
            task = cls.__new__(cls)
            task.task_specific_scores = lambda *_, hf_split, hf_subset: {"own": 1.0}
            tie_aware(task)
            scores = task.task_specific_scores(
                {}, {"q": {"d": 1}}, {"q": {"d": 1.0, "e": 1.0}}, hf_split="test", hf_subset="en"
            )
            assert scores["own"] == 1
            assert scores["mrr_at_10_expected"] == 0.75

    def test_tie_aware_is_idempotent(self, data):
        task = make_task(data)
        hook = tie_aware(task).task_specific_scores
        assert tie_aware([task])[0].task_specific_scores is hook

    def test_other_tasks_are_unchanged(self):
        task = mteb.get_task("STS12")
        before = dict(vars(task))
        assert tie_aware([task]) == [task]
        assert vars(task) == before
        with pytest.raises(InputError, match="not a task of MTEB"):
            tie_aware("NFCorpus")

    def test_tie_rules_match_mteb(self):
        rules = {
            name: tie_rule(dh.measures.parse_measures([name])[0]) for name in measure_names([10])
        }
        assert rules.pop("mrr_at_10") == "id_desc"
        assert set(rules.values()) == {"pytrec_eval"}


class TestCache:
    model = Scorer(lambda q, d: 0.5)

    def test_stored_result_without_views_is_rerun_with_a_warning(self, data, cache):
        run_task(self.model, make_task(data), mteb.evaluate, cache=cache)
        with pytest.warns(DeadheatWarning, match="DeadheatTask have no views"):
            scores = only_scores(run_task(self.model, make_task(data), cache=cache))
        assert scores["ndcg_at_10_range"] > 0
        (path,) = cache.cache_path.glob("**/DeadheatTask.json")
        assert "ndcg_at_10_range" in path.read_text()
        scored = []
        counting = Scorer(lambda q, d: scored.append(d) or 0.5)
        assert only_scores(run_task(counting, make_task(data), cache=cache))["ndcg_at_10_range"] > 0
        assert not scored  # the cache now has the views

    def test_stored_result_without_views_is_an_error_if_reruns_are_off(self, data, cache):
        run_task(self.model, make_task(data), mteb.evaluate, cache=cache)
        with pytest.raises(InputError, match="overwrite_strategy"):
            run_task(self.model, make_task(data), cache=cache, overwrite_strategy="only-cache")

    def test_tie_aware_cache_makes_mteb_rerun_results_without_views(self, data, cache):
        run_task(self.model, make_task(data), mteb.evaluate, cache=cache)
        assert "ndcg_at_10_range" not in only_scores(
            run_task(self.model, tie_aware(make_task(data)), mteb.evaluate, cache=cache)
        )  # the reason for the cache: MTEB's own returns such results without a warning
        ours = tie_aware_cache(tie_aware_cache(cache))  # idempotent
        with pytest.warns(DeadheatWarning, match="DeadheatTask have no views"):
            run_task(self.model, tie_aware(make_task(data)), mteb.evaluate, cache=ours)
        scored = []
        counting = Scorer(lambda q, d: scored.append(d) or 0.5)
        result = run_task(counting, tie_aware(make_task(data)), mteb.evaluate, cache=ours)
        assert only_scores(result)["ndcg_at_10_range"] > 0
        assert not scored
        (path,) = cache.cache_path.glob("**/DeadheatTask.json")  # the path of MTEB's own cache
        assert "ndcg_at_10_range" in path.read_text()

    def test_never_strategy_does_not_overwrite_a_result_without_views(self, data, cache):
        run_task(self.model, make_task(data), mteb.evaluate, cache=cache)
        (path,) = cache.cache_path.glob("**/DeadheatTask.json")
        before = path.read_bytes()
        with pytest.raises(InputError, match="overwrite_strategy"):
            run_task(self.model, make_task(data), cache=cache, overwrite_strategy="never")
        assert path.read_bytes() == before

    def test_tie_aware_cache_has_the_path_of_mtebs_cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MTEB_CACHE", str(tmp_path))
        assert tie_aware_cache().cache_path == mteb.ResultCache().cache_path
        with pytest.raises(InputError, match="not a cache of MTEB"):
            tie_aware_cache(str(tmp_path))

    def test_parts_of_an_aggregate_without_views_are_rerun(self, data, cache):
        part = make_task(data, name="Part")
        run_task(self.model, make_task(data, name="Part"), mteb.evaluate, cache=cache)
        with pytest.warns(DeadheatWarning, match="Part have no views"):
            result = run_task(self.model, make_aggregate(part), cache=cache)
        assert [stored.task_name for stored in result.task_results] == ["Whole"]
        (path,) = cache.cache_path.glob("**/Part.json")
        assert "ndcg_at_10_range" in path.read_text()


def make_aggregate(*parts):
    from mteb.abstasks.aggregate_task_metadata import AggregateTaskMetadata
    from mteb.abstasks.aggregated_task import AbsTaskAggregate

    task_metadata = AggregateTaskMetadata(
        name="Whole",
        description="Made by a test.",
        reference=None,
        tasks=list(parts),
        main_score="ndcg_at_10",
        type="Reranking",
        eval_splits=["test"],
        bibtex_citation="",
    )
    return type("Whole", (AbsTaskAggregate,), {"metadata": task_metadata})()


def all_subclasses(cls):
    for child in cls.__subclasses__():
        yield child
        yield from all_subclasses(child)


class TestWholeCorpus:
    """Binary codes: a list cut at 20 of 3,000 documents ends inside a large tie group."""

    @pytest.fixture
    def codes(self):
        rng = np.random.default_rng(3)
        documents = rng.integers(0, 2, (3000, 12))
        queries = rng.integers(0, 2, (8, 12))
        corpus = {f"d{i}": " ".join(map(str, row)) for i, row in enumerate(documents)}
        texts = {f"q{i}": " ".join(map(str, row)) for i, row in enumerate(queries)}
        scores = queries @ documents.T
        qrels = {}
        for i, query in enumerate(texts):
            near = rng.choice(np.argsort(-scores[i])[:200], 15, replace=False)
            qrels[query] = {f"d{j}": int(rng.integers(1, 3)) for j in near}
        qrels["q0"] = {**qrels["q0"], "nowhere": 1}
        lists = {
            q: dict(zip(corpus, row.tolist(), strict=True))
            for q, row in zip(texts, scores, strict=True)
        }
        return make_split(texts, corpus, qrels), lists

    @pytest.mark.parametrize("chunk", [3000, 700])
    def test_views_match_complete_lists(self, codes, chunk, monkeypatch):
        monkeypatch.setattr(
            mteb.models.SearchEncoderWrapper.__init__, "__defaults__", (chunk, None)
        )
        data, lists = codes
        task = make_task(data, k_values=(1, 3, 5, 10, 20))
        scores = only_scores(run_task(Encoder(), task))
        assert scores["ties_counted_in"] == "corpus"
        names = measure_names((1, 5, 20))
        whole = quiet(dh.evaluate)(data["relevant_docs"], lists, names, queries="all")
        for name in names:
            for key, view in VIEW_SUFFIXES.items():
                if key != "bias":
                    truth = getattr(whole[name], view)
                    assert scores[f"{name}_{key}"] == pytest.approx(truth, abs=1e-12), (name, key)
            mteb_value = scores[f"{name}_expected"] + scores[f"{name}_bias"]
            assert mteb_value == pytest.approx(scores[name], abs=6e-6)
        assert scores["ndcg_at_20_range"] > 0.05

    def test_cut_lists_understate_the_range(self, codes, tmp_path):
        data, _ = codes
        task = make_task(data, k_values=(1, 3, 5, 10, 20))
        scores = only_scores(run_task(Encoder(), task, prediction_folder=tmp_path))
        cut = quiet(dh.evaluate)(
            data["relevant_docs"], read_predictions(tmp_path, task), ["nDCG@20"]
        )
        assert cut["nDCG@20"].range < scores["ndcg_at_20_range"] * 0.9

    def test_documents_with_the_id_of_their_query_are_excluded(self, codes):
        data, lists = codes
        queries = dict(zip(data["queries"]["id"], data["queries"]["text"], strict=True))
        corpus = dict(zip(data["corpus"]["id"], data["corpus"]["text"], strict=True))
        qrels = {q: {**grades, q: 2} for q, grades in data["relevant_docs"].items()}
        task = make_task(
            make_split(queries, {**queries, **corpus}, qrels),
            k_values=(1, 3, 5, 10, 20),
            ignore_identical_ids=True,
        )
        scores = only_scores(run_task(Encoder(), task))
        others = {q: np.array([*map(float, text.split())]) for q, text in queries.items()}
        lists = {
            q: {p: float(v @ others[q]) for p, v in others.items() if p != q} | listed
            for q, listed in lists.items()
        }
        whole = quiet(dh.evaluate)(qrels, lists, ["nDCG@10", "Recall@20"], queries="all")
        assert scores["ndcg_at_10_expected"] == pytest.approx(whole["nDCG@10"].expected)
        assert scores["recall_at_20_range"] == pytest.approx(whole["Recall@20"].range)

    def test_finer_regime_of_a_bi_encoder_has_a_smaller_range(self, bi_encoder, data):
        ranges = {}
        for regime in ("native", "hps"):
            task = make_task({**data, "top_ranked": None})
            scores = only_scores(run_task(wrap(bi_encoder, regime), task))
            assert scores["ties_counted_in"] == "corpus"
            ranges[regime] = scores["ndcg_at_10_range"]
        assert ranges["native"] > ranges["hps"]
