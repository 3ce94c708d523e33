"""Time of importing deadheat and of `deadheat --help`, in new processes.

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
"""Code, and limit in seconds."""
YARDSTICKS = {"python": "pass", "import numpy": "import numpy", "import polars": "import polars"}


def time_code(code: str) -> float:
    """Return the seconds of a new Python process that runs the code."""
    start = time.perf_counter()
    subprocess.run([*PYTHON, code], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def measure_times(repeat: int = 7) -> dict[str, float]:
    """Return the shortest time of each; processes alternate, so that load affects all of them."""
    codes = YARDSTICKS | {name: code for name, (code, _) in OURS.items()}
    best = dict.fromkeys(codes, float("inf"))
    for _ in range(repeat):
        for name, code in codes.items():
            best[name] = min(best[name], time_code(code))
    return best


def bench_starting(report: Any) -> None:
    """Add rows to the report of `bench.py`."""
    times = measure_times()
    for name, (_, bar) in OURS.items():
        report.add_deadheat(f"starting, ≤ {bar:g} s", times[name], name)
        for other in YARDSTICKS:
            report.add_ratio(other, times[name], times[other])
        if times[name] > bar:
            report.missed.append(f"{name}: {times[name]:.2f} s instead of ≤ {bar:g} s")


def main() -> None:
    times = measure_times()
    for name, (_, bar) in OURS.items():
        ratios = ", ".join(f"{times[name] / times[other]:.2f} × {other}" for other in YARDSTICKS)
        verdict = "reached" if times[name] <= bar else "missed"
        print(f"{name}: {times[name]:.3f} s (bar: {bar:g} s, {verdict}); {ratios}")


if __name__ == "__main__":
    main()
