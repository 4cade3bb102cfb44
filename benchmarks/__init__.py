"""Benchmarks: each prints ratios that were measured in one interleaved run, with the goal beside the figure.

``python -m benchmarks`` runs them all, ``python -m benchmarks epoch spmm`` the named ones.
"""
