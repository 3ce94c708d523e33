"""From a hub id, a folder or a file to queries, candidates and judgements.

Nothing here knows of models. The packages that read the hub (``datasets``), build BM25
candidates (``bm25s``) and serve ``ir_datasets:`` ids are imported only when asked for.
"""

from deadheat.datasets.dataset import RetrievalDataset
from deadheat.datasets.load import load_dataset
from deadheat.datasets.write import write_dataset

__all__ = ["RetrievalDataset", "load_dataset", "write_dataset"]
