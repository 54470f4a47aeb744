"""The Policy of a topic: who else than its owner may do what with it. Pure.

    text -> parse_policy -> Policy -> decide(policy, who, action, resource, context) -> Decision

A policy is checked when it is set: all it says is understood, or it is refused with the word that is not.
So a policy that is stored never grants by accident. What AWS knows and nothing here does, such as
`sns:Subscribe`, is understood and has no effect. Deny wins over Allow; what no statement speaks of is SILENT,
and it is the caller who then says no.
"""

import enum
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from bucketwire.errors import InvalidRequest

PUBLISH = "sns:Publish"
GET = "sns:GetTopicAttributes"
SET = "sns:SetTopicAttributes"
DELETE = "sns:DeleteTopic"
CREATE = "sns:CreateTopic"
TAG = "sns:TagResource"
UNTAG = "sns:UntagResource"
LIST_TAGS = "sns:ListTagsForResource"
ACTIONS = (PUBLISH, GET, SET, DELETE, CREATE, TAG, UNTAG, LIST_TAGS)
ACTIONS_WITHOUT_EFFECT = (
    *("sns:AddPermission", "sns:RemovePermission", "sns:Receive", "sns:PublishBatch"),
    *("sns:Subscribe", "sns:ConfirmSubscription", "sns:ListSubscriptionsByTopic"),
    *("sns:GetDataProtectionPolicy", "sns:PutDataProtectionPolicy"),
)
"""What can be done with a topic of AWS and not with one of ours."""
S3_SERVICE = "s3.amazonaws.com"
SOURCE_ARN = "aws:SourceArn"
SOURCE_ACCOUNT = "aws:SourceAccount"
SOURCE_OWNER = "aws:SourceOwner"
NO_ACCOUNT = "000000000000"
"""What the account of a user without a tenant is called in ARNs."""

_MAX_CHARACTERS = 30 * 1024
_VERSIONS = ("2012-10-17", "2008-10-17")
_POLICY_MEMBERS = frozenset({"Version", "Id", "Statement"})
_STATEMENT_MEMBERS = frozenset({"Sid", "Effect", "Principal", "Action", "Resource", "Condition"})
_CONDITIONS = (SOURCE_ARN, SOURCE_ACCOUNT, SOURCE_OWNER)
_USER_ARN = re.compile(r"arn:aws:iam::(?P<account>[^:/*?]*):(?:(?P<root>root)|user/(?P<name>[^/*?]+))")
_ACCOUNT = re.compile(r"[A-Za-z0-9_-]{1,128}")
_ARN_PARTS = 6


