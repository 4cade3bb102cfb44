"""The constructor of a model: two positional sizes, named options, and a record of them."""

import difflib
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from cognn.nn.options.resolve import is_remembered, option_name, remembered

Init = TypeVar("Init", bound=Callable[..., None])


def named_options(init: Init) -> Init:
    """Decorate an ``__init__`` whose options are keyword-only.

    A positional option is refused with the right call, and an unknown option with the nearest names.  The object
    stores its options in ``self.options``, as JSON-serialisable values.
    """
    parameters = list(signature(init).parameters.values())[1:]
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    required = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    known = [p.name for p in parameters]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

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
        given = {**defaults, **dict(zip(positional, sizes, strict=False)), **options}
        self.options = {option: _plain(value) for option, value in given.items()}

    return build  # type: ignore[return-value]


class Unnamed(str):
    """An option that cannot be saved by name, such as a lambda; the string describes it."""


def _plain(value: Any) -> Any:
    value = remembered("options", value) if isinstance(value, str) and is_remembered(value) else value
    if callable(value):
        return option_name(value) or Unnamed(f"{getattr(value, '__name__', value)!s}")
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a scalar of NumPy
        return value.item()
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def nearest(name: str, known: list[str]) -> str:
    """The three known names that are most like a mistyped one."""
    return " or ".join(difflib.get_close_matches(name, known, n=3, cutoff=0))
