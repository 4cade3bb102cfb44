"""Mini-batches: batches of graphs, partitions, induced subgraphs and sampled neighbourhoods.

Imports :mod:`cognn.data.dataset` and the core graph.  Start with :mod:`~cognn.data.sampling.batches`, whose ``Batch``
is what all of them return.
"""
