"""Conditions in the headers of a request: `If-Match` and the like."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bucketwire.errors import InvalidRequest
from bucketwire.metabase.values import Condition, StoredObject


def write_condition(asked: Mapping[str, Any]) -> Condition:
    """What a write asks of the current object."""
    return Condition(
        if_match=_bare(asked["IfMatch"]) if "IfMatch" in asked else None,
        if_none_match=_bare(asked["IfNoneMatch"]) if "IfNoneMatch" in asked else None,
    )


def not_modified(asked: Mapping[str, Any], stored: StoredObject) -> bool:
    """Whether the client has it already; raises PreconditionFailed when its conditions do not hold.

    A condition on the ETag comes before the one on the time that says the same: RFC 9110, section 13.2.2.
    """
    created = created_at(stored)
    if "IfMatch" in asked:
        if not names_etag(asked["IfMatch"], stored.etag):
            raise precondition_failed("If-Match")
    elif "IfUnmodifiedSince" in asked and created > asked["IfUnmodifiedSince"]:
        raise precondition_failed("If-Unmodified-Since")
    if "IfNoneMatch" in asked:
        return names_etag(asked["IfNoneMatch"], stored.etag)
    return "IfModifiedSince" in asked and created <= asked["IfModifiedSince"]


def check_copy_source(asked: Mapping[str, Any], stored: StoredObject) -> None:
    """Raises PreconditionFailed unless the `x-amz-copy-source-if-*` conditions hold of the source."""
    prefix = "CopySource"
    conditions = {
        name.removeprefix(prefix): value for name, value in asked.items() if name.startswith(prefix)
    }
    if not_modified(conditions, stored):
        raise precondition_failed("x-amz-copy-source-If-None-Match or -If-Modified-Since")


def names_etag(condition: str, etag: str) -> bool:
    """Whether a list of ETags has this one, or says that any will do."""
    tags = [_bare(tag) for tag in condition.split(",")]
    return "*" in tags or etag in tags


def created_at(stored: StoredObject) -> datetime:
    """When it was made, to the second, as HTTP tells it."""
    return datetime.fromtimestamp(stored.created_at_ns // 1_000_000_000, UTC)


def precondition_failed(condition: str) -> InvalidRequest:
    """The error for a condition that does not hold."""
    return InvalidRequest(
        "At least one of the pre-conditions you specified did not hold",
        code="PreconditionFailed",
        fields={"Condition": condition},
    )


def _bare(etag: str) -> str:
    return etag.strip().removeprefix("W/").strip('"')