class Decision(enum.Enum):
    """What a policy says."""

    ALLOWED = "allowed"
    DENIED = "denied"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Who:
    """Someone who wants to do something; S3 itself too, where it acts for a bucket."""

    tenant: str
    name: str
    user_id: str
    service: str = ""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a statement is about: everybody, a service, an account, or a user of one."""

    everybody: bool = False
    service: str = ""
    account: str | None = None
    name: str = ""

    def covers(self, who: Who) -> bool:
        """Whether it is about this one."""
        if self.everybody:
            return True
        if self.service:
            return who.service == self.service
        if self.account != who.tenant:
            return False
        return not self.name or self.name in {who.name, who.user_id}


@dataclass(frozen=True, slots=True)
class Test:
    """A condition: one of the patterns must fit what the context has under that name."""

    name: str
    patterns: tuple[str, ...]
    fits: Callable[[str, str], bool]

    def holds(self, context: Mapping[str, str]) -> bool:
        """Whether it holds. What the context does not have fits no pattern."""
        value = context.get(self.name)
        return value is not None and any(self.fits(value, pattern) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of a policy."""

    allows: bool
    principals: tuple[Principal, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    tests: tuple[Test, ...]

    def speaks_of(self, who: Who, action: str, resource: str, context: Mapping[str, str]) -> bool:
        """Whether this is about that."""
        return (
            any(matches(action.lower(), pattern) for pattern in self.actions)
            and any(matches(resource, pattern) for pattern in self.resources)
            and any(principal.covers(who) for principal in self.principals)
            and all(test.holds(context) for test in self.tests)
        )


Policy = tuple[Statement, ...]


def decide(policy: Policy, who: Who, action: str, resource: str, context: Mapping[str, str]) -> Decision:
    """What the policy says of it. The context need not tell `aws:SourceOwner`: that is `who`."""
    known = {**context, SOURCE_OWNER: who.user_id}
    found = [each.allows for each in policy if each.speaks_of(who, action, resource, known)]
    if not found:
        return Decision.SILENT
    return Decision.ALLOWED if all(found) else Decision.DENIED


def parse_policy(text: str, topic_arn: str = "") -> Policy:
    """The policy; `InvalidRequest` that names what is not understood in it.

    With the ARN of its topic, a policy that speaks of anything else is refused too.
    """
    if len(text) > _MAX_CHARACTERS:
        raise _refused(f"it has more than {_MAX_CHARACTERS} characters")
    document = _decoded(text)
    if not isinstance(document, dict):
        raise _refused("it is not a JSON object")
    _check_members(document, _POLICY_MEMBERS)
    if document.get("Version", _VERSIONS[0]) not in _VERSIONS:
        raise _refused(f"Version is one of {', '.join(_VERSIONS)}")
    statements = document.get("Statement")
    listed = statements if isinstance(statements, list) else [statements]
    if not listed:
        raise _refused("Statement is missing")
    return tuple(_statement(each, topic_arn) for each in listed)


def matches(text: str, pattern: str) -> bool:
    """Whether `*` and `?` of the pattern can stand for what is missing of the text."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def _decoded(text: str) -> Any:
    """The document. msgspec refuses what is no JSON; the other reader shows it names that come twice."""
    try:
        msgspec.json.decode(text)
        return json.loads(text, object_pairs_hook=_object)
    except (msgspec.DecodeError, RecursionError, ValueError) as problem:
        raise _refused("it is not JSON") from problem


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _refused(f"{_short(name)} comes twice in one object")
        found[name] = value
    return found


def _statement(found: Any, topic_arn: str) -> Statement:
    if not isinstance(found, dict):
        raise _refused("Statement is a JSON object, or a list of them")
    _check_members(found, _STATEMENT_MEMBERS)
    effect = found.get("Effect")
    if effect not in {"Allow", "Deny"}:
        raise _refused("Effect is Allow or Deny")
    return Statement(
        effect == "Allow",
        tuple(_principals(found.get("Principal"))),
        tuple(_action(each) for each in _texts(found, "Action")),
        tuple(_resource(each, topic_arn) for each in _texts(found, "Resource")),
        tuple(_tests(found.get("Condition", {}))),
    )


def _check_members(found: Mapping[str, Any], known: frozenset[str]) -> None:
    for name in sorted(found.keys() - known):
        raise _refused(f"{_short(name)} is not supported")


def _texts(found: Mapping[str, Any], member: str) -> list[str]:
    """The member as a list of texts, though it may stand alone."""
    value = found.get(member)
    listed = value if isinstance(value, list) else [value]
    texts = [each for each in listed if isinstance(each, str)]
    if not texts or len(texts) < len(listed):
        raise _refused(f"{_short(member)} is a text, or a list of them")
    return texts


def _action(text: str) -> str:
    pattern = text.lower()
    known = (*ACTIONS, *ACTIONS_WITHOUT_EFFECT)
    if pattern == "*" or any(matches(action.lower(), pattern) for action in known):
        return pattern
    raise _refused(f"unknown action {_short(text)}: use sns:* or some of {', '.join(ACTIONS)}")


def _resource(text: str, topic_arn: str) -> str:
    if text != "*" and not text.startswith("arn:"):
        raise _refused(f"bad resource {_short(text)}: it is * or the ARN of the topic")
    if topic_arn and not matches(topic_arn, text):
        raise _refused(f"bad resource {_short(text)}: the policy of a topic is about {topic_arn} alone")
    return text


def _principals(found: Any) -> Iterable[Principal]:
    if found == "*":
        yield Principal(everybody=True)
        return
    if not isinstance(found, dict) or not found:
        raise _refused('Principal is "*", {"AWS": ...} or {"Service": ...}')
    for kind in found:
        for text in _texts(found, kind):
            yield _principal(kind, text)


def _principal(kind: str, text: str) -> Principal:
    if kind == "Service" and text == S3_SERVICE:
        return Principal(service=text)
    if kind == "AWS" and text == "*":
        return Principal(everybody=True)
    if kind == "AWS" and (arn := _USER_ARN.fullmatch(text)):
        return Principal(account=_tenant(arn["account"]), name=arn["name"] or "")
    if kind == "AWS" and _ACCOUNT.fullmatch(text):
        return Principal(account=_tenant(text))
    raise _refused(
        f'bad principal {_short(kind)} {_short(text)}: use "*", an account, arn:aws:iam::ACCOUNT:user/NAME'
        f" without wildcards, or the Service {S3_SERVICE}"
    )


def _tenant(account: str) -> str:
    return "" if account == NO_ACCOUNT else account


def _tests(found: Any) -> Iterable[Test]:
    if not isinstance(found, dict):
        raise _refused("Condition is a JSON object")
    for operator, compared in found.items():
        if operator not in _OPERATORS:
            raise _refused(f"unknown operator {_short(operator)}: use one of {', '.join(_OPERATORS)}")
        if not isinstance(compared, dict):
            raise _refused(f"{operator} is a JSON object")
        for key in compared:
            yield _test(operator, key, tuple(_texts(compared, key)))


def _test(operator: str, key: str, patterns: tuple[str, ...]) -> Test:
    for known in _CONDITIONS:
        if key.lower() == known.lower():
            return Test(known, patterns, _OPERATORS[operator])
    raise _refused(f"unknown condition {_short(key)}: use one of {', '.join(_CONDITIONS)}")


def _same(text: str, pattern: str) -> bool:
    return text == pattern


def _same_arn(text: str, pattern: str) -> bool:
    """Wildcards stand for something within one part of an ARN, in both of AWS' operators."""
    parts, patterns = (each.split(":", _ARN_PARTS - 1) for each in (text, pattern))
    return len(parts) == len(patterns) and all(map(matches, parts, patterns))


_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": _same,
    "StringLike": matches,
    "ArnEquals": _same_arn,
    "ArnLike": _same_arn,
}


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")  # noqa: PLR2004 - a line


def _refused(reason: str) -> InvalidRequest:
    return InvalidRequest(reason, code="InvalidParameter")
