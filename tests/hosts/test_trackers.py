"""Trackers: the values of `flat` can be logged and read back unchanged."""

from __future__ import annotations

import time

import pytest
from needed import import_host

import deadheat as dh

mlflow = import_host("trackers")

# Warnings of the host libraries are not under test.
pytestmark = pytest.mark.filterwarnings("default")

MEASURES = ["nDCG@10", "MAP(divisor='min', rel=1)@3", "R-Precision", "RBP(p=0.95)", "ERR"]


@pytest.fixture
def result():
    run = {"q1": {"d1": 0.5, "d2": 0.5, "d3": 0.25}, "q2": {"d1": 0.5, "d2": 0.75}}
    return dh.evaluate({"q1": {"d1": 1, "d3": 2}, "q2": {"d1": 1}}, run, MEASURES)


def test_mlflow(result, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    try:
        with mlflow.start_run() as run:
            mlflow.log_metrics(result.flat("dev/", plain=True), step=3)
            mlflow.log_dict(result.to_dict(), "result.json")
        client = mlflow.MlflowClient()
        logged = client.get_run(run.info.run_id)
        assert logged.data.metrics == result.flat("dev/", plain=True)
        (point,) = client.get_metric_history(run.info.run_id, "dev/nDCG_at_10")
        assert point.step == 3 and point.value == result["nDCG@10"].expected
        stored = mlflow.artifacts.load_dict(logged.info.artifact_uri + "/result.json")
        assert dh.Result.from_dict(stored).flat() == result.flat()
        with mlflow.start_run(), pytest.raises(mlflow.MlflowException, match="Names may only"):
            mlflow.log_metrics(result.flat())
    finally:
        mlflow.set_tracking_uri(before)


def test_tensorboard(result, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for name, value in result.flat("dev/").items():
            writer.add_scalar(name, value, 3)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    logged = {name: events.Scalars(name)[0].value for name in events.Tags()["scalars"]}
    assert logged == pytest.approx(result.flat("dev/"), rel=1e-6)  # TensorBoard keeps float32
    assert events.Scalars("dev/nDCG@10")[0].step == 3


def test_weights_and_biases(result, tmp_path, monkeypatch):
    import wandb

    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)  # wandb always writes its own log here
    with wandb.init(project="deadheat", dir=str(tmp_path), mode="offline") as run:
        run.log(result.flat("dev/", plain=True))
        summary = dict(run.summary)
    logged = {name: value for name, value in summary.items() if not name.startswith("_")}
    assert logged == result.flat("dev/", plain=True)
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    deadline = time.monotonic() + 20  # another process writes the file
    while b"dev/nDCG_at_10_range" not in file.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_plain_names_are_valid_in_every_tracker(result):
    import re

    for name in result.flat(plain=True):
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
