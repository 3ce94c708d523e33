"""Load queries, candidates and judgements from a hub id, a folder or a file.

The packages that read the hub (``datasets``), build BM25
candidates (``bm25s``) and serve ``ir_datasets:`` ids are imported only when needed.
"""

from deadheat.lab.datasets.dataset import RetrievalDataset
from deadheat.lab.datasets.load import load_dataset, read_dataset
from deadheat.lab.datasets.write import write_dataset

__all__ = ["RetrievalDataset", "load_dataset", "read_dataset", "write_dataset"]
