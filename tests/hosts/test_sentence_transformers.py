"""Drop-in evaluators for sentence-transformers: direct calls, output files, training."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys

import numpy as np
import pytest
from needed import import_host
from quiet import quiet

st = import_host("sentence-transformers")

import tiny_models  # noqa: E402
import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from packaging.version import Version  # noqa: E402
from sentence_transformers.cross_encoder import evaluation as their_cross_encoder  # noqa: E402
from sentence_transformers.sentence_transformer import evaluation as theirs  # noqa: E402

import deadheat as dh  # noqa: E402
from deadheat.errors import InputError  # noqa: E402
from deadheat.integrations import sentence_transformers as ours  # noqa: E402
from deadheat.integrations.precision import regime_view  # noqa: E402

# Warnings of the library are not under test.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("error::deadheat.errors.DeadheatWarning"),
]

WORDS = ("heat", "race", "line", "horse", "mile", "nose", "stand", "dead", "won", "instant")
TEXTS = [" ".join(words) for words in np.random.default_rng(0).choice(WORDS, (80, 5))]
VIEWS = ("best", "worst", "range", "tie_std", "bias")
ORDERS_TIES_BY_ID = Version(st.__version__) >= Version("6.2")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    reranker = tiny_models.xlm_roberta(folder / "reranker")
    encoder = tiny_models.bert_encoder(folder / "encoder")
    tiny_models.add_pooling(encoder, "mean")
    return {"reranker": str(reranker), "encoder": str(encoder)}


@pytest.fixture(scope="module")
def reranker(checkpoints):
    return st.CrossEncoder(checkpoints["reranker"], device="cpu").to(torch.bfloat16).eval()


@pytest.fixture(scope="module")
def encoder(checkpoints):
    return st.SentenceTransformer(checkpoints["encoder"], device="cpu").to(torch.bfloat16).eval()


@pytest.fixture(scope="module")
def fp32_encoder(checkpoints):
    """An encoder in FP32; its scores of different texts do not tie."""
    return st.SentenceTransformer(checkpoints["encoder"], device="cpu").eval()


def make_samples(n=8, n_documents=20, positives=3):
    rng = np.random.default_rng(1)
    samples = []
    for i in range(n):
        texts = [str(text) for text in rng.choice(sorted(set(TEXTS)), n_documents, replace=False)]
        samples.append(
            {"query": TEXTS[i], "positive": texts[:positives], "negative": texts[positives:]}
        )
    return samples


def make_collection(unique=True):
    rng = np.random.default_rng(2)
    texts = sorted(set(TEXTS)) if unique else TEXTS * 3
    corpus = {f"d{i}": text for i, text in enumerate(texts)}
    queries = {f"q{i}": text for i, text in enumerate(TEXTS[:6])}
    relevant = {q: {str(d) for d in rng.choice(list(corpus), 7, False)} for q in queries}
    relevant["q0"].add("nowhere")
    relevant["q5"] = set()  # is not evaluated
    return queries, corpus, relevant


class FixedModel:
    """A model that returns fixed scores."""

    similarity_fn_name = "cosine"

    def __init__(self, scores=None, model=None):
        self.scores = scores
        self.model_card_data = model.model_card_data if model else ModelCard()

    def predict(self, pairs, **_):
        return np.asarray(self.scores(pairs))


class ModelCard:
    def __init__(self):
        self.stored = {}

    def set_evaluation_metrics(self, evaluator, metrics, *_):
        self.stored = dict(metrics)


def assert_matches(ours_, theirs_):
    """Check that our values match theirs, and that ours include views."""
    for name, value in theirs_.items():
        assert ours_[name] == pytest.approx(value, abs=1e-9), name
    added = {name for name in ours_ if name not in theirs_}
    assert added
    assert all(name.endswith(VIEWS) for name in added)


def assert_bias_matches(ours_, theirs_):
    """Check that value + bias is the value of the original evaluator."""
    for name, value in theirs_.items():
        assert ours_[name] + ours_[f"{name}_bias"] == pytest.approx(value, abs=1e-9), name


def assert_exact(got, name, relevant, run):
    """Check every view against complete lists, in which ties reach past a cutoff."""
    pairs = {
        "ndcg@10": "nDCG@10",
        "mrr@10": "MRR@10",
        "accuracy@5": "Success@5",
        "precision@3": "Precision@3",
        "recall@10": "Recall@10",
        "map@10": dh.MAP(divisor="min") @ 10,
    }
    qrels = {q: dict.fromkeys(relevant[q], 1) for q in run}
    truth = quiet(dh.evaluate)(qrels, run, list(pairs.values()))
    for measure_name, measure in pairs.items():
        key = f"{name}_{measure_name}"
        assert got[key] == pytest.approx(truth[measure].expected), key
        assert got[f"{key}_best"] == pytest.approx(truth[measure].best), key
        assert got[f"{key}_range"] == pytest.approx(truth[measure].range), key
        assert got[f"{key}_tie_std"] == pytest.approx(truth[measure].std), key
    assert got[f"{name}_ndcg@10_range"] > 0.02


def read_csv(path):
    """Return the rows of a CSV file."""
    return list(csv.reader(path.read_text().splitlines()))


def make_dataset(rows, *columns):
    return Dataset.from_dict({name: [row[i] for row in rows] for i, name in enumerate(columns)})


class TestCrossEncoderReranking:
    def make_model(self, distinct):
        """Return a model whose scores tie, unless `distinct`."""
        order = {text: i for i, text in enumerate(sorted(set(TEXTS)))}
        scale = 1 if distinct else 12
        return FixedModel(lambda pairs: [float(order[document] // scale) for _, document in pairs])

    @pytest.mark.parametrize("documents", [False, True])
    def test_values_match_the_original_without_ties(self, documents):
        data = make_samples()
        if documents:
            data = [
                {
                    "query": s["query"],
                    "positive": s["positive"],
                    "documents": s["negative"][:5] + s["positive"][:2] + s["negative"][5:],
                }
                for s in data
            ]
        data.append({**data[0], "positive": []})
        options = {"name": "dev", "at_k": 5}
        if documents:
            options["always_rerank_positives"] = False
        mine = ours.CrossEncoderRerankingEvaluator(data, **options)
        other = their_cross_encoder.CrossEncoderRerankingEvaluator(data, **options)
        got, expected = mine(self.make_model(True)), other(self.make_model(True))
        assert_matches(got, expected)
        assert mine.primary_metric == other.primary_metric == "dev_ndcg@5"
        assert got["dev_ndcg@5_range"] == 0
        assert len(mine.results[""].query_ids) == len(data)

    def test_values_are_means_over_tie_orders(self):
        data = make_samples()
        evaluator = ours.CrossEncoderRerankingEvaluator(data)
        model = self.make_model(False)
        got = evaluator(model)
        qrels, run = {}, {}
        for i, sample in enumerate(data):
            listed = sample["positive"] + sample["negative"]
            scores = model.predict([("", text) for text in listed])
            run[f"q{i}"] = {f"d{j}": s for j, s in enumerate(scores)}
            qrels[f"q{i}"] = {f"d{j}": 1 for j in range(len(sample["positive"]))}
        truth = dh.evaluate(qrels, run, ["MAP", "MRR@10", "nDCG@10"])
        for name, measure in (("map", "MAP"), ("mrr@10", "MRR@10"), ("ndcg@10", "nDCG@10")):
            assert got[name] == pytest.approx(truth[measure].expected)
            assert got[f"{name}_range"] == pytest.approx(truth[measure].range)
            assert got[f"{name}_best"] == pytest.approx(truth[measure].best)
            assert got[f"{name}_tie_std"] == pytest.approx(truth[measure].std)
        original = their_cross_encoder.CrossEncoderRerankingEvaluator(data)(model)
        assert original["mrr@10"] != pytest.approx(got["mrr@10"])
        assert_bias_matches(got, original)
        assert got["ndcg@10_bias"] == pytest.approx(0)  # scikit-learn averages nDCG over tie orders

    def test_samples_of_one_document_or_without_a_positive(self):
        model = FixedModel(lambda pairs: [0.5] * len(pairs))
        alone = {"query": "q", "positive": ["a"], "negative": []}
        tied = {"query": "q", "positive": ["a"], "negative": ["b", "c"]}
        none = {"query": "q", "positive": [], "negative": ["b", "c"]}
        got = ours.CrossEncoderRerankingEvaluator([alone, none])(model)
        assert (got["mrr@10"], got["mrr@10_bias"], got["ndcg@10_bias"]) == (0.5, 0, 0)
        data = [tied, none]
        got = ours.CrossEncoderRerankingEvaluator(data)(model)
        assert_bias_matches(got, their_cross_encoder.CrossEncoderRerankingEvaluator(data)(model))
        got = ours.CrossEncoderRerankingEvaluator([none])(model)
        assert got["mrr@10_bias"] == got["map"] == 0

    def test_files_and_card_match_the_original(self, tmp_path):
        for module in (ours, their_cross_encoder):
            evaluator = module.CrossEncoderRerankingEvaluator(make_samples(), name="dev")
            model = self.make_model(True)
            evaluator(model, str(tmp_path / module.__name__), epoch=1, steps=2)
            evaluator.card = model.model_card_data.stored
            (path,) = (tmp_path / module.__name__).iterdir()
            rows = read_csv(path)
            if module is ours:
                first = path.name, rows[0], rows[1], evaluator.card, evaluator.description
        assert first[:2] == (path.name, rows[0])
        assert list(map(float, first[2])) == pytest.approx(list(map(float, rows[1])))
        assert first[3] == pytest.approx(evaluator.card)
        assert first[4] == evaluator.description

    @pytest.mark.parametrize("regime", ["native", "hps", "head"])
    def test_regime_option(self, reranker, regime):
        data = make_samples()
        got = ours.CrossEncoderRerankingEvaluator(data, regime=regime)(reranker)
        view = regime_view(reranker, regime)
        assert got == ours.CrossEncoderRerankingEvaluator(data)(view)
        config = ours.CrossEncoderRerankingEvaluator(data, regime=regime).get_config_dict()
        assert config["regime"] == regime

    def test_finer_regimes_have_smaller_ranges(self, reranker):
        ranges = [
            ours.CrossEncoderRerankingEvaluator(make_samples(), regime=regime)(reranker)[
                "map_range"
            ]
            for regime in ("native", "hps", "head")
        ]
        assert ranges[0] > ranges[1] >= ranges[2]

    def test_unknown_regime_is_refused(self):
        with pytest.raises(InputError, match="choose native, hps, head"):
            ours.CrossEncoderRerankingEvaluator(make_samples(), regime="bf16")


class TestReranking:
    @pytest.mark.parametrize("batched", [True, False])
    def test_values_match_the_original_without_ties(self, fp32_encoder, batched):
        options = {"name": "dev", "use_batched_encoding": batched}
        mine = ours.RerankingEvaluator(make_samples(), **options)
        other = theirs.RerankingEvaluator(make_samples(), **options)
        assert_matches(mine(fp32_encoder), other(fp32_encoder))
        assert mine.primary_metric == other.primary_metric == "dev_ndcg@10"
        assert mine.csv_file == other.csv_file

    def test_values_are_means_over_tie_orders(self, encoder):
        data = make_samples()
        evaluator = ours.RerankingEvaluator(data, regime="native")
        got = evaluator(encoder)
        view = dh.low_precision(encoder)
        lists, labels = [], []
        for sample in data:
            documents = sample["positive"] + sample["negative"]
            scores = view.similarity(
                view.encode_query([sample["query"]], convert_to_tensor=True),
                view.encode_document(documents, convert_to_tensor=True),
            )
            assert scores.dtype == torch.bfloat16
            lists.append(scores[0].float().numpy())
            labels.append([1] * 3 + [0] * 17)
        truth = dh.evaluate_arrays(labels, lists, ["MRR@10"])["MRR@10"]
        assert got["mrr@10_range"] > 0
        # The library encodes all documents in one batch, which may change a BF16 embedding.
        assert got["mrr@10"] == pytest.approx(truth.expected, abs=0.1)
        assert evaluator.similarity_fct is theirs.RerankingEvaluator(data).similarity_fct

    def test_custom_similarity_is_used(self, encoder):
        def constant(a, b):
            return torch.zeros(1, len(b))

        got = ours.RerankingEvaluator(make_samples(), similarity_fct=constant, regime="hps")(
            encoder
        )
        tied = dh.evaluate_arrays([[1] * 3 + [0] * 17], [[0.0] * 20], ["nDCG@10"])["nDCG@10"]
        assert got["ndcg@10"] == pytest.approx(tied.expected)
        assert got["ndcg@10_range"] == pytest.approx(tied.range)
        original = theirs.RerankingEvaluator(make_samples(), similarity_fct=constant)(encoder)
        assert_bias_matches(got, original)
        assert abs(got["mrr@10_bias"]) > 0.1


class TestInformationRetrieval:
    def test_values_match_the_original_without_ties(self, fp32_encoder, tmp_path):
        cutoffs = {"map_at_k": [3, 100], "ndcg_at_k": [5, 10], "corpus_chunk_size": 17}
        found = {}
        for module in (ours, theirs):
            evaluator = module.InformationRetrievalEvaluator(
                *make_collection(), name="dev", **cutoffs
            )
            path = tmp_path / module.__name__
            found[module] = evaluator(fp32_encoder, str(path), 1, 2), evaluator, path
        mine, other = found[ours], found[theirs]
        assert_matches(mine[0], other[0])
        assert mine[1].primary_metric == other[1].primary_metric == "dev_cosine_ndcg@10"
        ((a,), (b,)) = (list(each[2].iterdir()) for each in (mine, other))
        assert a.name == b.name
        (header, row), (their_header, their_row) = map(read_csv, (a, b))
        assert header == their_header
        assert list(map(float, row)) == pytest.approx(list(map(float, their_row)))

    def test_model_card_matches_the_original(self, fp32_encoder):
        cards = []
        for module in (ours, theirs):
            evaluator = module.InformationRetrievalEvaluator(*make_collection(), name="dev")
            evaluator(fp32_encoder)
            cards.append(fp32_encoder.model_card_data.eval_results_dict.pop(evaluator))
        assert cards[0] == pytest.approx(cards[1])

    @pytest.mark.parametrize("chunk", [1000, 50])
    def test_ties_beyond_the_last_kept_document_count(self, chunk):
        """Embeddings of small integers: each cutoff is inside a large tie group."""
        queries, corpus, relevant = make_collection(unique=False)
        rng = np.random.default_rng(5)
        vectors = {text: rng.integers(0, 3, 2) for text in [*queries.values(), *corpus.values()]}
        model = FixedEmbeddings(vectors)
        evaluator = ours.InformationRetrievalEvaluator(
            queries,
            corpus,
            relevant,
            corpus_chunk_size=chunk,
            map_at_k=[10],
            score_functions={"dot": dot},
        )
        got = evaluator(model)
        run = {
            q: {d: float(vectors[text] @ vectors[other]) for d, other in corpus.items()}
            for q, text in queries.items()
            if relevant[q]
        }
        assert_exact(got, "dot", relevant, run)
        assert got["dot_ndcg@10"] == evaluator.results["dot"]["nDCG@10"].expected
        original = theirs.InformationRetrievalEvaluator(
            queries, corpus, relevant, map_at_k=[10], score_functions={"dot": dot}
        )(model)
        assert original["dot_ndcg@10"] != pytest.approx(got["dot_ndcg@10"])
        if ORDERS_TIES_BY_ID:
            assert_bias_matches(got, original)

    def test_ids_may_be_numbers(self):
        data = {"q": "same"}, dict.fromkeys(reversed(range(10)), "same"), {"q": {2}}
        evaluator = ours.InformationRetrievalEvaluator(*data, score_functions={"dot": dot})
        got = evaluator(FixedEmbeddings({"same": np.ones(2)}))
        assert got["dot_mrr@10"] + got["dot_mrr@10_bias"] == pytest.approx(1 / 3)

    def test_written_predictions_match_the_original(self, fp32_encoder, tmp_path):
        written = []
        for module in (ours, theirs):
            path = tmp_path / module.__name__
            evaluator = module.InformationRetrievalEvaluator(
                *make_collection(), write_predictions=True
            )
            written.append((evaluator(fp32_encoder, str(path)), next(path.glob("*.jsonl"))))
        (mine, a), (other, b) = written
        assert_matches(mine, other)
        assert a.name == b.name
        first, second = (path.read_text().splitlines() for path in (a, b))
        assert list(map(json.loads, first)) == list(map(json.loads, second))

    @pytest.mark.parametrize("regime", ["native", "hps"])
    def test_regime_option(self, encoder, regime):
        got = ours.InformationRetrievalEvaluator(*make_collection(), regime=regime)(encoder)
        view = regime_view(encoder, regime)
        assert got == ours.InformationRetrievalEvaluator(*make_collection())(view)
        assert (got["cosine_ndcg@10_range"] > 0) == (regime == "native")

    def test_precomputed_embeddings(self, fp32_encoder):
        queries, corpus, relevant = make_collection()
        evaluator = ours.InformationRetrievalEvaluator(queries, corpus, relevant)
        embeddings = fp32_encoder.encode_document(list(corpus.values()), convert_to_tensor=True)
        expected = evaluator(fp32_encoder)
        assert evaluator(fp32_encoder, corpus_embeddings=embeddings) == pytest.approx(
            expected, abs=1e-6
        )


class RoundEmbeddings(torch.nn.Module):
    """Round token embeddings to small integers, so that scores tie and every sum is exact."""

    def forward(self, features):
        features["token_embeddings"] = (2 * features["token_embeddings"][..., :4]).round()
        return features


@pytest.fixture(scope="module")
def sparse():
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding

    tokenizer = tiny_models.bert_tokenizer()
    weight = torch.from_numpy(np.random.default_rng(3).integers(1, 4, len(tokenizer))).float()
    return st.SparseEncoder(modules=[SparseStaticEmbedding(tokenizer, weight)], device="cpu")


@pytest.fixture(scope="module")
def multi_vector(checkpoints):
    if not hasattr(st, "MultiVectorEncoder"):
        pytest.skip("sentence-transformers has a MultiVectorEncoder from 6.0 on")
    model = st.MultiVectorEncoder(checkpoints["encoder"], device="cpu").eval()
    model.append(RoundEmbeddings())
    return model


@pytest.mark.parametrize("kind", ["Sparse", "MultiVector"])
class TestOtherEncoders:
    @pytest.fixture
    def model(self, kind, request):
        return request.getfixturevalue({"Sparse": "sparse", "MultiVector": "multi_vector"}[kind])

    @pytest.fixture
    def data(self):
        return make_collection(unique=False)

    def evaluator(self, kind, module, data, **options):
        return getattr(module, f"{kind}InformationRetrievalEvaluator")(*data, **options)

    def their_module(self, kind):
        name = {"Sparse": "sparse_encoder", "MultiVector": "multi_vector_encoder"}[kind]
        return importlib.import_module(f"sentence_transformers.{name}.evaluation")

    @pytest.mark.parametrize("chunk", [1000, 50])
    @pytest.mark.parametrize("precomputed", [False, True])
    def test_views_cover_the_whole_corpus(self, kind, model, data, chunk, precomputed):
        queries, corpus, relevant = data
        options = {"corpus_chunk_size": chunk, "map_at_k": [10]}
        documents = model.encode_document(list(corpus.values()))
        call = {"corpus_embeddings": documents} if precomputed else {}
        got = self.evaluator(kind, ours, data, **options)(model, **call)
        scores = model.similarity(model.encode_query(list(queries.values())), documents)
        run = {
            query: dict(zip(corpus, row, strict=True))
            for query, row in zip(queries, scores.tolist(), strict=True)
            if relevant[query]
        }
        name = model.similarity_fn_name
        assert_exact(got, name, relevant, run)
        original = self.evaluator(kind, self.their_module(kind), data, **options)(model, **call)
        assert {key for key in got if not key.endswith(VIEWS)} == set(original)
        if ORDERS_TIES_BY_ID:
            assert_bias_matches(
                got, {key: original[key] for key in original if key.startswith(name)}
            )
        if kind == "Sparse":
            assert got["corpus_active_dims"] == original["corpus_active_dims"] > 0
            assert got["avg_flops"] == pytest.approx(original["avg_flops"])

    def test_files_and_card_match_the_original(self, kind, model, data, tmp_path):
        found = []
        for module in (ours, self.their_module(kind)):
            path = tmp_path / module.__name__
            evaluator = self.evaluator(kind, module, data, name="dev", write_predictions=True)
            evaluator(model, str(path))
            card = model.model_card_data.eval_results_dict.pop(evaluator)
            written = sorted(path.iterdir())
            texts = [file.read_text().splitlines() for file in written]
            found.append((evaluator, set(card), [f.name for f in written], texts))
        (mine, *our_files), (other, *their_files) = found
        assert our_files[:2] == their_files[:2]
        assert mine.primary_metric == other.primary_metric
        assert mine.description == other.description
        (predictions, csv_), (their_predictions, their_csv) = our_files[2], their_files[2]
        assert csv_[0] == their_csv[0]
        assert len(csv_[1].split(",")) == len(their_csv[1].split(","))
        if ORDERS_TIES_BY_ID:
            assert predictions == their_predictions


def test_multi_vector_encoder_in_high_precision(checkpoints, multi_vector):
    """The library adds up MaxSim in FP32, but multiplies embeddings in the model's dtype."""
    model = st.MultiVectorEncoder(checkpoints["encoder"], device="cpu").to(torch.bfloat16).eval()
    view = dh.high_precision(model)  # does not warn, because it changes scores
    texts = sorted(set(TEXTS))
    embedded = model.encode_document(texts), view.encode_document(texts)
    assert [each[0].dtype for each in embedded] == [torch.bfloat16, torch.float32]
    low, high = (model.similarity(each, each) for each in embedded)
    assert len(low.unique()) < len(high.unique())
    assert torch.equal(view.similarity(embedded[0], embedded[0]), high)
    data = make_collection()
    got = ours.MultiVectorInformationRetrievalEvaluator(*data, regime="hps")(model)
    expected = ours.MultiVectorInformationRetrievalEvaluator(*data)(view)
    assert got == expected != ours.MultiVectorInformationRetrievalEvaluator(*data)(model)
    with pytest.raises(InputError, match="MultiVectorEncoder in low precision"):
        ours.MultiVectorInformationRetrievalEvaluator(*data, regime="native")(model)


