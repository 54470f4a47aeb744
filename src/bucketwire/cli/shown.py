"""How times, ages and texts of customers look in a terminal, and how times are written in options."""

import re
import time
from datetime import UTC, datetime

import click

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d{1,9})([smhdw])")


def when_ns(text: str) -> int:
    """The nanoseconds since 1970 of a time (`2030-01-31T00:00:00Z`) or an age (`90s`, `2h`, `7d`).

    A time without a zone is in UTC.
    """
    if age := _AGE.fullmatch(text):
        return max(0, time.time_ns() - int(age[1]) * _UNIT_SECONDS[age[2]] * 1_000_000_000)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a time such as 2030-01-31T00:00:00Z nor an age such as 2h or 7d"
        ) from None
    utc = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0, round(utc.timestamp() * 1000) * 1_000_000)


def shown_time(at_ns: int | None) -> str | None:
    """As ISO 8601 in UTC, with milliseconds; None where there is no time."""
    if not at_ns:
        return None
    return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown_age(seconds: float) -> str:
    """In the largest unit that leaves a number above one: `12s`, `5m`, `3h`, `9d`."""
    for unit in ("d", "h", "m"):
        if seconds >= 2 * _UNIT_SECONDS[unit]:
            return f"{seconds / _UNIT_SECONDS[unit]:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"


def printable(text: str) -> str:
    """The text without characters that a terminal would obey: they are shown as escapes."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )
