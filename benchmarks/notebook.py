"""Run a notebook of the examples and store its outputs: `python benchmarks/notebook.py NOTEBOOK`.

Needs nbclient and ipykernel. Progress bars, warnings and times of day are left out: they belong to
the machine, not to the results.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat


def main(path: Path) -> None:
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:  # for the files that it writes
        client = NotebookClient(notebook, resources={"metadata": {"path": folder}}, timeout=None)
        client.execute()
    nbformat.write(cleaned(notebook), path)


def cleaned(notebook: Any) -> Any:
    """Keep what was printed and shown."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


if __name__ == "__main__":
    main(Path(sys.argv[1]))
