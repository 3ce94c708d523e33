"""Studies of tiny models, with every regime compared with an independent computation."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")

import tiny_models as tiny  # noqa: E402
from experiment_folders import (  # noqa: E402
    EMPTY,
    MEASURES,
    QRELS,
    QUERIES,
    TEXTS,
    TOP_RANKED,
    TWIN,
    made,
)
from model_outputs import outputs_of  # noqa: E402

import deadheat as dh  # noqa: E402
from deadheat.cli import main  # noqa: E402
from deadheat.evaluation.corpus import chunks as corpus_chunks  # noqa: E402
from deadheat.lab.experiment import Study, derive, load_results, run_study  # noqa: E402
from deadheat.lab.models import load_model  # noqa: E402
from deadheat.provenance import ScoreFacts, ScoringProvenance  # noqa: E402
from deadheat.scoring import REGIMES  # noqa: E402

__all__ = ["made"]

JUDGEMENTS: dict[str, dict[str, int]] = {}
for row in QRELS:
    JUDGEMENTS.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
LISTS = {row["query-id"]: [doc for doc in row["corpus-ids"] if doc != EMPTY] for row in TOP_RANKED}
QUERY_TEXT = {row["_id"]: row["text"] for row in QUERIES}
PAIRS = [(query, doc) for query, docs in LISTS.items() for doc in docs]


def get_text(doc: str) -> str:
    return TEXTS[int(doc[1:])]


def build_study(made, kind, **changes):
    options = {"model_dtypes": ["bf16"], "measures": MEASURES, "batch_size": 4, **changes}
    return Study.of(models=[made[kind]], datasets=[made["data"]], **options)


def run_and_load(made, kind, folder, **changes):
    """Run one model and return its results by model dtype and regime."""
    assert run_study(build_study(made, kind, **changes), folder) == []
    return {(each.model_dtype, each.regime): each for each in load_results(folder)}


def sigmoid64(logits):
    return (1 / (1 + np.exp(-logits.double().numpy()))).astype(np.float32)


@pytest.mark.parametrize("kind", ["sigmoid", "softmax", "yes-no"])
def test_reranker_regimes_match_an_independent_computation(made, kind, tmp_path):
    dtypes = ["bf16", "fp32"]
    results = run_and_load(made, kind, tmp_path / "out", model_dtypes=dtypes, regimes=list(REGIMES))
    in_fp32 = [("fp32", "native"), ("fp32", "hps-logit")]
    assert list(results) == [("bf16", regime) for regime in REGIMES] + in_fp32
    texts = [(QUERY_TEXT[query], get_text(doc)) for query, doc in PAIRS]
    for dtype in ("bf16", "fp32"):
        model = load_model(made[kind], model_dtype=dtype, device="cpu", batch_size=4)
        output, head = outputs_of(model, texts, with_hidden=True), model.head()
        logits = output.logits
        exact = output.hidden.float() @ head.weight.float().T
        exact = exact if head.bias is None else exact + head.bias.float()
        if kind == "sigmoid":
            native = logits.sigmoid().float().numpy()[:, 0]
            odds, head_odds = logits.float()[:, 0], exact[:, 0]
        else:
            native = logits.softmax(dim=1)[:, 1].float().numpy()
            # The softmax of two logits is the sigmoid of their exact difference.
            odds, head_odds = (z[:, 1].double() - z[:, 0].double() for z in (logits, exact))
        hps = sigmoid64(odds)
        expected_scores = {
            "native": native if dtype == "bf16" else hps,
            "hps": hps,
            "head": sigmoid64(head_odds),
            "hps-logit": odds.float().numpy(),
            "head-logit": head_odds.float().numpy(),
        }
        for (model_dtype, regime), stored in results.items():
            if model_dtype != dtype:
                continue
            scores = stored.scores()
            assert list(zip(scores["query_id"], scores["doc_id"], strict=True)) == PAIRS
            # Sums of the head depend on the batch shape. Native BF16 scores must be equal.
            tolerance = 1e-6 if regime.startswith("head") else 1e-7
            rtol, atol = (tolerance, 0) if "logit" not in regime else (0, tolerance)
            rtol = 0 if (dtype, regime) == ("bf16", "native") else rtol
            np.testing.assert_allclose(
                scores["score"], expected_scores[regime], rtol=rtol, atol=atol
            )
            lists = {query: {} for query in LISTS}
            for query, doc, value in scores.iter_rows():
                lists[query][doc] = value
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dh.DeadheatWarning)
                expected = dh.evaluate(JUDGEMENTS, lists, MEASURES)
            assert stored.result.warnings == expected.warnings
            for measure in MEASURES:
                assert stored.result[measure] == expected[measure]
            sizes = scores.group_by("query_id", "score").len()["len"]
            assert stored.ties == ScoreFacts(len(PAIRS), len(sizes), sizes.max())


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_products_match_an_independent_computation(made, similarity, tmp_path):
    model = {"name": made["product"], "similarity": similarity}
    options = {"models": [model], "datasets": [made["data"]], "model_dtypes": ["bf16", "fp32"]}
    assert run_study(Study.of(**options, measures=MEASURES, batch_size=4), tmp_path / "out") == []
    results = {(each.model_dtype, each.regime): each for each in load_results(tmp_path / "out")}
    assert list(results) == [("bf16", "native"), ("bf16", "hps"), ("fp32", "native")]
    encoder = load_model(made["product"], model_dtype="bf16", device="cpu", batch_size=4)
    documents = sorted({doc for _, doc in PAIRS}, key=lambda doc: int(doc[1:]))
    texts = list(dict.fromkeys(map(get_text, documents)))  # each is encoded once
    vectors = outputs_of(encoder, texts, "document").vectors
    query_vectors = outputs_of(encoder, list(QUERY_TEXT.values()), "query").vectors
    products = query_vectors.double() @ vectors.double().T
    if similarity == "cosine":
        products /= query_vectors.double().norm(dim=1, keepdim=True) * vectors.double().norm(dim=1)
    rows = {query: i for i, query in enumerate(QUERY_TEXT)}
    exact = [float(products[rows[q], texts.index(get_text(doc))]) for q, doc in PAIRS]
    np.testing.assert_allclose(results["bf16", "hps"].scores()["score"], exact, rtol=1e-5)
    native = results["bf16", "native"].scores()["score"].to_numpy()
    np.testing.assert_allclose(native, exact, rtol=2**-5)  # BF16 norms, products and sums
    assert np.array_equal(torch.tensor(native).bfloat16().float().numpy(), native)
    assert set(results["bf16", "hps"].outputs()) == {"queries", "documents"}


@pytest.mark.parametrize(("normalize", "function"), [(True, "dot"), (False, "cosine")])
def test_default_similarity_depends_on_normalisation(made, tmp_path, normalize, function):
    encoder = tiny.bert_encoder(tmp_path / "encoder")
    tiny.add_pooling(encoder, "mean", normalize=normalize)
    results = run_and_load({**made, "product": str(encoder)}, "product", tmp_path / "out")
    provenance = results["bf16", "hps"].result.provenance
    assert provenance.scoring.function == function
    assert provenance.model.normalised is normalize


@pytest.mark.parametrize("depth", [None, 3])
def test_progress_is_reported_while_a_full_corpus_is_counted(made, tmp_path, depth):
    calls = []
    study = build_study(made, "product", candidates="full", depth=depth)
    assert run_study(study, tmp_path, progress=lambda *step: calls.append(step)) == []
    documents = len(TEXTS) - 1
    for regime in ("native", "hps"):
        steps = [step for step in calls if step[0].endswith(f": {regime}, counting")]
        assert steps[-1][1:] == (documents, documents)


@pytest.mark.parametrize(("block", "chunk"), [(1 << 20, 1 << 20), (5, 8), (1, 1)])
def test_full_corpus_in_blocks_matches_evaluate(made, tmp_path, monkeypatch, block, chunk):
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, block)
    monkeypatch.setattr(derive, "CHUNK", chunk)
    options = {"candidates": "full", "measures": [*MEASURES, "Judged@5"]}
    results = run_and_load(made, "product", tmp_path, **options)
    for stored in results.values():
        scores = stored.scores()
        assert len(scores) == len(QUERIES) * (len(TEXTS) - 1)
        run = {query: {} for query in QUERY_TEXT}
        for query, doc, value in scores.iter_rows():
            run[query][doc] = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dh.DeadheatWarning)
            expected = dh.evaluate(JUDGEMENTS, run, options["measures"])
        assert stored.result.query_ids == expected.query_ids
        for measure in options["measures"]:
            assert stored.result[measure] == expected[measure]
        sizes = scores.group_by("query_id", "score").len()["len"]
        assert stored.ties == ScoreFacts(len(scores), len(sizes), sizes.max())
        assert stored.result.remarks == tuple(
            remark for remark in expected.remarks if "tie group" not in remark.pattern
        )  # lists of a full corpus are not cut


@pytest.mark.parametrize("candidates", ["given", "full"])
def test_documents_with_the_same_text_are_encoded_once_and_tie(made, tmp_path, candidates):
    results = run_and_load(made, "product", tmp_path, candidates=candidates)
    for stored in results.values():
        assert len(stored.outputs()["documents"]) == len(set(TEXTS)) - 1  # without the empty text
        assert stored.result.provenance.inputs["documents"].count == len(set(TEXTS)) - 1
        scores = stored.scores()
        twins = scores.filter(doc_id=TWIN)["score"].to_list()
        assert twins == scores.filter(doc_id="d1")["score"].to_list()
        assert len(twins) == len(QUERIES)


def test_very_long_run_is_evaluated_but_not_written(made, tmp_path, monkeypatch):
    monkeypatch.setattr(derive, "LONGEST_RUN", 0)
    results = run_and_load(made, "product", tmp_path, candidates="full")
    with pytest.raises(dh.InputError, match="too long to be stored"):
        results["bf16", "hps"].scores()
    assert results["bf16", "hps"].result["MRR"].expected > 0


def test_depth_cuts_lists_of_a_full_corpus(made, tmp_path):
    full = run_and_load(made, "product", tmp_path / "full", candidates="full")
    cut = run_and_load(made, "product", tmp_path / "cut", candidates="full", depth=4)
    for key in full:
        kept = cut[key].scores()
        for (query,), scores in full[key].scores().group_by("query_id", maintain_order=True):
            best = scores.sort("score", descending=True, maintain_order=True).head(4)
            assert kept.filter(query_id=query).rows() == best.rows()


def test_full_corpus_with_a_reranker_fails(made, tmp_path):
    (failure,) = run_study(build_study(made, "sigmoid", candidates="full"), tmp_path)
    assert "choose --candidates bm25" in str(failure.error)


def test_bm25_candidates(made, tmp_path):
    pytest.importorskip("bm25s")
    results = run_and_load(made, "sigmoid", tmp_path / "out", candidates="bm25", depth=3)
    counts = results["bf16", "hps"].scores().group_by("query_id").len()["len"]
    # The empty document may be among the three.
    assert set(counts) <= {2, 3}
    dataset = results["bf16", "hps"].result.provenance.dataset
    assert dataset.candidates.startswith("bm25 top 3")


def test_scoring_dtypes_are_separate_regimes(made, tmp_path):
    results = run_and_load(
        made, "sigmoid", tmp_path / "out", regimes=[], scoring_dtypes=["fp16", "e5m2"]
    )
    assert [regime for _, regime in results] == ["scored-fp16", "scored-fp8_e5m2"]
    logits = results["bf16", "scored-fp16"].outputs()["logits"][:, 0]
    assert logits.dtype == torch.bfloat16
    scores = results["bf16", "scored-fp16"].scores()["score"].to_numpy()
    assert np.array_equal(scores, logits.half().sigmoid().float().numpy())
    assert results["bf16", "scored-fp16"].result.provenance.scoring.scoring_dtype == "fp16"


def test_eval_of_exported_runs_gives_the_same_values(made, tmp_path):
    for kind, candidates in (("softmax", "given"), ("product", "full")):
        folder = tmp_path / kind
        results = run_and_load(made, kind, folder, candidates=candidates)
        qrels = next(folder.glob("datasets/*/qrels.txt"))
        for stored in results.values():
            exported = stored.cell.path / "runs" / f"{stored.regime}.txt"
            args = ["eval", str(qrels), str(exported), "--format", "json", "--per-query"]
            args += [word for measure in MEASURES for word in ("-m", measure)]
            outcome = CliRunner().invoke(main, args)
            assert outcome.exit_code == 0, outcome.output
            evaluated = dh.Result.from_dict(json.loads(outcome.stdout)[0])
            assert evaluated.query_ids == [q.replace(" ", "%20") for q in stored.result.query_ids]
            for measure in MEASURES:
                assert evaluated[measure] == stored.result[measure]
            ranks = [int(line.split()[3]) for line in exported.read_text().splitlines()]
            assert ranks[:3] == [1, 2, 3]


def test_results_have_complete_provenance(made, tmp_path):
    (tmp_path / "out1").mkdir()
    # The brackets in the folder's name are not a glob pattern.
    results = run_and_load(made, "yes-no", tmp_path / "out[1]", max_length=180)
    stored = results["bf16", "head"]
    provenance = stored.result.provenance
    model, dataset = provenance.model, provenance.dataset
    assert (model.model_dtype, model.batch_size, model.max_length) == ("bf16", 4, 180)
    assert model.prompt["yes"] == "yes" and model.revision.startswith("sha256:")
    assert {"torch", "transformers"} <= set(model.versions)
    assert model.attn_implementation and model.device
    assert provenance.scoring == ScoringProvenance(
        "head", "bf16", "fp32", "softmax", "torch", torch.get_num_threads()
    )
    assert dataset.left_out == {"empty documents": 1, "empty candidates": 4}
    assert len(dataset.content_hash) == 64
    assert provenance.inputs["logits"].count == len(PAIRS)
    assert provenance.inputs["logits"].truncated > 0
    path = stored.cell.path / "results" / "head.json"
    assert dh.Result.from_json(path.read_text())["MRR"] == stored.result["MRR"]
    texts = stored.texts()
    assert texts.candidates == LISTS
    assert texts.provenance() == dataset
    assert len(stored.scores()) == len(PAIRS)
    assert set(stored.outputs()) == {"logits", "head_logits"}


def test_nan_logits_fail_with_the_name_of_the_input(made, tmp_path):
    broken = tmp_path / "broken"
    from safetensors.torch import load_file, save_file

    broken.mkdir()
    for path in Path(made["sigmoid"]).iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    weights = load_file(broken / "model.safetensors")
    weights["classifier.out_proj.bias"] += 70_000.0
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    (failure,) = run_study(
        Study.of(models=[str(broken)], datasets=[made["data"]], model_dtypes=["fp16"]),
        tmp_path / "out",
    )
    assert "NaN or infinity for input" in str(failure.error)
    assert "bf16" in str(failure.error)


def test_same_study_gives_identical_files(made, tmp_path):
    for name in ("one", "two"):
        run_and_load(made, "softmax", tmp_path / name)
    assert read_files(tmp_path / "one") == read_files(tmp_path / "two")


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files except the lock file, by relative path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def test_importing_experiment_does_not_import_torch():
    code = "import sys, deadheat.lab.experiment; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
