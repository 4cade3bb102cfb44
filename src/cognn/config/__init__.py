"""Options of a run and of a search: dataclasses with their checks, TOML recipes, and search spaces.

Imports only :mod:`cognn.errors`, and no torch, so that ``cognn --help`` answers at once.  Start with
:mod:`~cognn.config.options`, whose docstrings are also the help of the command line.
"""
