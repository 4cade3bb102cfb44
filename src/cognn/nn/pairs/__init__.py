"""Outputs for pairs of nodes: a decoder of two states, and the model that calls it.

Start with ``model.PairModel``.
"""
