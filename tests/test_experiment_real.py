"""Studies of real checkpoints on parts of real collections."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from public_collections import write_cranfield, write_wikiqa  # noqa: E402

from deadheat.lab.experiment import Study, load_results, run_study  # noqa: E402

pytestmark = pytest.mark.slow


def run_and_load(folder: Path, model: Path | str, dataset: Path, **options):
    study = Study.of(
        models=[str(model)], datasets=[str(dataset)], measures=["nDCG@10", "MRR@10"], **options
    )
    assert run_study(study, folder) == []
    return {(each.model_dtype, each.regime): each for each in load_results(folder)}


def test_minilm_on_cranfield(shared, minilm, tmp_path):
    pytest.importorskip("bm25s")
    data = write_cranfield(shared / "cranfield", tmp_path / "cranfield")
    options = {"candidates": "bm25", "depth": 20, "limit": 10, "max_length": 64}
    results = run_and_load(tmp_path / "out", minilm, data, **options)
    assert list(results) == [("bf16", "native"), ("bf16", "hps"), ("fp32", "native")]
    native, hps, exact = results.values()
    assert native.ties.distinct < hps.ties.distinct == exact.ties.distinct == 200
    assert native.result["nDCG@10"].range >= hps.result["nDCG@10"].range == 0
    assert exact.result["nDCG@10"].expected > 0.2


def test_cross_encoder_on_wikiqa_matches_recorded_logits(shared, recorded, tmp_path):
    data = write_wikiqa(shared / "wikiqa", tmp_path / "wikiqa")
    model = shared / "models" / "wikiqa-cross-encoder"
    results = run_and_load(tmp_path / "out", model, data, limit=6)
    logits = pl.read_parquet(recorded / "cross-encoder-wikiqa.parquet")
    for (dtype, regime), full in ((("bf16", "head"), "bfloat16"), (("fp32", "native"), "float32")):
        scores = results[dtype, regime].scores()["score"].to_numpy()
        column = "head_logit" if regime == "head" else "logit"
        rows = logits.filter(model_dtype=full).head(len(scores))
        expected = torch.tensor(rows[column].to_list()).sigmoid().numpy()
        assert abs(scores - expected).max() < (0.03 if dtype == "bf16" else 0.003)
    ties = [results["bf16", regime].ties.distinct for regime in ("native", "hps", "head")]
    assert ties[0] <= ties[1] < ties[2]
    assert results["bf16", "head"].result["MRR@10"].range == 0


def test_smollm2_on_one_query(shared, smollm2, tmp_path, monkeypatch):
    settings = smollm2.provenance

    def load(name, *, model_dtype, batch_size, **_):
        assert (name, model_dtype, batch_size) == (
            settings.model,
            settings.model_dtype,
            settings.batch_size,
        )
        return smollm2

    monkeypatch.setattr("deadheat.lab.models.load_model", load)
    data = write_wikiqa(shared / "wikiqa", tmp_path / "wikiqa")
    results = run_and_load(
        tmp_path / "out",
        settings.model,
        data,
        limit=1,
        model_dtypes=["bf16"],
        batch_size=settings.batch_size,
    )
    native, hps, head = results.values()
    assert native.ties.distinct <= hps.ties.distinct < head.ties.distinct
    assert head.ties.largest == 1
    assert native.result.provenance.scoring.function == "softmax"
