"""Readers of the user's data: tables, GraphML, ``.npz`` archives and PyG objects, each to a ``Dataset``.

Imports ``tables``, ``splitting`` and ``assemble``.  Start with :func:`~cognn.data.readers.files.load_files`.
"""
