"""How long it takes to begin: importing deadheat, and its help, in processes of their own.

python benchmarks/starting.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

PYTHON = (sys.executable, "-c")
HELP = "import sys; sys.argv = ['deadheat', '--help']; from deadheat.cli import main; main()"
OURS = {
    "import deadheat": ("import deadheat", 0.2),
    "deadheat --help": (HELP, 0.25),
}
"""What is begun, and the seconds that it may take."""
YARDSTICKS = {"python": "pass", "import numpy": "import numpy", "import polars": "import polars"}


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([*PYTHON, code], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def measured(repeat: int = 7) -> dict[str, float]:
    """Shortest time of each, taken in turns so that all meet the same machine."""
    codes = YARDSTICKS | {name: code for name, (code, _) in OURS.items()}
    best = dict.fromkeys(codes, float("inf"))
    for _ in range(repeat):
        for name, code in codes.items():
            best[name] = min(best[name], seconds(code))
    return best


def bench_starting(report: Any) -> None:
    """Add a section to the table of `bench.py`."""
    times = measured()
    for name, (_, bar) in OURS.items():
        report.own(f"starting, ≤ {bar:g} s", times[name], name)
        for other in YARDSTICKS:
            report.ratio(other, times[name], times[other])
        if times[name] > bar:
            report.missed.append(f"{name}: {times[name]:.2f} s instead of ≤ {bar:g} s")


def main() -> None:
    times = measured()
    for name, (_, bar) in OURS.items():
        ratios = ", ".join(f"{times[name] / times[other]:.2f} × {other}" for other in YARDSTICKS)
        verdict = "reached" if times[name] <= bar else "missed"
        print(f"{name}: {times[name]:.3f} s (bar: {bar:g} s, {verdict}); {ratios}")


if __name__ == "__main__":
    main()
