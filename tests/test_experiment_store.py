"""The folder of an experiment: interrupted, continued, changed and damaged runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from experiment_folders import made, write_dataset  # noqa: E402
from test_experiment import build_study, read_files  # noqa: E402

from deadheat.errors import InputError  # noqa: E402
from deadheat.lab.experiment import load_results, run_study  # noqa: E402
from deadheat.lab.experiment.files import write_file  # noqa: E402
from deadheat.lab.experiment.folder import CellFolder, ExperimentFolder, list_parts, slug  # noqa: E402

__all__ = ["made"]

TESTS = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}

# Start the study in a child process 12 times. Kill each but the last after a random time.
KILLER = """
import os, random, signal, sys, time
import sentence_transformers, torch
from deadheat.lab.experiment import Study, run_study

model, encoder, data, folder = sys.argv[1:]
study = Study.of(models=[model, encoder], datasets=[data], model_dtypes=["bf16"],
                 measures=["nDCG@3", "MRR", "MAP", "Recall@5"], batch_size=2)
random.seed(7)
killed = 0
for attempt in range(12):
    child = os.fork()
    if child == 0:
        failures = run_study(study, folder, progress=lambda *_: time.sleep(0.02))
        os._exit(1 if failures else 0)
    if attempt < 11:
        time.sleep(random.uniform(0.1, 0.7))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    killed += os.WIFSIGNALED(status)
    if status and not os.WIFSIGNALED(status):
        sys.exit(f"the study failed: {status}")
print(killed)
"""


def test_killed_run_continues_to_the_same_files(made, tmp_path):
    args = [made["sigmoid"], made["product"], made["data"], str(tmp_path / "killed")]
    process = subprocess.run(
        [sys.executable, "-c", KILLER, *args],
        env={**ENVIRONMENT, "OMP_NUM_THREADS": str(torch.get_num_threads())},
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) >= 3, "no run was killed before its end"
    for kind in ("sigmoid", "product"):
        assert run_study(build_study(made, kind, batch_size=2), tmp_path / "uninterrupted") == []
    assert read_files(tmp_path / "killed") == read_files(tmp_path / "uninterrupted")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs are forked")
@pytest.mark.parametrize(
    ("candidates", "kind", "min_interruptions"),
    [("lists", "sigmoid", 150), ("corpus", "product", 35)],
)
def test_run_interrupted_at_any_write_continues_to_the_same_files(
    made, tmp_path, candidates, kind, min_interruptions
):
    """Kill the run or raise a disk error at every step of every write."""
    args = [made[kind], made["data"], str(tmp_path), candidates]
    process = subprocess.run(
        [sys.executable, str(TESTS / "interrupted_runs.py"), *args],
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert int(process.stdout.split()[0]) > min_interruptions, process.stdout


def test_only_missing_parts_are_computed(made, tmp_path):
    calls = []
    study = build_study(made, "sigmoid")
    assert run_study(study, tmp_path) == []
    before = read_files(tmp_path)
    parts = sorted(tmp_path.glob("cells/*/logits/*"))
    for path in (parts[1], parts[2], parts[5]):
        path.unlink()
    kept = parts[0].stat().st_mtime_ns
    assert run_study(study, tmp_path, progress=lambda *each: calls.append(each[1:])) == []
    assert calls == [(28, 39), (32, 39), (36, 39), (39, 39)]
    assert parts[0].stat().st_mtime_ns == kept
    assert read_files(tmp_path) == before
    calls.clear()
    assert run_study(study, tmp_path, progress=lambda *each: calls.append(each)) == []
    assert calls == [], "a complete cell needs no model"


@pytest.mark.parametrize(
    ("changes", "variants"),
    [
        ({"batch_size": 8}, ["batch_size 4", "batch_size 8"]),
        ({"max_length": 64}, ["", "max_length 64"]),
        ({"limit": 2}, None),
        ({"candidates": "bm25"}, None),
        ({"depth": 5}, None),
    ],
)
def test_changed_setting_creates_another_cell(made, tmp_path, changes, variants):
    """Values of different settings are never mixed, and stored files do not change."""
    assert run_study(build_study(made, "sigmoid"), tmp_path) == []
    before = read_files(tmp_path)
    assert run_study(build_study(made, "sigmoid", **changes), tmp_path) == []
    after = read_files(tmp_path)
    assert {path: after[path] for path in before} == before
    assert len(list(tmp_path.glob("cells/*"))) == 2
    results = load_results(tmp_path)
    assert len({stored.name for stored in results}) == 2, "names in a table differ"
    if variants is not None:
        assert sorted({stored.variant for stored in results}) == variants
    # Both cells are reused without a forward pass.
    calls = []
    for options in ({}, changes):
        study = build_study(made, "sigmoid", **options)
        assert run_study(study, tmp_path, progress=lambda *each: calls.append(each)) == []
    assert calls == [] and read_files(tmp_path) == after


def test_failed_cell_stores_nothing(made, tmp_path):
    study = build_study({**made, "sigmoid": str(tmp_path / "misspelt")}, "sigmoid", limit=2)
    assert len(run_study(study, tmp_path / "out")) == 1
    assert run_study(build_study(made, "sigmoid", limit=3), tmp_path / "out") == []
    assert {len(stored.result.query_ids) for stored in load_results(tmp_path / "out")} == {3}


def test_regimes_can_be_added_without_a_forward_pass(made, tmp_path):
    assert run_study(build_study(made, "sigmoid", regimes=["native"]), tmp_path) == []
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cells/*/logits/*")}
    for regime in ("head", "hps"):
        assert run_study(build_study(made, "sigmoid", regimes=[regime]), tmp_path) == []
    assert [stored.regime for stored in load_results(tmp_path)] == ["native", "hps", "head"]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("cells/*/logits/*")} == parts


def test_changed_weights_texts_and_versions_create_cells(made, tmp_path, monkeypatch):
    model, data, out = (tmp_path / name for name in ("model", "data", "out"))
    shutil.copytree(made["sigmoid"], model)
    write_dataset(data)
    study = build_study({"sigmoid": str(model), "data": str(data)}, "sigmoid")

    def variants() -> set[str]:
        assert run_study(study, out) == []
        return {stored.variant.split(" ")[0] for stored in load_results(out)}

    assert variants() == {""}
    with monkeypatch.context() as patch:
        for module in ("deadheat.lab.experiment.forward", "deadheat.lab.models.loading"):
            patch.setattr(f"{module}.installed_versions", lambda: {"torch": "1.0"})
        assert variants() == {"versions.torch"}
    for change in ("weights", "texts"):
        cells = len(list(out.glob("cells/*")))
        if change == "weights":
            shutil.rmtree(model)
            shutil.copytree(made["softmax"], model)
        else:
            corpus = data / "corpus.jsonl"
            corpus.write_text(corpus.read_text().replace("furlong", "mile"))
        assert run_study(study, out) == []
        assert len(list(out.glob("cells/*"))) == cells + 1, change


def test_cells_and_measures_can_be_added(made, tmp_path):
    assert run_study(build_study(made, "sigmoid"), tmp_path) == []
    assert run_study(build_study(made, "product", measures=["F1@3"]), tmp_path) == []
    assert run_study(build_study(made, "sigmoid", measures=["nDCG@2"]), tmp_path) == []
    found = load_results(tmp_path)
    assert {Path(each.model).name for each in found} == {"sigmoid", "encoder"}
    assert {repr(m) for each in found for m in each.result.views} == {"nDCG@2", "F1@3"}


def test_locked_folder_raises_input_error_and_stale_files_are_deleted(made, tmp_path):
    folder = ExperimentFolder(tmp_path / "out", create=True)
    with folder.lock(), pytest.raises(InputError, match=r"in use .*--output"):
        run_study(build_study(made, "sigmoid"), tmp_path / "out")
    left_over = tmp_path / "out" / "datasets" / f".deadheat.{'0' * 16}"
    left_over.parent.mkdir()
    left_over.write_text("of a process that was killed")
    assert run_study(build_study(made, "sigmoid"), tmp_path / "out") == []
    assert not left_over.exists()


@pytest.mark.parametrize("damage", [lambda data: data[:-7], lambda data: data[:-1] + b"\x07"])
def test_damaged_part_raises_input_error(made, tmp_path, damage):
    assert run_study(build_study(made, "sigmoid"), tmp_path) == []
    before = read_files(tmp_path)
    path = sorted(tmp_path.glob("cells/*/logits/*"))[3]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=f"{path} is damaged.*delete it") as caught:
        run_study(build_study(made, "sigmoid"), tmp_path)
    assert "run the same command again" in str(caught.value)
    path.unlink()
    assert run_study(build_study(made, "sigmoid"), tmp_path) == []
    assert read_files(tmp_path) == before


def test_foreign_and_damaged_folders_raise_input_error(made, tmp_path):
    study = build_study(made, "sigmoid")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=f"{tmp_path / 'file'} is not the folder of an experiment"):
        run_study(study, tmp_path / "file")
    assert (tmp_path / "file").is_file()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"no experiment\.json.* empty folder"):
        run_study(study, tmp_path / "foreign")
    with pytest.raises(
        InputError,
        match=r"not the folder of an experiment .*experiment\.json",
    ):
        load_results(tmp_path / "nowhere")
    ExperimentFolder(tmp_path / "new", create=True)
    with pytest.raises(InputError, match="no results yet"):
        load_results(tmp_path / "new")
    (tmp_path / "new" / "experiment.json").write_text('{"schema": 99}')
    with pytest.raises(InputError, match="schema 99"):
        load_results(tmp_path / "new")
    assert run_study(study, tmp_path / "out") == []
    extra = next(tmp_path.glob("out/cells/*/logits")) / "mine.safetensors"
    extra.write_bytes(b"")
    assert [fault.what for fault in ExperimentFolder(tmp_path / "out").verify()[1]] == ["foreign"]
    assert run_study(study, tmp_path / "out") == []
    extra.unlink()
    manifest = next(tmp_path.glob("out/cells/*/manifest.json"))
    manifest.write_text("{")
    with pytest.raises(InputError, match=f"{manifest} is damaged.*delete it"):
        run_study(study, tmp_path / "out")


FULL_DISK = """
import resource, sys
from deadheat.lab.experiment.files import FolderError, write_file
from pathlib import Path

