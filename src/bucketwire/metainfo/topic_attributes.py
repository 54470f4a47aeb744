"""The attributes of topics: one table says which there are, what they may be, and which are secret. Pure.

    what was sent -> checked_attributes -> what is stored (empty values, and Ceph's "None", are unset)

Errors name the attribute and never show a value, which may hold a password.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from bucketwire.access.policy import parse_policy
from bucketwire.errors import ConfigError, InvalidRequest
from bucketwire.event.arn import valid_pubsub_names
from bucketwire.event.dialect import Dialect
from bucketwire.event.topic import ENDPOINT, Topic
from bucketwire.metainfo.aws_attributes import WORDS_FOR_NOTHING
from bucketwire.metainfo.queue_limit import DEAD_LETTER, LIMIT_ATTRIBUTE, POLICY_ATTRIBUTE, REJECT
from bucketwire.publish import SCHEMES, publisher_kind
from bucketwire.publish.webhooks import SECRET_FORM, signer_from_text

TOKEN_ENDPOINT = "oauth-token-endpoint"  # noqa: S105 - a name
HIDDEN = "****"
"""What is shown in the place of a secret. Who sends it back would lose the secret, so it is refused."""
_AMQP = ("amqp", "amqps")
_HTTP = ("http", "https")
_KAFKA = ("kafka",)
_WITH_LOGIN = (*_AMQP, *_KAFKA)
_TLS = ("https", "amqps", "kafka")
_MAX_ENDPOINT_CHARACTERS = 2048
_MAX_CHARACTERS = 4096
_MAX_LABEL_CHARACTERS = 100
MAX_TIME_TO_LIVE_SECONDS = 366 * 24 * 3600
MAX_SLEEP_SECONDS = 3600
"""No message waits longer for its next try, so nobody can ask for more."""
MAX_RETRIES = 1_000_000
_MAX_QUEUE_BYTES = 1 << 40
_ILLEGIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BROKER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?")
_MAX_PORT = 65535
_SHOWN_NAMES = 10
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Attribute:
    """One thing that can be set on a topic."""

    name: str
    values: str
    """What it may be, in words."""
    accepts: Callable[[str], bool]
    default: str = ""
    schemes: tuple[str, ...] = SCHEMES
    """The endpoints that heed it; the others ignore it."""
    secret: bool = False
    """Whether it is never shown, and travels over TLS only."""


def _is_flag(text: str) -> bool:
    return text.lower() in {"true", "false"}


def _is_number(most: int) -> Callable[[str], bool]:
    digits = len(str(most))
    return lambda text: text.isascii() and text.isdecimal() and len(text) <= digits and int(text) <= most


def _is_one_of(*words: str) -> Callable[[str], bool]:
    return lambda text: text in words


def _is_text(text: str) -> bool:
    return len(text) <= _MAX_CHARACTERS


def _is_label(text: str) -> bool:
    return len(text) <= _MAX_LABEL_CHARACTERS


def _is_name(text: str) -> bool:
    return len(text) <= 255 and text.isprintable()  # noqa: PLR2004 - AMQP's short string


def _is_path(text: str) -> bool:
    """An absolute path. Nobody looks whether it is there: the answer would tell of the server's files."""
    return text.startswith("/") and text.isprintable() and len(text) <= _MAX_CHARACTERS


def _is_token_endpoint(text: str) -> bool:
    """A URL that holds no secret, as it is shown to whoever sees the topic."""
    parts = _split(text)
    if parts is None or "@" in parts.netloc:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and _is_text(text)


def _is_broker_list(text: str) -> bool:
    found = [_BROKER.fullmatch(each.strip()) for each in text.split(",")]
    return len(text) <= _MAX_CHARACTERS and all(
        each is not None and int(each[1] or 1) in range(1, _MAX_PORT + 1) for each in found
    )


def _is_signing_secret(text: str) -> bool:
    try:
        secrets = signer_from_text(text).secrets
    except ValueError:
        return False
    if len(set(secrets)) < len(secrets):
        raise InvalidRequest("both secrets are the same; to replace one, send the old and the new one")
    return True


def _is_endpoint(endpoint: str) -> bool:
    if len(endpoint) > _MAX_ENDPOINT_CHARACTERS or not endpoint.isascii() or not endpoint.isprintable():
        return False
    if endpoint.startswith("pubsub://"):
        project, _, topic = endpoint.removeprefix("pubsub://").partition("/")
        return valid_pubsub_names(project, topic)
    parts = _split(endpoint)
    return parts is not None and parts.scheme in SCHEMES and bool(parts.hostname) and " " not in endpoint


