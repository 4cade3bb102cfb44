"""Runs: folders with the options, checkpoints, logs and results of all selected splits of a dataset.

May import ``train`` and what comes before it.  Start with :func:`cognn.run.train.train_run`, which ``cognn train`` and
:func:`cognn.run.fit.fit` call.  A finished run is opened by :func:`cognn.run.fit.open_run`, scored again by
:mod:`~cognn.run.evaluate`, and applied to any graph by :mod:`~cognn.run.predict`.
"""
