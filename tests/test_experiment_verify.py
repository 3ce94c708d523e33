"""Damage of stored experiments: `verify` reports it and `run` repairs it."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")

from experiment_folders import made  # noqa: E402
from test_experiment import build_study, read_files  # noqa: E402

from deadheat.cli import main  # noqa: E402
from deadheat.errors import InputError  # noqa: E402
from deadheat.lab.experiment import load_results, run_study  # noqa: E402
from deadheat.lab.experiment.files import FolderError, HashedFolder  # noqa: E402
from deadheat.lab.experiment.folder import ExperimentFolder, slug  # noqa: E402

__all__ = ["made"]


@pytest.fixture(scope="module")
def stored(made, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "DIR"
    assert run_study(build_native_study(made), folder) == []
    return folder


@pytest.fixture
def copy(stored, tmp_path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "DIR"))


def build_native_study(made):
    return build_study(made, "sigmoid", regimes=["native"], batch_size=20)


def invoke(*args: object, status: int) -> str:
    outcome = CliRunner().invoke(main, list(map(str, args)))
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    assert outcome.exit_code == status, outcome.output
    return outcome.output


def find_faults(folder: Path) -> set[tuple[str, str]]:
    """Return the faults and files that `deadheat verify` reports as JSON."""
    status = 1 if ExperimentFolder(folder).verify()[1] else 0
    rows = json.loads(invoke("verify", folder, "--format", "json", status=status))
    return {(row["fault"], row["file"]) for row in rows}


FILES = {
    "datasets/*/corpus.parquet": "reported",
    "datasets/*/qrels.txt": "reported",
    "datasets/*/dataset.json": "reported",
    "cells/*/manifest.json": "reported",
    "cells/*/logits/000001.safetensors": "reported",
    "cells/*/scores/native.parquet": "rewritten",
    "cells/*/runs/native.txt": "rewritten",
    "cells/*/results/native.json": "rewritten",
}
"""Patterns of files, and what `deadheat run` does with a damaged one: it is never reused."""


def test_every_file_has_a_hash(stored):
    n_intact, faults = ExperimentFolder(stored).verify()
    files = [path for path in stored.rglob("*") if path.is_file() and path.name[0] != "."]
    assert (n_intact, faults) == (len(files), [])
    output = invoke("verify", stored, status=0)
    assert re.search(rf"\b{len(files)} files .*\b0 faults\b", output)
    for sums in stored.glob("*/*/SHA256SUMS"):  # in the format of sha256sum -c
        for line in sums.read_text().splitlines():
            assert (sums.parent / line[66:]).is_file()


@pytest.mark.parametrize("pattern", FILES)
def test_damaged_or_missing_file_is_reported_and_restored(made, stored, copy, pattern):
    (path,) = copy.glob(pattern)
    name, data = str(path.relative_to(copy)), path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert find_faults(copy) == {("damaged", name)}
    if FILES[pattern] == "reported":
        with pytest.raises(FolderError, match=r"is damaged .*delete it") as caught:
            run_study(build_native_study(made), copy)
        assert str(path) in str(caught.value)
        path.unlink()
        assert find_faults(copy) == {("missing", name)}
    assert run_study(build_native_study(made), copy) == []
    assert read_files(copy) == read_files(stored)


@pytest.mark.parametrize("damage", ["{", "[]", "{}", "\xff\x00", "[" * 100_000, "", '{"a": NaN}'])
@pytest.mark.parametrize("pattern", FILES)
def test_damage_without_hashes_raises_input_error(copy, pattern, damage):
    """Older folders have no hashes, and users may delete them."""
    for sums in copy.glob("*/*/SHA256SUMS"):
        sums.unlink()
    (path,) = copy.glob(pattern)
    path.write_bytes(damage.encode("latin-1"))
    for read in (
        lambda: [stored.result for stored in load_results(copy)],
        lambda: [stored.scores() for stored in load_results(copy)],
        lambda: [stored.outputs() for stored in load_results(copy)],
        lambda: [stored.texts() for stored in load_results(copy)],
    ):
        try:
            read()
        except InputError as error:
            assert str(copy) in str(error)
    assert invoke("verify", copy, status=1)


@pytest.mark.parametrize("pattern", ["cells/*/results/native.json", "cells/*/manifest.json"])
def test_deleted_file_of_a_table_is_reported(copy, pattern):
    (path,) = copy.glob(pattern)
    path.unlink()
    output = invoke("table", copy, status=2)
    assert str(path) in output and "is missing" in output


OUTSIDE = ("../../../etc/passwd", "/etc/passwd", r"..\..\secret", r"C:\secret", "C:secret")


@pytest.mark.parametrize(
    "text", ["what is this", *(f"{'0' * 64}  {name}" for name in OUTSIDE), "\x00"]
)
def test_damaged_hash_file_is_reported(made, stored, copy, text):
    for sums in copy.glob("*/*/SHA256SUMS"):
        original = sums.read_text()
        sums.write_text(text)
        with pytest.raises(FolderError, match="SHA256SUMS is damaged"):
            run_study(build_native_study(made), copy)
        invoke("verify", copy, status=2)
        sums.write_text(original)
    for sums in copy.glob("*/*/SHA256SUMS"):
        sums.unlink()
    assert {what for what, _ in find_faults(copy)} == {"unfinished"}
    assert run_study(build_native_study(made), copy) == []
    assert read_files(copy) == read_files(stored)


def test_foreign_files_are_reported(copy):
    cell = next(copy.glob("cells/*"))
    for path in (copy / "thesis.tex", cell / "notes", cell / "logits" / "x.safetensors"):
        path.write_text("")
    (cell / "logits" / "99.safetensors").write_bytes(b"")
    (copy / ".DS_Store").write_text("")
    found = find_faults(copy)
    assert {what for what, _ in found} == {"foreign"} and len(found) == 4
    output = invoke("verify", copy, status=1)
    assert "thesis.tex" in output and "not written by deadheat" in output


def test_interrupted_run_is_unfinished(copy):
    cell = next(copy.glob("cells/*"))
    sums = cell / "SHA256SUMS"
    lines = sums.read_text().splitlines(keepends=True)
    unfinished = ("results/", "logits/000000")
    sums.write_text("".join(line for line in lines if not any(name in line for name in unfinished)))
    (cell / "logits" / "000000.safetensors").unlink()
    assert find_faults(copy) == {
        ("unfinished", str(path.relative_to(copy)))
        for path in (cell / "results" / "native.json", cell / "logits")
    }
    assert load_results(copy)[0].result, "it can still be read"


def test_no_file_outside_the_folder_is_read(copy, tmp_path):
    """An untrusted folder may have links, names and input names that point elsewhere."""
    secret = tmp_path / "secret"
    shutil.copytree(next(copy.glob("datasets/*")), secret)
    manifest = next(copy.glob("cells/*/manifest.json"))
    sums = manifest.parent / "SHA256SUMS"
    sums.unlink()
    original = json.loads(manifest.read_text())
    for name in ("../../secret", str(secret), "..", ""):
        manifest.write_text(json.dumps({**original, "dataset_folder": name}))
        with pytest.raises(InputError, match=r"not the name of a dataset|missing"):
            load_results(copy)[0].texts()
        invoke("report", copy, "-o", tmp_path / "page.html", status=2)
    inputs = {f"../../../{name}": facts for name, facts in original["inputs"].items()}
    manifest.write_text(json.dumps({**original, "inputs": inputs}))
    with pytest.raises(InputError, match="its inputs are not those of a model"):
        load_results(copy)
    manifest.write_text(json.dumps(original))
    link = copy / "datasets" / "link"
    for target in (secret, "../../secret", "/etc/passwd"):
        link.symlink_to(target)
        with pytest.raises(InputError, match="link out of"):
            load_results(copy)
        link.unlink()
    link.symlink_to(next(copy.glob("datasets/*")).name)
    assert load_results(copy)


def test_hashes_match_files_at_every_write(tmp_path, monkeypatch):
    """At any time, a file either has no hash or matches it."""
    folder = HashedFolder(tmp_path)
    folder.write({"a": b"1", "b": b"2"})
    faults_seen = []
    replace = os.replace

    def check_and_replace(*names):
        faults_seen.append(folder.find_faults())
        replace(*names)
        faults_seen.append(folder.find_faults())

    monkeypatch.setattr(Path, "replace", lambda path, to: check_and_replace(path, to))
    folder.write({"a": b"3", "b": b"2", "c/d": b"4"})
    assert len(faults_seen) == 8 and not any(faults_seen)
    assert (tmp_path / "SHA256SUMS").read_text().count("\n") == 3
    faults_seen.clear()
    folder.write({"a": b"3", "c/d": b"4"})
    assert faults_seen == [], "unchanged files are not written"


def test_slugs_are_valid_folder_names():
    for name in (
        ".",
        "..",
        "/",
        "a" * 400,
        "漢" * 100,
        "x/" + "y" * 300,
        "a/.b",
        "\udcff",
        "[x]*?",
    ):
        folder = slug(name)
        assert folder and folder[0] != "." and "/" not in folder
        assert len(os.fsencode(folder)) <= 90


AWKWARD = "a [1]*?\"'\\#%$~ é漢🐎\n[/bold]"


@pytest.mark.skipif(os.name != "posix", reason="names of POSIX")
@pytest.mark.parametrize("name", [AWKWARD, "\udcff"], ids=["characters", "not UTF-8"])
def test_folders_with_awkward_names(made, tmp_path, name):
    try:
        data = shutil.copytree(made["data"], tmp_path / name / f"data{name}")
    except OSError as error:
        pytest.skip(f"the file system has no such name: {error}")
    model = made["sigmoid"]
    if name == AWKWARD:  # transformers requires UTF-8 paths
        model = shutil.copytree(made["sigmoid"], tmp_path / name / f"model{name}")
    out, page = tmp_path / name / f"out{name}", tmp_path / "page.html"
    args = ("run", "--model", model, "--dataset", data, "--output", out, "--limit", 2)
    first = invoke(*args, "--model-dtype", "bf16", status=0)
    before = read_files(out)
    assert invoke(*args, "--model-dtype", "bf16", status=0)[-500:] == first[-500:]
    assert read_files(out) == before
    for more in (("table", out), ("verify", out), ("report", out, "-o", page)):
        invoke(*more, status=0)
    assert len(load_results(out)[0].texts().queries) == 2
