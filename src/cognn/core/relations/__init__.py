"""Graphs with several relations: ``structure`` has the edges of each, ``sums`` adds messages with a matrix for each."""
