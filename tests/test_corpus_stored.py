"""Embeddings in safetensors files, read in chunks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from quiet import quiet

import deadheat as dh

pytest.importorskip("safetensors")
from safetensors.numpy import save_file


def store(folder: Path, parts, *, ids=None) -> Path:
    folder.mkdir(exist_ok=True)
    first = 0
    for number, vectors in enumerate(parts):
        path = folder / f"part-{number}.safetensors"
        save_file({"embeddings": vectors, "more": np.arange(3)}, path)
        if ids is not None:
            part_ids = ids[first : first + len(vectors)]
            (folder / f"part-{number}.ids.txt").write_text(
                "".join(f"{name}\n" for name in part_ids)
            )
        first += len(vectors)
    return folder


def example(dtype=np.float32):
    rng = np.random.default_rng(0)
    vectors = rng.integers(-2, 3, (300, 16)).astype(dtype)
    return rng.integers(-2, 3, (3, 16)).astype(dtype), vectors


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("torch", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8])
def test_stored_shards_match_the_corpus_in_memory(tmp_path, dtype, torch, named):
    query_vectors, vectors = example(dtype)
    ids = [f"d{d}" if named else str(d) for d in range(300)]
    folder = store(tmp_path / "e", np.split(vectors, [120, 121]), ids=ids if named else None)
    qrels = {f"q{q}": {ids[d]: 1 for d in (q, 130 + q, 299)} for q in range(3)}
    names, measures = list(qrels), ["MRR", "MAP", "nDCG@10"]
    whole = dh.evaluate_corpus(qrels, (names, query_vectors), [(ids, vectors)], measures)
    if torch:
        tensors = pytest.importorskip("torch")
        is_bf16 = dtype == ml_dtypes.bfloat16
        query_vectors = tensors.from_numpy(
            query_vectors.astype(np.float32) if is_bf16 else query_vectors
        )
        query_vectors = query_vectors.bfloat16() if is_bf16 else query_vectors
    shards = dh.evaluation.stored_shards(folder, chunk=50, torch=torch)
    assert [shard.documents for shard in shards] == [120, 1, 179]
    result = dh.evaluate_corpus(qrels, (names, query_vectors), shards, measures)
    assert result.views.keys() == whole.views.keys()
    for measure in measures:
        assert result[measure] == whole[measure]
    one = dh.evaluation.stored_shards(folder / "part-2.safetensors", tensor="embeddings")
    assert len(one) == 1


def truncate(folder):
    path = folder / "part-1.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def write_ids(n):
    def write(folder):
        (folder / "part-0.ids.txt").write_text("".join(f"a{d}\n" for d in range(200)))
        (folder / "part-1.ids.txt").write_text("".join(f"b{d}\n" for d in range(n)))

    return write


def replace_part(vectors):
    def write(folder):
        save_file({"embeddings": vectors}, folder / "part-1.safetensors")

    return write


WRONG = {
    "cut": (truncate, "part-1.safetensors cannot be read as safetensors"),
    "width": (replace_part(np.ones((2, 15), "f4")), "part-1.* width 15.*part-0.* 16"),
    "one dimension": (
        replace_part(np.ones(7, "f4")),
        r"part-1.*\[documents, width\].* embeddings F32 \[7\].*tensor=",
    ),
    "no header": (
        lambda f: (f / "part-1.safetensors").write_bytes(b"x" * 99),
        "part-1.safetensors cannot be read",
    ),
    "no json": (
        lambda f: (f / "part-1.safetensors").write_bytes(bytes(99)),
        "part-1.safetensors cannot be read",
    ),
    "type": (
        replace_part(np.ones((2, 16))),
        r"part-1.safetensors .*F32, F16.* embeddings F64 \[2, 16\]",
    ),
    "empty": (lambda folder: [path.unlink() for path in folder.iterdir()], "no .*safetensors file"),
    "few ids": (write_ids(3), r"part-1.ids.txt has 3 ids .*100 documents of part-1.safetensors"),
    "no ids": (write_ids(0), r"part-1.ids.txt has 0 ids .*100 documents of part-1.safetensors"),
    "ids of one part": (
        lambda folder: (folder / "part-0.ids.txt").write_text("a\n" * 200),
        r"part-1.safetensors .*no .*part-1.ids.txt",
    ),
    "many ids": (write_ids(101), "part-1.ids.txt has 101 ids .*100 documents"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_files_are_rejected(tmp_path, name):
    change, message = WRONG[name]
    query_vectors, vectors = example()
    folder = store(tmp_path / "e", [vectors[:200], vectors[200:]])
    change(folder)
    with pytest.raises(dh.InputError, match=message):
        quiet(dh.evaluate_corpus)(
            {"q": {"7": 1}},
            (["q"], query_vectors[:1]),
            dh.evaluation.stored_shards(folder),
            ["MRR"],
        )


def write_file(folder, header, data=b""):
    """Write a safetensors file with this header, given as an object or as bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = folder / "hostile.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(shape, dtype="F32", offsets=(0, 0)):
    return {"embeddings": {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}}


