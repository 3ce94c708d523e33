"""Ends a small run at every one of its writes, once by a kill and once by an error of the disk.

``python interrupted_runs.py MODEL DATA FOLDER`` prints what went wrong, and how many ends it tried.
With ``corpus`` after it, the run is that of a bi-encoder over a full corpus too long to be stored,
in two ways, in a folder that has the scores of shorter lists; it is killed only.
Every run is a child of this process, which has torch and the model loaded: a run takes a moment.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import polars  # noqa: F401  (so that no child imports it anew)
import torch

import deadheat._internal.output
import deadheat.lab.models
from deadheat.lab.experiment import Study, derive, run_study
from deadheat.lab.experiment.files import FolderError

KILLED, REFUSED, DONE = "killed", "refused", "done"


class Disk:
    """Counts what is done to a disk, and ends the run at one of these steps."""

    def __init__(self, folder: Path, last: int | None, how: str) -> None:
        self.folder, self.last, self.how, self.steps = str(folder), last, how, 0

    def ends(self) -> bool:
        self.steps += 1
        return self.steps - 1 == self.last

    def end(self, number: int) -> None:
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(number, os.strerror(number))

    def step(self, do: Callable[..., object], number: int) -> Callable[..., object]:
        """Let a function of the system fail, or be the last."""

        @functools.wraps(do)
        def stepping(*args: object, **options: object) -> object:
            if self.ends():
                self.end(number)
            return do(*args, **options)

        return stepping

    def open(self, path: Path, mode: str, **options: Any) -> HalfWritten:
        """Open a file of which only half may be written."""
        if self.ends():
            self.end(errno.EMFILE)
        return HalfWritten(self, open(path, mode, **options))  # noqa: PTH123

    @contextmanager
    def watched(self) -> Iterator[None]:
        deadheat._internal.output.open = self.open  # type: ignore[attr-defined]
        os.fsync = self.step(os.fsync, errno.EIO)  # type: ignore[assignment]
        Path.replace = self.step(Path.replace, errno.EIO)  # type: ignore[method-assign,assignment]
        Path.mkdir = self.step(Path.mkdir, errno.ENOSPC)  # type: ignore[method-assign]
        Path.write_text = self.step(Path.write_text, errno.ENOSPC)  # type: ignore[method-assign]
        nothing, unlink = Path.unlink, self.step(Path.unlink, errno.EIO)

        def unlink_one(path: Path, **options: Any) -> object:
            return unlink(path, **options) if path.exists() else nothing(path, **options)

        Path.unlink = unlink_one  # type: ignore[method-assign,assignment]
        yield  # the process ends with the run: nothing is put back


class HalfWritten:
    """A file that may end in the middle of what is written to it."""

    def __init__(self, disk: Disk, file: IO[bytes]) -> None:
        self.disk, self.file = disk, file

    def __enter__(self) -> HalfWritten:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: bytes) -> int:
        if self.disk.ends():
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            self.disk.end(errno.ENOSPC)
        return self.file.write(data)


def run(study: Study, folder: Path, last: int | None = None, how: str = "") -> tuple[str, str]:
    """Run a study in a child that ends at step `last`; say how it ended, and with what words."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        said, status = "", 1
        with suppress(BaseException):
            disk = Disk(folder, last, how)
            try:
                with disk.watched():
                    failures = run_study(study, folder)
                said, status = (str(failures[0].error), 1) if failures else (str(disk.steps), 0)
            except FolderError as error:
                said, status = str(error), 2
            except BaseException as error:  # a traceback
                said, status = repr(error), 3
        os.write(theirs, said.encode())
        os._exit(status)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return KILLED, said
    return {0: DONE, 2: REFUSED}.get(os.WEXITSTATUS(status), "failed"), said


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def main(model: str, data: str, root: str, what: str = "lists") -> int:
    torch.set_num_threads(1)  # other threads do not survive a fork
    sizes = [22] if what == "lists" else [2, 22]
    loaded = {
        size: deadheat.lab.models.load_model(
            model, model_dtype="bf16", device="cpu", batch_size=size
        )
        for size in sizes
    }
    deadheat.lab.models.load_model = lambda *_, batch_size, **__: loaded[batch_size]  # type: ignore
    options = {"model_dtypes": ["bf16"], "regimes": ["native"], "limit": 2, "batch_size": sizes}
    if what == "corpus":
        options["candidates"] = "full"
    make = functools.partial(
        Study.of, models=[model], datasets=[data], measures=["nDCG@3"], **options
    )
    study, begun = make(), Path(root) / "begun"
    if what == "corpus":
        run(make(depth=2), begun)
        derive.LONGEST_RUN = 0
    else:
        begun.mkdir()
    before = contents(begun)
    shutil.copytree(begun, Path(root) / "whole")
    how, said = run(study, Path(root) / "whole")
    if how != DONE:
        sys.exit(f"the run itself fails: {said}")
    whole, wrong = contents(Path(root) / "whole"), []
    endings = {"kill": KILLED, "fault": REFUSED} if what == "lists" else {"kill": KILLED}
    for ending, expected in endings.items():
        for last in range(int(said)):
            folder = Path(root) / f"{ending}-{last}"
            shutil.copytree(begun, folder)
            ended, words = run(study, folder, last, ending)
            if ended != expected or (ended == REFUSED and "cannot be" not in words):
                wrong.append(f"{ending} at step {last}: {ended} ({words})")
            partly = {name: each for name, each in contents(folder).items() if name in whole}
            other = [
                name
                for name, each in partly.items()
                if each not in (whole[name], before.get(name)) and "SHA256SUMS" not in name
            ]
            if other:
                wrong.append(f"{ending} at step {last} leaves {other[0]} with other bytes")
            ended, words = run(study, folder)
            if ended != DONE or contents(folder) != whole:
                wrong.append(f"{ending} at step {last}, then run again: {ended} ({words})")
            left_over = [path.name for path in folder.rglob(".deadheat.*")]
            if left_over:
                wrong.append(f"{ending} at step {last}, then run again: {left_over} are left")
            shutil.rmtree(folder)
    print(f"{len(endings) * int(said)} ends\n" + "\n".join(wrong))  # noqa: T201
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
