"""Fuzz the readers: `make fuzz`, or `python fuzz/fuzz.py --seconds 600 --target json`.

With atheris the inputs follow the code that they reach; without it they are mutations of the
corpus. A failing input is kept in fuzz/found with its traceback, and fuzzing goes on; the exit
status says whether there was one.
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
LONGEST = 4096
"""Bytes of an input."""
WORDS = (
    b'nan|inf|-0|1e999|1_0|\\ud800|null|true|{|}|[|]|,|#|"|\t| |\r\n|\n|\x00|\xff|\xef\xbc\x91|'
    b"9999999999999999999999999999999999999999"
).split(b"|")
"""What is put between the bytes of an input."""


def main() -> int:
    """Fuzz each target for its share of the time, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="for all targets together")
    parser.add_argument("--inputs", type=int, help="so many for each target, always the same")
    parser.add_argument("--target", action="append", help="one of the targets; repeatable")
    parser.add_argument("--without-atheris", action="store_true", help="mutate the corpus only")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    guided = find_spec("atheris") is not None and not options.without_atheris
    if options.child:
        (_guided if guided else _mutating)(options.child, options.seconds, options.inputs)
        return 0
    names = options.target or _names()
    print(f"{'atheris' if guided else 'mutations of the corpus'}, {len(names)} targets", flush=True)
    total = failing = 0
    for name in names:
        seconds = options.seconds / len(names) if options.inputs is None else 3600
        inputs, found = _fuzz(name, seconds, guided, options.inputs)
        total, failing = total + inputs, failing + found
        print(f"{name:12} {inputs:12,} inputs, {found} failing", flush=True)
    print(f"{'all':12} {total:12,} inputs, {failing} failing (kept in {FOUND})")
    return int(failing > 0)


def _names() -> list[str]:
    from targets import TARGETS

    return list(TARGETS)


def _fuzz(name: str, seconds: float, guided: bool, most: int | None) -> tuple[int, int]:
    """Run a target until its time is over, again and again if the process itself dies."""
    words = [] if guided else ["--without-atheris"]
    words += [] if most is None else ["--inputs", str(most)]
    before = _kept(name)
    end, inputs = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 1:
        child = subprocess.run(
            [sys.executable, __file__, *words, "--child", name, "--seconds", str(left)],
            env={**os.environ, "POLARS_MAX_THREADS": "1"},  # small inputs
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        counts = re.findall(r"^#(\d+)\s|executed_units: (\d+)", child.stderr, re.MULTILINE)
        inputs += max((int(one or other) for one, other in counts), default=0)
        if child.returncode:  # killed, out of memory or out of time: the library below gave up
            if not guided:  # atheris keeps the input itself
                _keep(name, b"", child.stderr)
            if not counts:
                print(child.stderr[-2000:])
                break
        if most is not None:
            break
    return inputs, len(_kept(name) - before)


def _guided(name: str, seconds: float, most: int | None) -> None:
    """Let atheris choose the inputs."""
    import atheris

    with atheris.instrument_imports(include=["deadheat"], enable_loader_override=False):
        import targets

    def one(data: bytes) -> None:
        _try(targets, name, data)

    with tempfile.TemporaryDirectory() as grown:
        for i, data in enumerate([*targets.seeds(name), *_stored(name)]):
            (Path(grown) / str(i)).write_bytes(data)
        FOUND.mkdir(exist_ok=True)
        words = [f"-max_total_time={int(seconds)}", f"-max_len={LONGEST}", "-timeout=20"]
        words += [] if most is None else [f"-runs={most}", "-seed=1"]
        words += ["-rss_limit_mb=4096", "-print_final_stats=1", f"-artifact_prefix={FOUND}/{name}-"]
        dictionary = Path(grown) / "words"
        dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS))
        folder = Path(grown) / "inputs"
        folder.mkdir()
        for path in Path(grown).glob("[0-9]*"):
            path.rename(folder / path.name)
        atheris.Setup([sys.argv[0], *words, f"-dict={dictionary}", str(folder)], one)
        atheris.Fuzz()


def _mutating(name: str, seconds: float, most: int | None) -> None:
    """Change, cut and join the inputs of the corpus at random."""
    import targets

    chance = random.Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
    known = [*targets.seeds(name), *_stored(name)]
    end, inputs = time.monotonic() + seconds, 0
    while time.monotonic() < end and inputs != most:
        data = bytearray(chance.choice(known))
        for _ in range(chance.randint(1, 4)):
            i, j = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
            other = chance.choice(known)
            k = chance.randint(0, len(other))
            change = chance.randrange(5)
            if change == 0 and data:
                data[min(i, len(data) - 1)] ^= 1 << chance.randrange(8)
            elif change == 1:
                del data[i:j]
            elif change == 2:
                data[i:i] = chance.choice(WORDS)
            elif change == 3:
                data[i:j] = other[k : k + 64]
            else:
                data[i:i] = data[i:j]
        _try(targets, name, bytes(data[:LONGEST]))
        inputs += 1
    print(f"executed_units: {inputs}", file=sys.stderr)


def _try(targets: object, name: str, data: bytes) -> None:
    """Give one input to a target, and keep it if it fails."""
    try:
        targets.check(name, data)  # type: ignore[attr-defined]
    except KeyboardInterrupt:
        raise
    except BaseException:  # a panic below Python is no Exception
        _keep(name, data, traceback.format_exc())


def _keep(name: str, data: bytes, why: str) -> None:
    """Keep an input, one for each place where something fails."""
    places = re.findall(r'File "[^"]*?([\w.]+)", line (\d+)', why)[-3:]
    kind = re.findall(r"^\S*(?:Error|Exception|Warning)\b", why, re.MULTILINE)[-1:]
    mark = hashlib.sha256(repr((places, kind)).encode()).hexdigest()[:10]
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{name}.{mark}"
    if not path.exists():
        path.write_bytes(data)
        path.with_suffix(f".{mark}.txt").write_text(why)


def _kept(name: str) -> set[Path]:
    return {path for path in FOUND.glob(f"{name}[.-]*") if path.suffix != ".txt"}


def _stored(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    sys.exit(main())
