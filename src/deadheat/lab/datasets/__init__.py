"""Load queries, candidates and judgements from a hub id, a folder or a file.

The packages for the hub (``datasets``), BM25 candidates (``bm25s``) and ``ir_datasets:`` ids are
imported only when needed.
"""

from deadheat.lab.datasets.dataset import RetrievalDataset as RetrievalDataset
from deadheat.lab.datasets.load import load_dataset as load_dataset
from deadheat.lab.datasets.write import write_dataset as write_dataset