@pytest.mark.parametrize(
    "header",
    [
        entry([2**55, 0]),
        entry([0, 0]),
        entry([2.0, 16.0]),
        entry([-2, 16]),
        entry([True, 16]),
        entry([2**70, 1]),
        entry([2**62, 4], offsets=(0, 2**64)),
        entry([1, 4], offsets=(16, 0)),
        entry([1, 4], offsets=(-16, 0)),
        entry([1, 4], offsets=(0.0, 16.0)),
        entry([1, 4], offsets=(0, 16, 16)),
        entry([1, 4], offsets=(0, 12)),
        entry([1, 4], dtype=["F32"], offsets=(0, 16)),
        entry([1, 4], dtype="F33", offsets=(0, 16)),
        entry("14", offsets=(0, 16)),
        entry(None),
        {"embeddings": [1, 4]},
        {"embeddings": {}},
        {},
        [],
        7,
        b"[" * 5000,
        b"\xff\xfe",
        b'{"embeddings": {"shape": [1' + b"0" * 5000 + b"]}}",
    ],
)
def test_invalid_header_is_rejected_with_the_file_name(tmp_path, header):
    path = write_file(tmp_path, header, bytes(16))
    with pytest.raises(dh.InputError, match=r"hostile\.safetensors"):
        for shard in dh.evaluation.stored_shards(path):
            list(shard())


def test_changed_file_is_rejected(tmp_path):
    query_vectors, vectors = example()
    folder = store(tmp_path / "e", [vectors])
    shards = dh.evaluation.stored_shards(folder)
    store(folder, [vectors[:200]])
    with pytest.raises(dh.InputError, match=r"part-0.* \[200, 16\].* \[300, 16\]"):
        quiet(dh.evaluate_corpus)({"q": {"7": 1}}, (["q"], query_vectors[:1]), shards, ["MRR"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"a\nb\n\xff\nd\n", ".* not UTF-8"),
        ("a\nb\nc\nd\n".encode("utf-16"), ".* not UTF-8"),
        (b"a\n\nc\nd\n", ", line 2: .*id .*empty"),
    ],
)
def test_invalid_ids_are_rejected_with_the_file_name(tmp_path, lines, message):
    query_vectors, vectors = example()
    folder = store(tmp_path / "e", [vectors[:4]])
    (folder / "part-0.ids.txt").write_bytes(lines)
    for chunk in (1, 100):
        with pytest.raises(dh.InputError, match=rf"part-0\.ids\.txt{message}"):
            shards = dh.evaluation.stored_shards(folder, chunk=chunk)
            quiet(dh.evaluate_corpus)({"q": {"a": 1}}, (["q"], query_vectors[:1]), shards, ["MRR"])


def test_byte_order_mark_is_not_part_of_the_first_id(tmp_path):
    folder = store(tmp_path / "e", [example()[1][:2]])
    (folder / "part-0.ids.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    [shard] = dh.evaluation.stored_shards(folder)
    assert [ids for ids, _ in shard()] == [["a", "b"]]


def test_deleted_id_file_is_reported(tmp_path):
    query_vectors, vectors = example()
    folder = store(tmp_path / "e", [vectors], ids=[f"d{d}" for d in range(300)])
    shards = dh.evaluation.stored_shards(folder)
    (folder / "part-0.ids.txt").unlink()
    with pytest.raises(dh.InputError, match=r"cannot be read .*part-0\.ids\.txt"):
        quiet(dh.evaluate_corpus)({"q": {"d7": 1}}, (["q"], query_vectors[:1]), shards, ["MRR"])


def test_empty_part_needs_no_ids(tmp_path):
    query_vectors, vectors = example()
    folder = store(tmp_path / "e", [vectors, vectors[:0]], ids=[f"d{d}" for d in range(300)])
    (folder / "part-1.ids.txt").unlink()
    qrels = {"q": {"d7": 1}}
    assert dh.evaluate_corpus(
        qrels, (["q"], query_vectors[:1]), dh.evaluation.stored_shards(folder), ["MRR"]
    )


def test_missing_tensor_or_file_is_named(tmp_path):
    folder = store(tmp_path / "e", [example()[1]])
    with pytest.raises(dh.InputError, match=r"part-0.* one tensor 'vectors'"):
        dh.evaluation.stored_shards(folder, tensor="vectors")
    with pytest.raises(dh.InputError, match=r"gone\.safetensors cannot be read"):
        dh.evaluation.stored_shards(tmp_path / "gone.safetensors")


@pytest.mark.parametrize("path", [7, None, [7]])
def test_object_that_is_not_a_path_is_rejected(path):
    with pytest.raises(dh.InputError, match=r"path .*not (7|None|\[7\])"):
        dh.evaluation.stored_shards(path)


MEMORY = """
import sys
from pathlib import Path
import numpy as np
import deadheat as dh

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3

def evaluate(shards):
    query = np.ones((8, 256), np.float32)
    names = [f"q{q}" for q in range(8)]
    dh.evaluate_corpus({name: {"7": 1} for name in names}, (names, query), shards, ["MRR"])

shards = dh.evaluation.stored_shards(sys.argv[1], chunk=8_192)
for _ in range(3):  # until all threads have allocated their buffers
    evaluate(shards[:2])
before = peak()
evaluate(shards)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux' process status")
def test_memory_does_not_grow_with_the_files(tmp_path):
    """Five files of 40 MB need about as much memory as two."""
    vectors = np.random.default_rng(0).normal(size=(40_000, 256)).astype(np.float32)
    folder = store(tmp_path / "e", [vectors] * 5)
    growth = subprocess.run(
        [sys.executable, "-c", MEMORY, str(folder)], capture_output=True, text=True, check=True
    ).stdout
    assert float(growth) < 60, "megabytes; the other three files have 120"
