"""What can go wrong with a run, told to its user."""


class RunError(Exception):
    """A run that cannot go on; the message is one line for the user, and what was good before is still there."""


class Interrupted(Exception):
    """The user asked to stop; the state is saved."""
