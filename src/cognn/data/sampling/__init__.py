"""Mini-batches: batches of graphs, sampled neighbourhoods, and partitions of one graph.

May import what comes before ``data``, and :mod:`cognn.data.dataset`.  Knows nothing of models and training:
:class:`cognn.train.batcher.Batcher` draws the items and moves the batches to a device.  Start with
:class:`~cognn.data.sampling.batches.Batch`, which all of them return.
"""
