"""A cross-encoder as an FP16 graph in ONNX Runtime, with its last layer in FP16 and in FP32.

Needs `pip install '.[models,onnx]'`. Nothing is downloaded: the script creates a tiny model with
random weights.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from transformers import BertConfig, BertForSequenceClassification

from deadheat.scoring import head_logits

torch.manual_seed(0)
config = BertConfig(
    vocab_size=1000,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_labels=1,
)
model = BertForSequenceClassification(config).half().eval()
inputs = torch.randint(10, 1000, (2000, 12))


def run() -> np.ndarray:
    """Export the model to ONNX, and return the output of its graph for the inputs."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns that it is deprecated
        path = str(Path(folder, "model.onnx"))
        torch.onnx.export(model, (inputs,), path, input_names=["input_ids"], dynamo=False)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        output: np.ndarray = session.run(None, {"input_ids": inputs.numpy()})[0]
    return output


print("FP16 graph:", len(np.unique(run())), "distinct logits of", len(inputs))
head = model.classifier
model.classifier = torch.nn.Identity()  # the graph returns the input of the last layer
weight, bias = (parameter.detach().float().numpy() for parameter in (head.weight, head.bias))
print("last layer in FP32:", len(np.unique(head_logits(run(), weight, bias))), "distinct logits")
