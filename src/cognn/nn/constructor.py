"""The constructor of a model: two positional sizes, named options, and a record of them."""

import difflib
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

Init = TypeVar("Init", bound=Callable[..., None])


def named_options(init: Init) -> Init:
    """Decorate an ``__init__`` whose options are keyword-only.

    A positional option is refused with the right call, and an unknown option with the nearest names.
    """
    parameters = list(signature(init).parameters.values())[1:]
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    required = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    known = [p.name for p in parameters]

    @wraps(init)
    def build(self: Any, *sizes: Any, **options: Any) -> None:
        name = type(self).__name__
        if len(sizes) > len(positional):
            call = ", ".join([*map(repr, sizes[: len(positional)]), *(f"{option}=..." for option in required)])
            raise TypeError(
                f"{name}: takes {' and '.join(positional)} by position and all else by name, got {len(sizes)}"
                f" positional arguments; write {name}({call})"
            )
        for option in options:
            if option not in known:
                raise TypeError(f"{name}: unknown option {option!r}; did you mean {nearest(option, known)}?")
        init(self, *sizes, **options)

    return build  # type: ignore[return-value]


def nearest(name: str, known: list[str]) -> str:
    """The three known names that are most like a mistyped one."""
    return " or ".join(difflib.get_close_matches(name, known, n=3, cutoff=0))