write_file(Path(sys.argv[1]) / "small", b"x" * 100)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_file(Path(sys.argv[1]) / "large", b"x" * 5000)
except FolderError as error:
    print(error)
"""


def test_full_disk_keeps_stored_files(tmp_path, monkeypatch):
    # A limit of 1,000 bytes per file replaces a full disk.
    process = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "large cannot be written (File too large)" in process.stdout
    assert "stored stay valid" in process.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["small"]

    def no_space(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(InputError, match=r"No space left on device.*run the same command again"):
        write_file(tmp_path / "more", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_parts_have_several_batches(tmp_path):
    cell, parts = CellFolder(tmp_path), list_parts("logits", 2500)
    assert [i for part in parts for i in part.batches] == list(range(2500))
    assert (len(parts), parts[1].batches) == (834, range(3, 6))
    assert cell.missing_parts(parts) == parts
    cell.write_part(parts[1], {"index": torch.tensor([4, 3]), "logits": torch.ones(2, 1)})
    assert cell.missing_parts(parts) == [parts[0], *parts[2:]]


def test_slug_of_models_and_paths(tmp_path, monkeypatch):
    assert slug("Qwen/Qwen3-Reranker-0.6B") == "Qwen--Qwen3-Reranker-0.6B"
    assert slug(str(tmp_path / "a" / "model v1")) == "model-v1"
    assert "/" not in slug("ir_datasets:beir/scifact/test")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Qwen" / "Qwen3-Reranker-0.6B").mkdir(parents=True)
    assert slug("Qwen/Qwen3-Reranker-0.6B") == "Qwen--Qwen3-Reranker-0.6B", (
        "independent of the current folder"
    )


def test_models_with_the_same_name_have_separate_cells(made, tmp_path):
    """Two folders with the same name have different weights, so they need different cells."""
    for kind in ("sigmoid", "softmax"):
        shutil.copytree(made[kind], tmp_path / kind / "model")
        study = build_study({**made, kind: str(tmp_path / kind / "model")}, kind)
        assert run_study(study, tmp_path / "out") == []
    assert len(list(tmp_path.glob("out/cells/model.bf16.data-*"))) == 2
