"""What can go wrong with a run, told to its user."""


class RunError(Exception):
    """A run that cannot go on; the message is one line for the user, and what was good before is still there."""


class Diverged(RunError):
    """The loss or the weights of a run became infinite or nan: its options are to blame."""


class Interrupted(Exception):
    """The user asked to stop; the state is saved."""
