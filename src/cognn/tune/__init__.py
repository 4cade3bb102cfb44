"""Hyperparameter search: ``cognn tune``, with Optuna.

A study is a folder of trials, and a trial is a run of :mod:`cognn.train` that sees no test targets.  May import
everything up to ``run``.  Start with :func:`cognn.tune.search.tune`; :mod:`~cognn.tune.study` decides which process
trains which trial, and :mod:`~cognn.tune.report` writes the result.
"""

from cognn.errors import need

need("optuna", "tune", "tune")  # for every module here
