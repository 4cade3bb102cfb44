"""The command line: ``cognn COMMAND``, one file a command.

``main`` dispatches from one table, which also makes the help page and the shell completion.  ``arguments`` parses.
This room may import every other room.  Commands import torch inside their functions, because `cognn --help` must not
wait for it.  Start reading at ``main``.
"""

from cognn.cli.main import main

__all__ = ["main"]
