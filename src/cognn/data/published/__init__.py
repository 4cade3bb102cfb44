"""Published datasets, one collection a file, from the cache, a mirror folder or the network.

Imports ``dataset``, ``splitting`` and ``assemble``.  Start with :mod:`~cognn.data.published.planetoid`, the shortest;
:mod:`~cognn.data.published.raw_files` finds the files.
"""
