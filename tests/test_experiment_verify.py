"""A stored experiment that is not what was written: noticed, named, and mended by the same run."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")

from experiment_folders import made  # noqa: E402
from test_experiment import contents, study  # noqa: E402

from deadheat.cli import main  # noqa: E402
from deadheat.errors import InputError  # noqa: E402
from deadheat.lab.experiment import load_results, run_study  # noqa: E402
from deadheat.lab.experiment.files import FolderError, HashedFolder  # noqa: E402
from deadheat.lab.experiment.folder import ExperimentFolder, slug  # noqa: E402

__all__ = ["made"]


@pytest.fixture(scope="module")
def stored(made, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "DIR"
    assert run_study(wanted(made), folder) == []
    return folder


@pytest.fixture
def copy(stored, tmp_path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "DIR"))


def wanted(made):
    return study(made, "sigmoid", regimes=["native"], batch_size=20)


def deadheat(*words: object, status: int) -> str:
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == status, done.output
    return done.output


def faults(folder: Path) -> set[tuple[str, str]]:
    """What the command finds, as machines read it."""
    status = 1 if ExperimentFolder(folder).verify()[1] else 0
    rows = json.loads(deadheat("verify", folder, "--format", "json", status=status))
    return {(row["fault"], row["file"]) for row in rows}


FILES = {
    "datasets/*/corpus.parquet": "named",
    "datasets/*/qrels.txt": "named",
    "datasets/*/dataset.json": "named",
    "cells/*/manifest.json": "named",
    "cells/*/logits/000001.safetensors": "named",
    "cells/*/scores/native.parquet": "written anew",
    "cells/*/runs/native.txt": "written anew",
    "cells/*/results/native.json": "written anew",
}
"""Every kind of file, and what `deadheat run` does about a damaged one: nothing is reused."""


def test_every_file_has_its_hash(stored):
    sound, found = ExperimentFolder(stored).verify()
    files = [path for path in stored.rglob("*") if path.is_file() and path.name[0] != "."]
    assert (sound, found) == (len(files), [])
    said = deadheat("verify", stored, status=0)
    assert f"{len(files)} files as written, 0 faults" in said
    for sums in stored.glob("*/*/SHA256SUMS"):  # as sha256sum -c reads it
        for line in sums.read_text().splitlines():
            assert (sums.parent / line[66:]).is_file()


@pytest.mark.parametrize("pattern", FILES)
def test_a_damaged_or_missing_file_is_named_and_comes_back(made, stored, copy, pattern):
    (path,) = copy.glob(pattern)
    name, whole = str(path.relative_to(copy)), path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert faults(copy) == {("damaged", name)}
    if FILES[pattern] == "named":
        with pytest.raises(FolderError, match=r"is damaged .*delete it") as caught:
            run_study(wanted(made), copy)
        assert str(path) in str(caught.value)
        path.unlink()
        assert faults(copy) == {("missing", name)}
    assert run_study(wanted(made), copy) == []
    assert contents(copy) == contents(stored)


@pytest.mark.parametrize("damage", ["{", "[]", "{}", "\xff\x00", "[" * 100_000, "", '{"a": NaN}'])
@pytest.mark.parametrize("pattern", FILES)
def test_damage_without_a_hash_is_no_traceback(copy, pattern, damage):
    """Folders of before, or a file of hashes that was deleted."""
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
    assert deadheat("verify", copy, status=1)


@pytest.mark.parametrize("pattern", ["cells/*/results/native.json", "cells/*/manifest.json"])
def test_a_deleted_file_of_a_table_is_noticed(copy, pattern):
    (path,) = copy.glob(pattern)
    path.unlink()
    said = deadheat("table", copy, status=2)
    assert str(path) in said and "is missing" in said


OUTSIDE = ("../../../etc/passwd", "/etc/passwd", r"..\..\secret", r"C:\secret", "C:secret")


@pytest.mark.parametrize(
    "text", ["what is this", *(f"{'0' * 64}  {name}" for name in OUTSIDE), "\x00"]
)
def test_a_damaged_list_of_hashes_is_named(made, stored, copy, text):
    for sums in copy.glob("*/*/SHA256SUMS"):
        whole = sums.read_text()
        sums.write_text(text)
        with pytest.raises(FolderError, match="SHA256SUMS is damaged"):
            run_study(wanted(made), copy)
        deadheat("verify", copy, status=2)
        sums.write_text(whole)
    for sums in copy.glob("*/*/SHA256SUMS"):
        sums.unlink()
    assert {what for what, _ in faults(copy)} == {"unfinished"}
    assert run_study(wanted(made), copy) == []
    assert contents(copy) == contents(stored)


def test_foreign_files_are_named(copy):
    cell = next(copy.glob("cells/*"))
    for path in (copy / "thesis.tex", cell / "notes", cell / "logits" / "x.safetensors"):
        path.write_text("")
    (cell / "logits" / "99.safetensors").write_bytes(b"")
    (copy / ".DS_Store").write_text("")
    found = faults(copy)
    assert {what for what, _ in found} == {"foreign"} and len(found) == 4
    said = deadheat("verify", copy, status=1)
    assert "thesis.tex" in said and "was not written by deadheat" in said


def test_an_ended_run_is_unfinished(copy):
    cell = next(copy.glob("cells/*"))
    sums = cell / "SHA256SUMS"
    lines = sums.read_text().splitlines(keepends=True)
    ended = ("results/", "logits/000000")
    sums.write_text("".join(line for line in lines if not any(name in line for name in ended)))
    (cell / "logits" / "000000.safetensors").unlink()
    assert faults(copy) == {
        ("unfinished", str(path.relative_to(copy)))
        for path in (cell / "results" / "native.json", cell / "logits")
    }
    assert load_results(copy)[0].result, "it can be read all the same"


def test_no_file_outside_of_the_folder_is_read(copy, tmp_path):
    """A folder that a stranger sent: by links, by names, by streams."""
    secret = tmp_path / "secret"
    shutil.copytree(next(copy.glob("datasets/*")), secret)
    manifest = next(copy.glob("cells/*/manifest.json"))
    sums = manifest.parent / "SHA256SUMS"
    sums.unlink()
    whole = json.loads(manifest.read_text())
    for name in ("../../secret", str(secret), "..", ""):
        manifest.write_text(json.dumps({**whole, "dataset_folder": name}))
        with pytest.raises(InputError, match=r"not the name of a dataset|missing"):
            load_results(copy)[0].texts()
        deadheat("report", copy, "-o", tmp_path / "page.html", status=2)
    inputs = {f"../../../{name}": facts for name, facts in whole["inputs"].items()}
    manifest.write_text(json.dumps({**whole, "inputs": inputs}))
    with pytest.raises(InputError, match="its inputs are not those of a model"):
        load_results(copy)
    manifest.write_text(json.dumps(whole))
    link = copy / "datasets" / "link"
    for target in (secret, "../../secret", "/etc/passwd"):
        link.symlink_to(target)
        with pytest.raises(InputError, match="link out of"):
            load_results(copy)
        link.unlink()
    link.symlink_to(next(copy.glob("datasets/*")).name)
    assert load_results(copy)


def test_no_hash_is_ever_that_of_other_bytes(tmp_path, monkeypatch):
    """At every write of a change: what has a hash is whole, and the rest has none."""
    folder = HashedFolder(tmp_path)
    folder.write({"a": b"1", "b": b"2"})
    seen = []
    real = os.replace

    def looking(*names):
        seen.append(folder.find_faults())
        real(*names)
        seen.append(folder.find_faults())

    monkeypatch.setattr(Path, "replace", lambda path, to: looking(path, to))
    folder.write({"a": b"3", "b": b"2", "c/d": b"4"})
    assert len(seen) == 8 and not any(seen)
    assert (tmp_path / "SHA256SUMS").read_text().count("\n") == 3
    seen.clear()
    folder.write({"a": b"3", "c/d": b"4"})
    assert seen == [], "nothing is written that is there already"


def test_names_of_folders_are_names():
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
        word = slug(name)
        assert word and word[0] != "." and "/" not in word and len(os.fsencode(word)) <= 90


AWKWARD = "a [1]*?\"'\\#%$~ é漢🐎\n[/bold]"


@pytest.mark.skipif(os.name != "posix", reason="names of POSIX")
@pytest.mark.parametrize("name", [AWKWARD, "\udcff"], ids=["characters", "not UTF-8"])
def test_folders_with_awkward_names(made, tmp_path, name):
    try:
        data = shutil.copytree(made["data"], tmp_path / name / f"data{name}")
    except OSError as error:
        pytest.skip(f"the file system has no such name: {error}")
    model = made["sigmoid"]
    if name == AWKWARD:  # transformers reads no path that is not UTF-8
        model = shutil.copytree(made["sigmoid"], tmp_path / name / f"model{name}")
    out, page = tmp_path / name / f"out{name}", tmp_path / "page.html"
    words = ("run", "--model", model, "--dataset", data, "--output", out, "--limit", 2)
    first = deadheat(*words, "--model-dtype", "bf16", status=0)
    whole = contents(out)
    assert deadheat(*words, "--model-dtype", "bf16", status=0)[-500:] == first[-500:]
    assert contents(out) == whole
    for more in (("table", out), ("verify", out), ("report", out, "-o", page)):
        deadheat(*more, status=0)
    assert len(load_results(out)[0].texts().queries) == 2
