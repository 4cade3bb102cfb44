"""The experiments whose result is a figure, one a file; :data:`cognn.experiments.FIGURES` lists them.

Each defines ``LIMITS`` (what a budget allows) and ``run(runner)``.  May import ``experiments.harness`` and
``statistics``.  Start with ``kept_edges``; ``proof_networks`` holds the networks that ``propositions``
measures.
"""
