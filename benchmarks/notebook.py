"""Run a notebook of the examples and store its outputs: `python benchmarks/notebook.py NOTEBOOK`.

Needs nbclient and ipykernel. Progress bars, warnings and times of execution are removed, because
they differ between machines.
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
    with tempfile.TemporaryDirectory() as folder:  # for files that the notebook writes
        client = NotebookClient(notebook, resources={"metadata": {"path": folder}}, timeout=None)
        client.execute()
    nbformat.write(clean_notebook(notebook), path)


def clean_notebook(notebook: Any) -> Any:
    """Remove standard error and times of execution."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


if __name__ == "__main__":
    main(Path(sys.argv[1]))
