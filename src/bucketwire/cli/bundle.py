"""Options that travel together: several commands have them, and `up` hands them on to its parts.

A bundle is a dataclass with a field for each option. A command gets one value instead of many; another
process gets the same choice as variables, by the names that the options read.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

Command = Callable[..., None]


def bundle(
    kind: type, name: str, options: Sequence[Callable[[Command], Command]]
) -> Callable[[Command], Command]:
    """Adds the options to a command, which gets them as one value of that kind, under that name."""
    names = [field.name for field in dataclasses.fields(kind)]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def bundled(*args: Any, **given: Any) -> None:
            chosen = kind(**{each: given.pop(each) for each in names})
            command(*args, **{name: chosen}, **given)

        made: Command = bundled
        for each in reversed(options):
            made = each(made)
        return made

    return decorate


def environment(chosen: Any) -> dict[str, str]:
    """What was chosen, as variables for another process."""
    values = {field.name: getattr(chosen, field.name) for field in dataclasses.fields(chosen)}
    return {f"BUCKETWIRE_{name.upper()}": _text(value) for name, value in values.items() if value is not None}


def _text(value: object) -> str:
    return ",".join(sorted(value)) if isinstance(value, frozenset) else str(value)