def _split(endpoint: str) -> SplitResult | None:
    """The parts of the URL; None when it is none, or its port is no number."""
    try:
        parts = urlsplit(endpoint)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_policy(text: str) -> bool:
    parse_policy(text)
    return True


def _flag(name: str, default: str = "false", schemes: tuple[str, ...] = SCHEMES) -> Attribute:
    return Attribute(name, "true or false", _is_flag, default, schemes)


def _words(name: str, *words: str, default: str, schemes: tuple[str, ...] = SCHEMES) -> Attribute:
    return Attribute(name, f"{', '.join(words[:-1])} or {words[-1]}", _is_one_of(*words), default, schemes)


def _number(name: str, most: int, default: str) -> Attribute:
    return Attribute(name, f"a number from 0 to {most}, or None", _is_number(most), default)


_URL = f"a URL that starts with {' or '.join(f'{scheme}://' for scheme in SCHEMES)}"
_KEYS = f"one key or two with a space between: {SECRET_FORM}"
_LIST = "host or host:port, with commas between"
_TEXT = f"a text of up to {_MAX_CHARACTERS} characters"
_LABEL = f"a text of up to {_MAX_LABEL_CHARACTERS} characters; it has no effect"

ATTRIBUTES = {
    attribute.name: attribute
    for attribute in (
        Attribute(ENDPOINT, _URL, _is_endpoint, "none: messages wait"),
        Attribute("OpaqueData", _TEXT, _is_text, "none"),
        Attribute("DisplayName", _LABEL, _is_label, "none"),
        _flag("persistent", "true (aws), false (ceph)"),
        _number("time_to_live", MAX_TIME_TO_LIVE_SECONDS, "the server's: no limit"),
        _number("max_retries", MAX_RETRIES, "the server's: no limit"),
        _number("retry_sleep_duration", MAX_SLEEP_SECONDS, "the server's: 1, 2, 4, then every 8"),
        _number(LIMIT_ATTRIBUTE, _MAX_QUEUE_BYTES, "the server's: 134217728 bytes; 0 is no limit"),
        _words(
            POLICY_ATTRIBUTE, REJECT, DEAD_LETTER, default="the server's: dead-letter (aws), reject (ceph)"
        ),
        Attribute("Policy", "a policy as JSON", _is_policy, "none: the owner alone"),
        _words("format", "s3", "cos", "cloudevents", default="s3"),
        _words("ordering", "none", "key", default="none"),
        _flag("cloudevents"),
        _words("cloudevents-mode", "binary", "structured", default="structured"),
        _flag("before-image"),
        _flag("test-event-records"),
        _flag("verify-ssl", "true", _TLS),
        _flag("use-ssl", "false", _KAFKA),
        Attribute("ca-location", "an absolute path", _is_path, "the system's authorities", _TLS),
        Attribute("signing-secret", _KEYS, _is_signing_secret, "none: not signed", _HTTP, secret=True),
        Attribute("amqp-exchange", "a name of up to 255 characters", _is_name, "must be set", _AMQP),
        _words("amqp-ack-level", "none", "broker", "routable", default="broker", schemes=_AMQP),
        _words("kafka-ack-level", "none", "broker", default="broker", schemes=_KAFKA),
        Attribute("kafka-brokers", _LIST, _is_broker_list, "none: that of push-endpoint alone", _KAFKA),
        _words(
            "mechanism",
            *("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"),
            default="PLAIN",
            schemes=_KAFKA,
        ),
        Attribute("client-certificate-location", "an absolute path", _is_path, "none", _KAFKA),
        Attribute("client-key-location", "an absolute path", _is_path, "none", _KAFKA),
        Attribute(
            TOKEN_ENDPOINT,
            "a URL that starts with https:// or http://, with no user and password in it",
            _is_token_endpoint,
            "none",
            _KAFKA,
        ),
        Attribute("oauth-scope", _TEXT, _is_text, "none", _KAFKA),
        Attribute("user-name", _TEXT, _is_text, "that of push-endpoint", _WITH_LOGIN, secret=True),
        Attribute("password", _TEXT, _is_text, "that of push-endpoint", _WITH_LOGIN, secret=True),
    )
}
NUMBERS = ("time_to_live", "max_retries", "retry_sleep_duration", LIMIT_ATTRIBUTE)
_UNSET_WORDS = {**dict.fromkeys(NUMBERS, "none"), **WORDS_FOR_NOTHING}


