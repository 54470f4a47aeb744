"""The installation that speaks in messages: its dialect and its names."""

from dataclasses import dataclass

from bucketwire.event.dialect import Dialect


@dataclass(frozen=True, slots=True)
class Installation:
    """What all messages of one installation have in common."""

    dialect: Dialect
    uuid: str = ""
    """Tells it from others, in the COS format."""
    name: str = ""
    """What the operator calls it; empty when it has no name."""
