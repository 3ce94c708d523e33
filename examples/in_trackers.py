"""Log results of a reranker in two precisions to MLflow, TensorBoard and Weights & Biases, offline.

Needs `pip install mlflow-skinny tensorboard torch wandb`. The scores are synthetic.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
os.environ["WANDB_SILENT"] = "true"

import ml_dtypes
import mlflow
import numpy as np
import wandb
from torch.utils.tensorboard import SummaryWriter

import deadheat as dh

folder = Path(tempfile.mkdtemp())
mlflow.set_tracking_uri((folder / "mlruns").as_uri())
rng = np.random.default_rng(0)
relevance = rng.random((50, 100)) < 0.05
logits = (rng.normal(size=(50, 100)) + 2 * relevance).astype(np.float32)
for precision in (np.float32, ml_dtypes.bfloat16):
    scores = (1 / (1 + np.exp(-logits))).astype(precision)
    result = dh.evaluate_arrays(relevance, scores, ["nDCG@10", "MRR@10"])
    name = np.dtype(precision).name
    with mlflow.start_run(run_name=name):
        mlflow.log_metrics(result.flat(plain=True))
    with SummaryWriter(str(folder / "tensorboard" / name)) as writer:
        for tag, value in result.flat().items():
            writer.add_scalar(tag, value)
    with wandb.init(project="precision", name=name, dir=str(folder), mode="offline") as run:
        run.log(result.flat(plain=True))

table = mlflow.search_runs(output_format="list")
for logged in reversed(table):
    metrics = logged.data.metrics
    print(f"{logged.info.run_name:9} {metrics['nDCG_at_10']:.4f} ± {metrics['nDCG_at_10_std']:.4f}")
