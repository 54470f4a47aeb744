"""The policy of a form: what its fields may be, until when. Pure: a document and fields in, a verdict out.

Names of fields are compared without case; the words of the document itself are not. Every field must be
covered by a condition, so that nothing can be added to a form that was signed.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from bucketwire.errors import Denied, InvalidRequest

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)
_LENGTH = "content-length-range"
_EQUAL = "eq"
_STARTS_WITH = "starts-with"
_COVERED_ALREADY = frozenset({"policy", "signature", "x-amz-signature", "awsaccesskeyid", "file"})
_NEVER_MATTERS = ("x-ignore-", "x-amz-checksum-")


@dataclass(frozen=True, slots=True)
class Match:
    """A condition on one field."""

    operator: str
    field: str
    value: str

    def holds(self, fields: Mapping[str, str]) -> bool:
        """Whether the field is as the condition says; one that is missing is not."""
        text = fields.get(self.field)
        if text is None:
            return False
        return text.startswith(self.value) if self.operator == _STARTS_WITH else text == self.value


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy document that was read."""

    expiration: datetime
    matches: tuple[Match, ...]
    least_bytes: int = 0
    most_bytes: int | None = None

    def check_fields(self, fields: Mapping[str, str], now: datetime) -> None:
        """Raise `Denied` unless the policy allows the fields now."""
        if now >= self.expiration:
            raise Denied("Invalid according to Policy: Policy expired.")
        for match in self.matches:
            if not match.holds(fields):
                raise Denied(
                    "Invalid according to Policy: Policy Condition failed:"
                    f' ["{match.operator}", "${match.field}", "{match.value}"]'
                )
        covered = {match.field for match in self.matches} | _COVERED_ALREADY
        extra = [name for name in fields if name not in covered and not name.startswith(_NEVER_MATTERS)]
        if extra:
            raise Denied(f"Invalid according to Policy: Extra input fields: {extra[0]}")

    def check_room(self, size_bytes: int) -> None:
        """Raise when a file of at least that size is too large."""
        if self.most_bytes is not None and size_bytes > self.most_bytes:
            raise InvalidRequest(
                "Your proposed upload exceeds the maximum allowed size",
                code="EntityTooLarge",
                fields={"ProposedSize": str(size_bytes), "MaxSizeAllowed": str(self.most_bytes)},
            )

    def check_size(self, size_bytes: int) -> None:
        """Raise unless a file of that size is allowed."""
        self.check_room(size_bytes)
        if size_bytes < self.least_bytes:
            raise InvalidRequest(
                "Your proposed upload is smaller than the minimum allowed size",
                code="EntityTooSmall",
                fields={"ProposedSize": str(size_bytes), "MinSizeAllowed": str(self.least_bytes)},
            )


def read_policy(encoded: str) -> Policy:
    """The policy in a field of a form; `InvalidRequest` with InvalidPolicyDocument."""
    try:
        document = msgspec.json.decode(b64decode(encoded, validate=True))
    except (binascii.Error, ValueError, msgspec.DecodeError) as problem:
        raise _invalid("it is not JSON in base64") from problem
    if not isinstance(document, dict):
        raise _invalid("it is not an object")
    conditions = document.get("conditions")
    if not isinstance(conditions, list):
        raise _invalid("it has no list of conditions")
    expiration = _read_time(document.get("expiration"))
    matches: list[Match] = []
    least, most = 0, None
    for condition in conditions:
        if isinstance(condition, list) and _operator(condition) == _LENGTH:
            least, most = _read_range(condition)
        else:
            matches.extend(_read_matches(condition))
    return Policy(expiration, tuple(matches), least, most)


def _read_time(text: Any) -> datetime:
    if not isinstance(text, str) or _TIME.fullmatch(text) is None:
        raise _invalid("it has no valid expiration")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as problem:
        raise _invalid("it has no valid expiration") from problem


def _operator(condition: list[Any]) -> str:
    return str(condition[0]).lower() if condition else ""


def _read_range(condition: list[Any]) -> tuple[int, int]:
    numbers = [_read_number(each) for each in condition[1:]]
    if len(numbers) != len(("least", "most")):
        raise _invalid(f"{_LENGTH} needs two numbers")
    return numbers[0], numbers[1]


def _read_number(value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal() and len(text) < len(str(2**63))):
        raise _invalid(f"{_LENGTH} needs two numbers")
    return int(text)


def _read_matches(condition: Any) -> list[Match]:
    if isinstance(condition, dict) and condition:
        return [Match(_EQUAL, name.lower(), _read_text(value)) for name, value in condition.items()]
    if isinstance(condition, list) and len(condition) == len(("operator", "field", "value")):
        operator, name = _operator(condition), condition[1]
        if operator in {_EQUAL, _STARTS_WITH} and isinstance(name, str) and name.startswith("$"):
            return [Match(operator, name[1:].lower(), _read_text(condition[2]))]
    raise _invalid("one of its conditions cannot be read")


def _read_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _invalid("the value of a condition is not a text")


def _invalid(reason: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid Policy: {reason}.", code="InvalidPolicyDocument")