def test_required_version_for_multi_vector_encoders_is_named(monkeypatch):
    module = "deadheat.integrations.sentence_transformers.multi_vector"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(dh.MissingPackageError, match="needs the package 'sentence-transformers>=6"):
        importlib.import_module(module)


class TestQuantised:
    def test_binary_scores_count_dimensions(self):
        q, d = torch.tensor([[0.5, -0.1, 0.2]]), torch.tensor([[0.1, -3.0, -1.0], [1.0, 1.0, 1.0]])
        assert ours.quantised("binary")(q, d).tolist() == [[-1, -1]]
        rescored = ours.quantised("binary", rescore=True)(q, d)
        torch.testing.assert_close(rescored, torch.tensor([[0.4, 0.6]]))

    def test_int8_scores_are_exact_products_of_codes(self):
        rng = np.random.default_rng(0)
        q, d = (torch.from_numpy(rng.normal(size=(n, 64))).float() for n in (3, 50))
        least, largest = d.amin(0), d.amax(0)
        score = ours.quantised("int8")
        found = score(q, d)
        codes = [
            (((x - least) / ((largest - least) / 255)).round().clamp(0, 255) - 128).double()
            for x in (q, d)
        ]
        assert torch.equal(found.double(), codes[0] @ codes[1].T)
        assert torch.equal(score(q, d[:7]), found[:, :7])  # the ranges of the first call are kept
        score_in_ranges = ours.quantised("int8", ranges=torch.stack([least, largest]))
        assert torch.equal(score_in_ranges(q, d[:7]), score(q, d[:7]))

    def test_quantised_scores_in_an_evaluator(self):
        functions = {
            "binary": ours.quantised("binary"),
            "rescored": ours.quantised("binary", rescore=True),
            "int8": ours.quantised("int8"),
        }
        # Fixed embeddings, because the vocabulary of a tiny model differs each time it is created.
        rng = np.random.default_rng(4)
        vectors = {text: rng.normal(size=8) for text in TEXTS}
        evaluator = ours.InformationRetrievalEvaluator(
            *make_collection(), score_functions=functions
        )
        got = evaluator(FixedEmbeddings(vectors))
        assert got["binary_ndcg@10_range"] > got["rescored_ndcg@10_range"]
        assert got["binary_ndcg@10_range"] > got["int8_ndcg@10_range"]

    def test_unknown_precision_is_refused(self):
        with pytest.raises(InputError, match="binary, int8, not 'int4'"):
            ours.quantised("int4")


