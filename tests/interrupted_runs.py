"""Interrupt a small run at each of its writes, once by a kill and once by a disk error.

``python interrupted_runs.py MODEL DATA FOLDER`` prints the number of interruptions and what failed.
With ``corpus`` as fourth argument, a bi-encoder runs over a full corpus that is too long to be
stored, with two batch sizes, in a folder with the scores of shorter lists; it is only killed.
Every run is a forked child of this process, which has torch and the model loaded, to save time.
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

import polars  # noqa: F401  (imported before the fork to save time)
import torch

import deadheat._internal.output
import deadheat.lab.models
from deadheat.lab.experiment import Study, derive, run_study
from deadheat.lab.experiment.files import FolderError

KILLED, STOPPED, DONE = "killed", "stopped", "done"


class FaultyDisk:
    """Counts operations on the disk, and interrupts the run at one of them."""

    def __init__(self, folder: Path, fault_step: int | None, fault: str) -> None:
        self.folder, self.fault_step, self.fault = str(folder), fault_step, fault
        self.steps = 0

    def count_step(self) -> bool:
        """Count an operation; return whether it is the one to interrupt."""
        self.steps += 1
        return self.steps - 1 == self.fault_step

    def interrupt(self, number: int) -> None:
        if self.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(number, os.strerror(number))

    def wrap(self, function: Callable[..., object], number: int) -> Callable[..., object]:
        """Return a function that counts its calls and interrupts the run if it is due."""

        @functools.wraps(function)
        def wrapper(*args: object, **options: object) -> object:
            if self.count_step():
                self.interrupt(number)
            return function(*args, **options)

        return wrapper

    def open(self, path: Path, mode: str, **options: Any) -> InterruptibleFile:
        """Open a file whose writes may be interrupted halfway."""
        if self.count_step():
            self.interrupt(errno.EMFILE)
        return InterruptibleFile(self, open(path, mode, **options))  # noqa: PTH123

    @contextmanager
    def patch_functions(self) -> Iterator[None]:
        deadheat._internal.output.open = self.open  # type: ignore[attr-defined]
        os.fsync = self.wrap(os.fsync, errno.EIO)  # type: ignore[assignment]
        Path.replace = self.wrap(Path.replace, errno.EIO)  # type: ignore[method-assign,assignment]
        Path.mkdir = self.wrap(Path.mkdir, errno.ENOSPC)  # type: ignore[method-assign]
        Path.write_text = self.wrap(Path.write_text, errno.ENOSPC)  # type: ignore[method-assign]
        original_unlink, unlink = Path.unlink, self.wrap(Path.unlink, errno.EIO)

        def unlink_existing(path: Path, **options: Any) -> object:
            return unlink(path, **options) if path.exists() else original_unlink(path, **options)

        Path.unlink = unlink_existing  # type: ignore[method-assign,assignment]
        yield  # the process exits after the run, so nothing is restored


class InterruptibleFile:
    """A file whose writes may be interrupted halfway."""

    def __init__(self, disk: FaultyDisk, file: IO[bytes]) -> None:
        self.disk, self.file = disk, file

    def __enter__(self) -> InterruptibleFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: bytes) -> int:
        if self.disk.count_step():
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            self.disk.interrupt(errno.ENOSPC)
        return self.file.write(data)


def run(
    study: Study, folder: Path, fault_step: int | None = None, fault: str = ""
) -> tuple[str, str]:
    """Run a study in a child that is interrupted at a step; return its outcome and its message."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        message, status = "", 1
        with suppress(BaseException):
            disk = FaultyDisk(folder, fault_step, fault)
            try:
                with disk.patch_functions():
                    failures = run_study(study, folder)
                message, status = (str(failures[0].error), 1) if failures else (str(disk.steps), 0)
            except FolderError as error:
                message, status = str(error), 2
            except BaseException as error:  # any other error
                message, status = repr(error), 3
        os.write(write_end, message.encode())
        os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        message = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return KILLED, message
    return {0: DONE, 2: STOPPED}.get(os.WEXITSTATUS(status), "failed"), message


def read_files(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def main(model: str, data: str, root: str, candidates: str = "lists") -> int:
    torch.set_num_threads(1)  # a fork does not copy other threads
    sizes = [22] if candidates == "lists" else [2, 22]
    loaded = {
        size: deadheat.lab.models.load_model(
            model, model_dtype="bf16", device="cpu", batch_size=size
        )
        for size in sizes
    }
    deadheat.lab.models.load_model = lambda *_, batch_size, **__: loaded[batch_size]  # type: ignore
    options = {"model_dtypes": ["bf16"], "regimes": ["native"], "limit": 2, "batch_size": sizes}
    if candidates == "corpus":
        options["candidates"] = "full"
    build_study = functools.partial(
        Study.of, models=[model], datasets=[data], measures=["nDCG@3"], **options
    )
    study, start = build_study(), Path(root) / "start"
    if candidates == "corpus":
        run(build_study(depth=2), start)
        derive.LONGEST_RUN = 0
    else:
        start.mkdir()
    files_before = read_files(start)
    shutil.copytree(start, Path(root) / "complete")
    outcome, message = run(study, Path(root) / "complete")
    if outcome != DONE:
        sys.exit(f"the run without interruption fails: {message}")
    complete, errors = read_files(Path(root) / "complete"), []
    n_steps = int(message)
    outcomes = {"kill": KILLED, "fault": STOPPED} if candidates == "lists" else {"kill": KILLED}
    for fault, expected in outcomes.items():
        for step in range(n_steps):
            folder = Path(root) / f"{fault}-{step}"
            shutil.copytree(start, folder)
            outcome, message = run(study, folder, step, fault)
            if outcome != expected or (outcome == STOPPED and "cannot be" not in message):
                errors.append(f"{fault} at step {step}: {outcome} ({message})")
            stored = {name: each for name, each in read_files(folder).items() if name in complete}
            changed = [
                name
                for name, each in stored.items()
                if each not in (complete[name], files_before.get(name)) and "SHA256SUMS" not in name
            ]
            if changed:
                errors.append(f"{fault} at step {step} leaves {changed[0]} with other bytes")
            outcome, message = run(study, folder)
            if outcome != DONE or read_files(folder) != complete:
                errors.append(f"{fault} at step {step}, then run again: {outcome} ({message})")
            left_over = [path.name for path in folder.rglob(".deadheat.*")]
            if left_over:
                errors.append(f"{fault} at step {step}, then run again: {left_over} are left")
            shutil.rmtree(folder)
    print(f"{len(outcomes) * n_steps} interruptions\n" + "\n".join(errors))  # noqa: T201
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
