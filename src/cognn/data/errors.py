"""The error of a dataset that cannot be had or read."""


class DataError(ValueError):
    """One line that names the dataset, file or option at fault and says what to do."""
