"""Significance tests on scores, and how tables print them: pure functions of numbers and recorded runs.

Imports only ``config.metrics``, and serves ``comparison`` and ``experiments``.  Start with ``significance`` (Welch's
test against a published score, the paired t-test, Holm's correction); ``resampled`` has the paired test for random
splits, which overlap; ``paired_gains`` compares the runs of two models, ``formatting`` prints scores.
"""
