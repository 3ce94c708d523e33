"""Provenance keeps its values through JSON and rejects invalid data."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from deadheat.errors import InputError
from deadheat.provenance import (
    DatasetProvenance,
    InputFacts,
    ModelProvenance,
    Provenance,
    ScoreFacts,
    ScoringProvenance,
)
from deadheat.settings import EvalSettings

MODEL = ModelProvenance(
    model="a/b",
    revision="sha256:0",
    kind="bi-encoder",
    model_dtype="bf16",
    device="cpu",
    batch_size=16,
    max_length=512,
    attn_implementation="sdpa",
    trust_remote_code=False,
    normalised=True,
    pooling="mean, Normalize",
    prompt={"query": "query: "},
    versions={"torch": "2.13.0"},
)
FULL = Provenance(
    run="a/b bf16 hps",
    settings=EvalSettings(tie_tolerance=0.25),
    dataset=DatasetProvenance("c/d", subset="en", split="dev", left_out={"empty queries": 2}),
    model=MODEL,
    scoring=ScoringProvenance("hps", "bf16", "fp32", "cosine", "torch", 2),
    inputs={"queries": InputFacts(3, truncated=1, halved={"0": 2})},
    scores=ScoreFacts(30, 20, 4),
    versions={"deadheat": "0.1.0"},
)


@pytest.mark.parametrize("provenance", [Provenance(), FULL])
def test_json_round_trip(provenance):
    assert Provenance.from_dict(json.loads(json.dumps(provenance.to_dict()))) == provenance


def test_flat_names():
    flat = FULL.flat()
    assert flat["model.normalised"] == "True"
    assert flat["inputs.queries.halved.0"] == "2"
    assert "dataset.revision" not in flat  # not known
    assert FULL.judgements == "c/d en dev"
    assert replace(FULL, dataset=None, qrels="q.txt").judgements == "q.txt"


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.update(model="a/b"),
        lambda data: data.update(unheard_of=1),
        lambda data: data["model"].pop("batch_size"),
        lambda data: data["model"].update(batch_size="16"),
        lambda data: data["model"].update(normalised=1),
        lambda data: data["inputs"].update(queries=[]),
        lambda data: data.update(versions=["2.13"]),
        lambda data: data.update(run={"path": "/etc/passwd"}),
    ],
)
def test_invalid_data_is_rejected(damage):
    data = FULL.to_dict()
    damage(data)
    with pytest.raises(InputError, match=r"Provenance.*this version of deadheat"):
        Provenance.from_dict(data)


def test_list_is_rejected():
    with pytest.raises(InputError, match=r"Provenance .*\[\]"):
        Provenance.from_dict([])
