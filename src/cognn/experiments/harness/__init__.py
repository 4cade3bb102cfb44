"""What all experiments share: recipes, training with resumption, and the JSON record of every run.

May import ``statistics`` but not the experiments or the pages.  Start with
:class:`~cognn.experiments.harness.runner.ExperimentRunner`, the argument of every experiment's ``run``;
:mod:`~cognn.experiments.harness.record` defines the format of ``results/NAME.json``.
"""
