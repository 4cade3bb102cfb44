"""Training of one split: mini-batches, the loop, losses and scores, checkpoints.

May import what comes before it: models, data and the collectives of ``parallel``; knows nothing of runs, which are
folders of several splits.  Start with :func:`cognn.train.loop.train_split`; :mod:`~cognn.train.batcher` makes the
mini-batches, and :mod:`~cognn.train.checkpoint` holds the state that a split resumes from.
"""