class TestNanoBEIR:
    @pytest.fixture(autouse=True)
    def offline(self, monkeypatch):
        queries, corpus, relevant = make_collection()

        def load(self, subset, split, required_columns):
            shift = 3 * (split == "NanoSCIDOCS")
            texts = {"queries": queries, "corpus": corpus}
            if subset in texts:
                rows = [{"_id": i, "text": text} for i, text in texts[subset].items()]
                return rows[shift:] if subset == "corpus" else rows
            return [{"query-id": q, "corpus-id": sorted(ids)} for q, ids in relevant.items() if ids]

        monkeypatch.setattr(theirs.NanoBEIREvaluator, "_load_dataset_subset_split", load)

    def test_values_match_the_original_without_ties(self, fp32_encoder):
        names = ["msmarco", "scidocs"]
        mine, other = (m.NanoBEIREvaluator(names) for m in (ours, theirs))
        assert_matches(mine(fp32_encoder), other(fp32_encoder))
        assert mine.primary_metric == other.primary_metric == "NanoBEIR_mean_cosine_ndcg@10"

    def test_views_of_the_mean(self, encoder):
        got = ours.NanoBEIREvaluator(["msmarco", "scidocs"], regime="native")(encoder)
        stds = [got[f"Nano{name}_cosine_ndcg@10_tie_std"] for name in ("MSMARCO", "SCIDOCS")]
        assert min(stds) > 0
        assert got["NanoBEIR_mean_cosine_ndcg@10_tie_std"] == pytest.approx(np.hypot(*stds) / 2)
        ranges = [got[f"Nano{name}_cosine_ndcg@10_range"] for name in ("MSMARCO", "SCIDOCS")]
        assert got["NanoBEIR_mean_cosine_ndcg@10_range"] == pytest.approx(np.mean(ranges))
        biases = [got[f"Nano{name}_cosine_ndcg@10_bias"] for name in ("MSMARCO", "SCIDOCS")]
        assert got["NanoBEIR_mean_cosine_ndcg@10_bias"] == pytest.approx(np.mean(biases))


