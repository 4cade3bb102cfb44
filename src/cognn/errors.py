"""What can go wrong through no fault of cognn, each told to the user in one line.

The command line prints the message of an :class:`CognnError` and exits with code 2.  Any other exception is a bug.
This file imports nothing.
"""


class CognnError(Exception):
    """Base class: the message is one line that names the culprit, its value and the remedy."""


class ConfigError(CognnError, ValueError):
    """Invalid option value."""


class DataError(CognnError, ValueError):
    """A dataset or file that is missing, damaged or not what it should be."""


class RunError(CognnError):
    """A run that cannot continue; what was saved before is kept."""


class Diverged(RunError):
    """The loss or the weights of a run became infinite or nan."""


class Lost(RunError):
    """Another process of the same training is gone."""


class Interrupted(Exception):
    """The user asked to stop; the state is saved."""
