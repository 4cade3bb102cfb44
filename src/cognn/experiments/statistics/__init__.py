"""Significance tests on scores, and how tables print them: pure functions of numbers and recorded runs.

Imports no other part of ``experiments``.  Start with ``significance`` (Welch's test against a published score, the
paired t-test, Holm's correction); ``paired_gains`` applies it to the runs of two models, ``formatting`` prints scores.
"""
