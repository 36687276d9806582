"""Division of work: trees of links, their costs, and parts for several workers. Independent of threads, ranks, kernels
and mechanisms: it works on arrays of parents and seconds.

`tree` heavy paths; `groups` links that stay together; `clusters` the assembly tree; `costs` the cost model; `chunks`
parts with at most two boundary links; `predict` the simulated timeline of an evaluation; `partition` the search; `jung`
the distribution of [J], `start_order` its chunks, joined as its branches start each other; `assembly` the order of
joints that follows.
"""

from bunraku.scheduling.chunks import Chunks, cut_at
from bunraku.scheduling.clusters import Clusters, clusters
from bunraku.scheduling.costs import Costs, paper
from bunraku.scheduling.forest import Tree
from bunraku.scheduling.groups import groups
from bunraku.scheduling.jung import Distribution, distribute
from bunraku.scheduling.partition import Partition, Partitions
from bunraku.scheduling.predict import Prediction, predict

__all__ = ["Chunks", "Clusters", "Costs", "Distribution", "Partition", "Partitions", "Prediction", "Tree",
           "clusters", "cut_at", "distribute", "groups", "paper", "predict"]
