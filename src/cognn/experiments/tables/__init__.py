"""The experiments whose result is a table, one a file; :data:`cognn.experiments.TABLES` lists them.

Each defines ``LIMITS`` (what a budget allows), ``run(runner)`` and, where the paper gives scores, ``PUBLISHED``.  May
import ``experiments.harness`` and ``statistics``.  Start with ``homophilic``, the shortest.
"""
