"""Files of any content: atomic writes, locks, JSON, tensors, mapped arrays, and reading files that may be damaged.

Imports only :mod:`cognn.errors`.  Start with :mod:`~cognn.files.atomic`, through which every file is written; read
untrusted files inside :func:`~cognn.files.safe_read.data_errors`.
"""
