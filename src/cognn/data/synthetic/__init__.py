"""Generated datasets, one task a file; each is a function of its parameters and a seed, and knows nothing of models.

Imports :mod:`cognn.data.dataset` and the core graph only.  Start with :mod:`~cognn.data.synthetic.cycles`.
"""
