"""Errors that are not bugs of cognn: bad options, bad data, and runs that cannot continue.

The command line prints the message of a :class:`CognnError` and exits with code 2.  Any other exception is a bug.
This file imports nothing.
"""


class CognnError(Exception):
    """Base class: the message is one line that names the culprit, its value and the remedy."""


class ConfigError(CognnError, ValueError):
    """Invalid option value."""


class DataError(CognnError, ValueError):
    """A dataset or file that is missing, damaged or invalid."""


class RunError(CognnError):
    """A run that cannot continue; its saved state is kept."""


class Diverged(RunError):
    """The loss or the weights became infinite or nan."""


class Lost(RunError):
    """Another process of the same training has ended."""


class Interrupted(Exception):
    """The user asked to stop; the state is saved."""
