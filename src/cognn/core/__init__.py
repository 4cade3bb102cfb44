"""Sorted graphs, gated sparse products with their gradients, and random numbers.

Knows neither actions nor layers.  May import ``errors``, ``files`` and ``config``, and needs none of them.

Start with ``graph.py``: an ``Adjacency`` is rectangular (receivers by senders), a ``Graph`` is square.  ``ops.py``
defines the products and their gradients.  ``kernels.py`` is the only file that knows how sparsity is computed.
"""