class TestTraining:
    """A short training run selects the best checkpoint by the expected value."""

    def train(self, trainer_class, arguments_class, loss, evaluator, metric, data, folder):
        arguments = arguments_class(
            output_dir=str(folder),
            num_train_epochs=3,
            per_device_train_batch_size=8,
            learning_rate=1e-3,
            eval_strategy="epoch",
            save_strategy="epoch",
            load_best_model_at_end=True,
            metric_for_best_model=f"eval_{metric}",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        options = {"train_dataset": data, "loss": loss, "evaluator": evaluator}
        trainer = trainer_class(loss.model, arguments, **options)
        trainer.train()
        history = [entry for entry in trainer.state.log_history if f"eval_{metric}" in entry]
        logged = [entry[f"eval_{metric}"] for entry in history]
        assert len(logged) == 3
        assert trainer.state.best_metric == max(logged)
        assert evaluator.primary_metric == metric
        assert evaluator(loss.model)[metric] == pytest.approx(
            max(logged)
        )  # the best checkpoint is loaded
        assert f"eval_{metric}_range" in history[0]

    def test_train_reranker(self, checkpoints, tmp_path):
        from sentence_transformers.cross_encoder import (
            CrossEncoderTrainer,
            CrossEncoderTrainingArguments,
            losses,
        )

        model = st.CrossEncoder(checkpoints["reranker"], device="cpu")
        evaluator = ours.CrossEncoderRerankingEvaluator(make_samples(), name="dev")
        rows = [
            (sample["query"], text, float(text in sample["positive"]))
            for sample in make_samples(4)
            for text in sample["positive"] + sample["negative"][:3]
        ]
        self.train(
            CrossEncoderTrainer,
            CrossEncoderTrainingArguments,
            losses.BinaryCrossEntropyLoss(model),
            evaluator,
            "dev_ndcg@10",
            make_dataset(rows, "query", "text", "label"),
            tmp_path,
        )

    def test_train_bi_encoder(self, checkpoints, tmp_path):
        from sentence_transformers import (
            SentenceTransformerTrainer,
            SentenceTransformerTrainingArguments,
        )
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

        model = st.SentenceTransformer(checkpoints["encoder"], device="cpu")
        queries, corpus, relevant = make_collection()
        evaluator = ours.InformationRetrievalEvaluator(queries, corpus, relevant, name="dev")
        rows = [
            (queries[query], corpus[document])
            for query, documents in relevant.items()
            for document in sorted(documents & set(corpus))
        ]
        self.train(
            SentenceTransformerTrainer,
            SentenceTransformerTrainingArguments,
            MultipleNegativesRankingLoss(model),
            evaluator,
            "dev_cosine_ndcg@10",
            make_dataset(rows, "anchor", "positive"),
            tmp_path,
        )


def dot(a, b):
    return torch.as_tensor(a).float() @ torch.as_tensor(b).float().T


class FixedEmbeddings(FixedModel):
    """A model that returns a fixed embedding for each text."""

    def __init__(self, vectors):
        super().__init__()
        self.vectors = vectors

    def encode(self, texts, **_):
        return torch.from_numpy(np.stack([self.vectors[text] for text in texts])).float()

    encode_query = encode_document = encode
