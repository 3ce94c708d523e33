"""Count the distinct logits of a cross-encoder in ONNX Runtime: FP32, FP16 and dynamic INT8.

    python benchmarks/onnx_cross_encoder.py MODEL QUERIES DOCUMENTS [--pairs 560]

MODEL is a folder with a one-logit sequence classifier; QUERIES and DOCUMENTS are text files, one
text in each line; lines with the same number are a pair. Needs torch, transformers, onnx,
onnxscript, onnxruntime and onnxconverter-common. "head in FP32" computes the last layer from the
hidden state of the FP16 graph. The INT8 graph has FP32 activations between its layers.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnxconverter_common import float16
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import AutoModelForSequenceClassification, AutoTokenizer


class Logits(torch.nn.Module):
    """A classifier that returns its logits and the input of its last layer."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
        self.hidden = torch.empty(0)
        model.classifier.register_forward_pre_hook(self.keep_hidden)

    def keep_hidden(self, _: object, inputs: tuple[torch.Tensor, ...]) -> None:
        self.hidden = inputs[0]

    def forward(self, input_ids, attention_mask, token_type_ids):
        logits = self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).logits
        return logits, self.hidden


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("queries", type=Path)
    parser.add_argument("documents", type=Path)
    parser.add_argument("--pairs", type=int, default=560)
    arguments = parser.parse_args()
    texts = [
        path.read_text(encoding="utf-8").splitlines()[: arguments.pairs]
        for path in (arguments.queries, arguments.documents)
    ]
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    model = AutoModelForSequenceClassification.from_pretrained(
        arguments.model, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    batches = [
        tokenizer(*(part[i : i + 16] for part in texts), padding=True, return_tensors="np")
        for i in range(0, len(texts[0]), 16)
    ]
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder, f"{name}.onnx")) for name in ("FP32", "FP16", "INT8")}
        sample = tuple(torch.from_numpy(batches[0][name]) for name in names)
        axes = {name: {0: "batch", 1: "length"} for name in names}
        torch.onnx.export(
            Logits(model),
            sample,
            paths["FP32"],
            input_names=names,
            output_names=["logits", "hidden"],
            dynamic_axes={**axes, "logits": {0: "batch"}, "hidden": {0: "batch"}},
            opset_version=17,
            dynamo=False,
        )
        whole = onnx.load(paths["FP32"])
        onnx.save(float16.convert_float_to_float16(whole, keep_io_types=False), paths["FP16"])
        quantize_dynamic(paths["FP32"], paths["INT8"], weight_type=QuantType.QInt8)
        layer = model.classifier
        weight, bias = (p.detach().half().float().numpy() for p in (layer.weight, layer.bias))
        for name, path in paths.items():
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            outputs = [session.run(None, {n: batch[n] for n in names}) for batch in batches]
            logits = np.concatenate([each[0] for each in outputs]).ravel()
            hidden = np.concatenate([each[1] for each in outputs])
            found = f"{len(np.unique(logits))} distinct of {len(logits)} logits ({logits.dtype})"
            if name == "FP16":
                again = hidden.astype(np.float32) @ weight.T + bias
                found += f"; head in FP32: {len(np.unique(again))}"
            print(f"{name}: {found}")
    versions = f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}"
    different = len(set(zip(*texts, strict=True)))
    print(f"{versions}, torch {torch.__version__}; {different} distinct pairs")


if __name__ == "__main__":
    main()
