"""The folder of an experiment: ended, continued, changed, damaged, shared, full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from experiment_folders import made, write_dataset  # noqa: E402
from test_experiment import contents, study  # noqa: E402

from deadheat.errors import InputError  # noqa: E402
from deadheat.lab.experiment import load_results, run_study  # noqa: E402
from deadheat.lab.experiment.files import write_file  # noqa: E402
from deadheat.lab.experiment.folder import CellFolder, ExperimentFolder, list_parts, slug  # noqa: E402

__all__ = ["made"]

TESTS = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}

# Starts the study in a child again and again, and kills it after a random while; then lets it end.
KILLER = """
import os, random, signal, sys, time
import sentence_transformers, torch
from deadheat.lab.experiment import Study, run_study

model, encoder, data, folder = sys.argv[1:]
study = Study.of(models=[model, encoder], datasets=[data], model_dtypes=["bf16"],
                 measures=["nDCG@3", "MRR", "MAP", "Recall@5"], batch_size=2)
random.seed(7)
killed = stored = 0
for attempt in range(12):
    child = os.fork()
    if child == 0:
        started = time.time()
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


def test_a_killed_run_is_continued_to_the_same_bytes(made, tmp_path):
    words = [made["sigmoid"], made["product"], made["data"], str(tmp_path / "killed")]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, *words],
        env={**ENVIRONMENT, "OMP_NUM_THREADS": str(torch.get_num_threads())},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3, "no run was killed before its end"
    for kind in ("sigmoid", "product"):
        assert run_study(study(made, kind, batch_size=2), tmp_path / "whole") == []
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs are forked")
@pytest.mark.parametrize(
    ("what", "kind", "ends"), [("lists", "sigmoid", 150), ("corpus", "product", 35)]
)
def test_a_run_that_ends_at_any_write_is_continued_to_the_same_bytes(
    made, tmp_path, what, kind, ends
):
    """Kills and errors of the disk at every step of every write: half a file, fsync, rename."""
    words = [made[kind], made["data"], str(tmp_path), what]
    done = subprocess.run(
        [sys.executable, str(TESTS / "interrupted_runs.py"), *words],
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > ends, done.stdout


def test_only_missing_parts_are_run(made, tmp_path):
    told = []
    wanted = study(made, "sigmoid")
    assert run_study(wanted, tmp_path) == []
    before = contents(tmp_path)
    parts = sorted(tmp_path.glob("cells/*/logits/*"))
    for path in (parts[1], parts[2], parts[5]):
        path.unlink()
    kept = parts[0].stat().st_mtime_ns
    assert run_study(wanted, tmp_path, progress=lambda *each: told.append(each[1:])) == []
    assert told == [(28, 39), (32, 39), (36, 39), (39, 39)]
    assert parts[0].stat().st_mtime_ns == kept
    assert contents(tmp_path) == before
    told.clear()
    assert run_study(wanted, tmp_path, progress=lambda *each: told.append(each)) == []
    assert told == [], "a complete cell needs no model"


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
def test_a_changed_setting_makes_another_cell(made, tmp_path, changes, variants):
    """Numbers of different settings are never mixed, and what was stored stays as it was."""
    assert run_study(study(made, "sigmoid"), tmp_path) == []
    before = contents(tmp_path)
    assert run_study(study(made, "sigmoid", **changes), tmp_path) == []
    after = contents(tmp_path)
    assert {path: after[path] for path in before} == before
    assert len(list(tmp_path.glob("cells/*"))) == 2
    results = load_results(tmp_path)
    assert len({stored.name for stored in results}) == 2, "a table tells them apart"
    if variants is not None:
        assert sorted({stored.variant for stored in results}) == variants
    # Each is found again, and nothing is run.
    told = []
    for options in ({}, changes):
        wanted = study(made, "sigmoid", **options)
        assert run_study(wanted, tmp_path, progress=lambda *each: told.append(each)) == []
    assert told == [] and contents(tmp_path) == after


def test_a_cell_that_fails_leaves_no_trace(made, tmp_path):
    wanted = study({**made, "sigmoid": str(tmp_path / "misspelt")}, "sigmoid", limit=2)
    assert len(run_study(wanted, tmp_path / "out")) == 1
    assert run_study(study(made, "sigmoid", limit=3), tmp_path / "out") == []
    assert {len(stored.result.query_ids) for stored in load_results(tmp_path / "out")} == {3}


def test_every_regime_can_be_added_to_what_is_stored(made, tmp_path):
    assert run_study(study(made, "sigmoid", regimes=["native"]), tmp_path) == []
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cells/*/logits/*")}
    for regime in ("head", "hps"):
        assert run_study(study(made, "sigmoid", regimes=[regime]), tmp_path) == []
    assert [stored.regime for stored in load_results(tmp_path)] == ["native", "hps", "head"]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("cells/*/logits/*")} == parts


def test_other_weights_texts_and_versions_are_noticed(made, tmp_path, monkeypatch):
    model, data, out = (tmp_path / name for name in ("model", "data", "out"))
    shutil.copytree(made["sigmoid"], model)
    write_dataset(data)
    wanted = study({"sigmoid": str(model), "data": str(data)}, "sigmoid")

    def variants() -> set[str]:
        assert run_study(wanted, out) == []
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
        assert run_study(wanted, out) == []
        assert len(list(out.glob("cells/*"))) == cells + 1, change


def test_other_cells_and_measures_are_added(made, tmp_path):
    assert run_study(study(made, "sigmoid"), tmp_path) == []
    assert run_study(study(made, "product", measures=["F1@3"]), tmp_path) == []
    assert run_study(study(made, "sigmoid", measures=["nDCG@2"]), tmp_path) == []
    found = load_results(tmp_path)
    assert {Path(each.model).name for each in found} == {"sigmoid", "encoder"}
    assert {repr(m) for each in found for m in each.result.views} == {"nDCG@2", "F1@3"}


def test_a_second_process_is_refused_and_a_dead_one_is_not_minded(made, tmp_path):
    folder = ExperimentFolder(tmp_path / "out", create=True)
    with folder.lock(), pytest.raises(InputError, match=r"in use .*--output"):
        run_study(study(made, "sigmoid"), tmp_path / "out")
    left_over = tmp_path / "out" / "datasets" / f".deadheat.{'0' * 16}"
    left_over.parent.mkdir()
    left_over.write_text("of a process that was killed")
    assert run_study(study(made, "sigmoid"), tmp_path / "out") == []
    assert not left_over.exists()


@pytest.mark.parametrize("damage", [lambda data: data[:-7], lambda data: data[:-1] + b"\x07"])
def test_a_damaged_part_is_named(made, tmp_path, damage):
    assert run_study(study(made, "sigmoid"), tmp_path) == []
    before = contents(tmp_path)
    path = sorted(tmp_path.glob("cells/*/logits/*"))[3]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=f"{path} is damaged.*delete it") as caught:
        run_study(study(made, "sigmoid"), tmp_path)
    assert "run the same command again" in str(caught.value)
    path.unlink()
    assert run_study(study(made, "sigmoid"), tmp_path) == []
    assert contents(tmp_path) == before


def test_foreign_and_damaged_folders(made, tmp_path):
    wanted = study(made, "sigmoid")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=f"{tmp_path / 'file'} is not the folder of an experiment"):
        run_study(wanted, tmp_path / "file")
    assert (tmp_path / "file").is_file()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"no experiment\.json.* empty folder"):
        run_study(wanted, tmp_path / "foreign")
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
    assert run_study(wanted, tmp_path / "out") == []
    extra = next(tmp_path.glob("out/cells/*/logits")) / "mine.safetensors"
    extra.write_bytes(b"")
    assert [fault.what for fault in ExperimentFolder(tmp_path / "out").verify()[1]] == ["foreign"]
    assert run_study(wanted, tmp_path / "out") == []
    extra.unlink()
    manifest = next(tmp_path.glob("out/cells/*/manifest.json"))
    manifest.write_text("{")
    with pytest.raises(InputError, match=f"{manifest} is damaged.*delete it"):
        run_study(wanted, tmp_path / "out")


FULL = """
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


def test_a_full_disk_leaves_what_was_stored(tmp_path, monkeypatch):
    # No disk to fill at hand: the system refuses files beyond 1,000 bytes instead.
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "large cannot be written (File too large)" in done.stdout
    assert "stored stay valid" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["small"]

    def no_space(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(InputError, match=r"No space left on device.*run the same command again"):
        write_file(tmp_path / "more", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_many_batches_share_a_part(tmp_path):
    cell, parts = CellFolder(tmp_path), list_parts("logits", 2500)
    assert [i for part in parts for i in part.batches] == list(range(2500))
    assert (len(parts), parts[1].batches) == (834, range(3, 6))
    assert cell.missing_parts(parts) == parts
    cell.write_part(parts[1], {"index": torch.tensor([4, 3]), "logits": torch.ones(2, 1)})
    assert cell.missing_parts(parts) == [parts[0], *parts[2:]]


def test_names_of_folders(tmp_path, monkeypatch):
    assert slug("Qwen/Qwen3-Reranker-0.6B") == "Qwen--Qwen3-Reranker-0.6B"
    assert slug(str(tmp_path / "a" / "model v1")) == "model-v1"
    assert "/" not in slug("ir_datasets:beir/scifact/test")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Qwen" / "Qwen3-Reranker-0.6B").mkdir(parents=True)
    assert slug("Qwen/Qwen3-Reranker-0.6B") == "Qwen--Qwen3-Reranker-0.6B", "wherever one stands"


def test_models_of_one_name_have_cells_of_their_own(made, tmp_path):
    """Two folders called alike differ in their weights, and so in their cells."""
    for kind in ("sigmoid", "softmax"):
        shutil.copytree(made[kind], tmp_path / kind / "model")
        wanted = study({**made, kind: str(tmp_path / kind / "model")}, kind)
        assert run_study(wanted, tmp_path / "out") == []
    assert len(list(tmp_path.glob("out/cells/model.bf16.data-*"))) == 2
