"""Tables of nodes, edges and graphs: columns, ids, features, targets, and the schema that a model remembers.

Imports :mod:`cognn.data.dataset`, config and files.  Start with :mod:`~cognn.data.tables.table`, one CSV or Parquet
file, then :mod:`~cognn.data.tables.roles`, which says what each column is for.
"""
