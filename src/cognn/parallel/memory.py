"""The memory of this machine, to refuse what cannot fit before it is spent."""

import os

from cognn.errors import ConfigError


def total_memory() -> int:
    """Bytes of main memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_memory(size: int, what: str, remedy: str) -> None:
    """Raise :class:`ConfigError` if ``what`` takes more bytes than the machine has; ``size`` is a lower bound."""
    if size > total_memory():
        raise ConfigError(
            f"{what} takes at least {size / 2**30:,.0f} GiB, this machine has {total_memory() / 2**30:,.0f}; {remedy}"
        )