def checked_attributes(sent: Mapping[str, str], dialect: Dialect) -> dict[str, str]:
    """What is to be stored; `InvalidRequest` that names what is unknown or has a bad value."""
    unset = {name for name, text in sent.items() if _is_unset(name, text)}
    unknown = sorted(sent.keys() - ATTRIBUTES.keys() - (unset & WORDS_FOR_NOTHING.keys()))
    if unknown:
        raise bad_attribute(
            _listed(unknown), f"not supported; supported are {', '.join(ATTRIBUTES)}", dialect
        )
    kept = {name: text for name, text in sent.items() if name not in unset}
    for name, text in kept.items():
        _check(ATTRIBUTES[name], text, dialect)
    return kept


def check_policy(attributes: Mapping[str, str], arn: str, dialect: Dialect) -> None:
    """Raises unless the Policy among them, if there is one, is about the topic of that ARN."""
    if "Policy" not in attributes:
        return
    try:
        parse_policy(attributes["Policy"], arn)
    except InvalidRequest as problem:
        raise bad_attribute("Policy", problem.message, dialect) from problem


def check_together(attributes: Mapping[str, str], dialect: Dialect) -> None:
    """Raises unless messages can be published with the attributes that a topic would have."""
    scheme = Topic("", "", "", dict(attributes)).scheme
    if not scheme:
        return
    if scheme in _AMQP and "amqp-exchange" not in attributes:
        raise bad_attribute("amqp-exchange", f"{scheme}:// needs it", dialect)
    try:
        publisher_kind(scheme, "")
    except ConfigError as problem:
        raise bad_attribute(ENDPOINT, str(problem), dialect) from problem


def check_order(attributes: Mapping[str, str], before: Mapping[str, str], dialect: Dialect) -> None:
    """Raises when a topic would want order that nobody keeps: pushes go out as the writes come.

    One that was so `before` goes on.
    """
    if _lacks_order(attributes, dialect) and not _lacks_order(before, dialect):
        reason = "key needs persistent=true: set persistent=true before it or with it, or unset ordering"
        raise bad_attribute("ordering", reason, dialect)


def is_legible(text: str) -> bool:
    """Whether a document can show it."""
    return _ILLEGIBLE.search(text) is None


def secrets_among(attributes: Mapping[str, str]) -> list[str]:
    """The names of those that hold a secret: a password in the endpoint too."""
    return [name for name, text in attributes.items() if text and _holds_secret(name, text)]


def bad_attribute(name: str, reason: str, dialect: Dialect) -> InvalidRequest:
    """The error that names an attribute."""
    return InvalidRequest(
        f"Invalid parameter: Attributes Reason: {name}: {reason}", code=dialect.bad_topic_code
    )


def _lacks_order(attributes: Mapping[str, str], dialect: Dialect) -> bool:
    topic = Topic("", "", "", dict(attributes))
    return topic.ordered and not topic.is_set("persistent", default=dialect.persistent_by_default)


def _listed(names: list[str]) -> str:
    shown = [name[:_SHOWN_CHARACTERS] or "(no name)" for name in names[:_SHOWN_NAMES]]
    return ", ".join([*shown, "..."] if len(names) > _SHOWN_NAMES else shown)


def _holds_secret(name: str, text: str) -> bool:
    if name == ENDPOINT:
        parts = _split(text)
        return parts is None or parts.username is not None
    return name in ATTRIBUTES and ATTRIBUTES[name].secret


def _is_mask(name: str, text: str) -> bool:
    """Whether the secret in it is only what is shown in its place."""
    if name == ENDPOINT:
        parts = _split(text)
        return parts is not None and parts.password == HIDDEN
    return ATTRIBUTES[name].secret and text == HIDDEN


def _is_unset(name: str, text: str) -> bool:
    return not text or text.lower() == _UNSET_WORDS.get(name)


def _check(attribute: Attribute, text: str, dialect: Dialect) -> None:
    if not is_legible(text):
        raise bad_attribute(attribute.name, "it has characters that XML does not know", dialect)
    if _is_mask(attribute.name, text):
        reason = f"{HIDDEN} stands for a secret that is not shown; send the secret itself"
        raise bad_attribute(attribute.name, reason, dialect)
    try:
        accepted = attribute.accepts(text)
    except InvalidRequest as problem:
        raise bad_attribute(attribute.name, problem.message, dialect) from problem
    if not accepted:
        raise bad_attribute(attribute.name, f"it is {attribute.values}", dialect)
