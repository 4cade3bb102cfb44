"""What can go wrong with a run, told to its user."""


class RunError(Exception):
    """A run that cannot go on; the message is one line for the user, and what was good before is still there."""


class Diverged(RunError):
    """The loss or the weights of a run became infinite or nan: its options are to blame."""


class Lost(RunError):
    """Another process of the same training is gone."""


class Interrupted(Exception):
    """The user asked to stop; the state is saved."""
