"""``cognn data check`` and ``cognn data info``: problems of the user's files, and statistics of a dataset.

Imports the rest of :mod:`cognn.data`.  Start with :func:`~cognn.data.check.files.check_files`.
"""
