"""Graphs with several relations: ``structure`` has the edges of each, ``sums`` their sums with a matrix per relation."""
