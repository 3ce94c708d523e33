"""Fuzz the readers: `make fuzz`, or `python fuzz/fuzz.py --seconds 600 --target json`.

With atheris the fuzzing is guided by coverage; without it the inputs are mutations of the corpus.
A failing input is stored in fuzz/found with its traceback, and fuzzing continues. The exit status
is 1 if any input failed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
CORPUS, FOUND = HERE / "corpus", HERE / "found"
MAX_BYTES = 4096
"""Maximum length of an input."""
TOKENS = (
    b'nan|inf|-0|1e999|1_0|\\ud800|null|true|{|}|[|]|,|#|"|\t| |\r\n|\n|\x00|\xff|\xef\xbc\x91|'
    b"9999999999999999999999999999999999999999"
).split(b"|")
"""Tokens that are inserted into inputs."""


def main() -> int:
    """Fuzz each target in a separate process, with an equal share of the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="total for all targets")
    parser.add_argument("--inputs", type=int, help="number of inputs per target, with a fixed seed")
    parser.add_argument("--target", action="append", help="name of a target; repeatable")
    parser.add_argument("--without-atheris", action="store_true", help="only mutate the corpus")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    guided = find_spec("atheris") is not None and not options.without_atheris
    if options.child:
        (_fuzz_with_atheris if guided else _fuzz_by_mutation)(
            options.child, options.seconds, options.inputs
        )
        return 0
    names = options.target or _target_names()
    print(f"{'atheris' if guided else 'mutations of the corpus'}, {len(names)} targets", flush=True)
    total = failing = 0
    for name in names:
        seconds = options.seconds / len(names) if options.inputs is None else 3600
        inputs, failed = _fuzz(name, seconds, guided, options.inputs)
        total, failing = total + inputs, failing + failed
        print(f"{name:12} {inputs:12,} inputs, {failed} failing", flush=True)
    print(f"{'all':12} {total:12,} inputs, {failing} failing (stored in {FOUND})")
    return int(failing > 0)


def _target_names() -> list[str]:
    from targets import TARGETS

    return list(TARGETS)


def _fuzz(name: str, seconds: float, guided: bool, most: int | None) -> tuple[int, int]:
    """Fuzz a target until its time is over; restart the process if it crashes."""
    options = [] if guided else ["--without-atheris"]
    options += [] if most is None else ["--inputs", str(most)]
    before = _list_failures(name)
    end, inputs = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 1:
        child = subprocess.run(
            [sys.executable, __file__, *options, "--child", name, "--seconds", str(left)],
            env={**os.environ, "POLARS_MAX_THREADS": "1"},  # inputs are small
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        counts = re.findall(r"^#(\d+)\s|executed_units: (\d+)", child.stderr, re.MULTILINE)
        inputs += max((int(one or other) for one, other in counts), default=0)
        if child.returncode:  # killed, out of memory or timed out: the process crashed
            if not guided:  # atheris stores the input itself
                _store_failure(name, b"", child.stderr)
            if not counts:
                print(child.stderr[-2000:])
                break
        if most is not None:
            break
    return inputs, len(_list_failures(name) - before)


def _fuzz_with_atheris(name: str, seconds: float, most: int | None) -> None:
    """Fuzz a target with atheris, guided by coverage."""
    import atheris

    with atheris.instrument_imports(include=["deadheat"], enable_loader_override=False):
        import targets

    def check(data: bytes) -> None:
        _check_input(targets, name, data)

    with tempfile.TemporaryDirectory() as scratch:
        for i, data in enumerate([*targets.seeds(name), *_read_corpus(name)]):
            (Path(scratch) / str(i)).write_bytes(data)
        FOUND.mkdir(exist_ok=True)
        options = [f"-max_total_time={int(seconds)}", f"-max_len={MAX_BYTES}", "-timeout=20"]
        options += [] if most is None else [f"-runs={most}", "-seed=1"]
        options += [
            "-rss_limit_mb=4096",
            "-print_final_stats=1",
            f"-artifact_prefix={FOUND}/{name}-",
        ]
        dictionary = Path(scratch) / "tokens"
        dictionary.write_text("".join(f'"{_escape(word)}"\n' for word in TOKENS))
        folder = Path(scratch) / "inputs"
        folder.mkdir()
        for path in Path(scratch).glob("[0-9]*"):
            path.rename(folder / path.name)
        atheris.Setup([sys.argv[0], *options, f"-dict={dictionary}", str(folder)], check)
        atheris.Fuzz()


def _fuzz_by_mutation(name: str, seconds: float, most: int | None) -> None:
    """Fuzz a target with random mutations of its corpus."""
    import targets

    rng = random.Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
    known = [*targets.seeds(name), *_read_corpus(name)]
    end, inputs = time.monotonic() + seconds, 0
    while time.monotonic() < end and inputs != most:
        data = bytearray(rng.choice(known))
        for _ in range(rng.randint(1, 4)):
            i, j = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
            other = rng.choice(known)
            k = rng.randint(0, len(other))
            change = rng.randrange(5)
            if change == 0 and data:
                data[min(i, len(data) - 1)] ^= 1 << rng.randrange(8)
            elif change == 1:
                del data[i:j]
            elif change == 2:
                data[i:i] = rng.choice(TOKENS)
            elif change == 3:
                data[i:j] = other[k : k + 64]
            else:
                data[i:i] = data[i:j]
        _check_input(targets, name, bytes(data[:MAX_BYTES]))
        inputs += 1
    print(f"executed_units: {inputs}", file=sys.stderr)


def _check_input(targets: object, name: str, data: bytes) -> None:
    """Check one input, and store it if it fails."""
    try:
        targets.check(name, data)  # type: ignore[attr-defined]
    except KeyboardInterrupt:
        raise
    except BaseException:  # a Rust panic is not an Exception
        _store_failure(name, data, traceback.format_exc())


def _store_failure(name: str, data: bytes, trace: str) -> None:
    """Store a failing input, one per location of the failure."""
    locations = re.findall(r'File "[^"]*?([\w.]+)", line (\d+)', trace)[-3:]
    kind = re.findall(r"^\S*(?:Error|Exception|Warning)\b", trace, re.MULTILINE)[-1:]
    digest = hashlib.sha256(repr((locations, kind)).encode()).hexdigest()[:10]
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{name}.{digest}"
    if not path.exists():
        path.write_bytes(data)
        path.with_suffix(f".{digest}.txt").write_text(trace)


def _list_failures(name: str) -> set[Path]:
    return {path for path in FOUND.glob(f"{name}[.-]*") if path.suffix != ".txt"}


def _read_corpus(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def _escape(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    sys.exit(main())
