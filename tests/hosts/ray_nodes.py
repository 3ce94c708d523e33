"""Real Ray clusters of two nodes on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deadheat.engines.cluster import RayCluster


@pytest.fixture(scope="module")
def two_nodes():
    """A cluster of a head and another node with one CPU each."""
    import ray
    from ray.cluster_utils import Cluster

    folder = str(Path(__file__).parent)  # workers import the test modules from here
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    os.environ["OMP_NUM_THREADS"] = "1"
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="module")
def other_nodes():
    """Another cluster of two nodes; each declares a GPU."""
    import ray
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 1})
    nodes.add_node(num_cpus=1, num_gpus=1)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def engine(two_nodes):
    import ray

    ray.shutdown()
    return RayCluster(two_nodes.address, workers=2)
