"""What a topic says about its Kafka cluster, checked and put into librdkafka's words.

Topics with equal clusters share one producer. Neither the password nor the client secret is in a repr or in
an error; errors name the attribute.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import SplitResult, unquote, urlsplit

from confluent_kafka import KafkaException, Producer

from bucketwire.errors import ConfigError
from bucketwire.event.topic import Topic
from bucketwire.publish.pem_files import check_file

PORT = 9092
ACK_LEVELS = ("broker", "none")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
LARGEST_MESSAGE_BYTES = 16_000_000
"""What is larger is not even sent. A broker takes 1 MB unless it is told otherwise."""
QUEUE_KILOBYTES = 64 * 1024
"""The memory that messages on their way to one cluster may take."""

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s,/@:\[\]]+)(:[0-9]{1,5})?")
_FILES = frozenset({"ssl.ca.location", "ssl.certificate.location", "ssl.key.location"})
_TUNING: Mapping[str, str] = {
    "linger.ms": "2",
    "partitioner": "murmur2_random",  # as Java's producer places keys
    "message.max.bytes": str(LARGEST_MESSAGE_BYTES),
    "queue.buffering.max.kbytes": str(QUEUE_KILOBYTES),
    "topic.metadata.propagation.max.ms": "250",  # a topic that is missing for longer is an outcome
    "reconnect.backoff.max.ms": "1000",
    "client.id": "bucketwire",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """All that makes a connection what it is."""

    brokers: str
    settings: frozenset[tuple[str, str]] = field(repr=False)
    one_a_batch: bool = False
    """Whether each message travels by itself, so that a broker's refusal is about it alone."""

    def configuration(self) -> dict[str, str]:
        """The settings of a producer that is made now; `UnusableFile` if it is so with one of theirs.

        librdkafka opens them whatever they are, and lets no thread of Python run meanwhile.
        """
        for name, value in self.settings:
            if name in _FILES:
                check_file(value)
        alone = {"batch.num.messages": "1"} if self.one_a_batch else {}
        return {**_TUNING, "bootstrap.servers": self.brokers, **dict(self.settings), **alone}

    def hosts(self) -> tuple[str, ...]:
        """The names or addresses of the brokers, as librdkafka divides the list; `ConfigError` if unclear."""
        found = [_BROKER.fullmatch(broker) for broker in self.brokers.split(",")]
        if not all(found):
            raise ConfigError("push-endpoint names no host of a Kafka broker")
        return tuple(broker[1].strip("[]") for broker in found if broker)


def cluster_from_topic(topic: Topic) -> Cluster:
    """The cluster of the topic; `ConfigError` for what can never work."""
    parts = _endpoint(topic)
    settings = {**_acks(topic), **_tls(topic), **_login(topic, parts)}
    secure = "SSL" if topic.is_set("use-ssl") else "PLAINTEXT"
    protocol = f"SASL_{secure}" if "sasl.mechanism" in settings else secure
    brokers = ",".join(dict.fromkeys(_brokers(topic, parts)))
    return Cluster(brokers, frozenset({**settings, "security.protocol": protocol}.items()))


def kafka_topic_name(topic: Topic) -> str:
    """The name of the topic at the broker; `ConfigError` when Kafka has no such names."""
    if not _TOPIC_NAME.fullmatch(topic.name) or topic.name in {".", ".."}:
        raise ConfigError(
            f"{topic.name} cannot be the name of a Kafka topic: at most 249 letters, digits, '.', '_' and '-'"
        )
    return topic.name


def _endpoint(topic: Topic) -> SplitResult:
    try:
        parts = urlsplit(topic.endpoint)
        usable = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:  # its text may show the URL
        usable = False
    if not usable or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ConfigError(
            f"push-endpoint of topic {topic.name} is not of the form kafka://[user:password@]host[:port]"
        ) from None
    return parts


def _brokers(topic: Topic, parts: SplitResult) -> Iterator[str]:
    host = parts.hostname or ""
    yield f"{f'[{host}]' if ':' in host else host}:{parts.port or PORT}"
    for each in filter(None, map(str.strip, topic.attributes.get("kafka-brokers", "").split(","))):
        found = _BROKER.fullmatch(each)
        if found is None:
            raise ConfigError(f"kafka-brokers of topic {topic.name} is not a list of host:port")
        yield each if found[2] else f"{each}:{PORT}"


def _acks(topic: Topic) -> dict[str, str]:
    level = topic.attributes.get("kafka-ack-level", "broker")
    if level not in ACK_LEVELS:
        raise ConfigError(f"kafka-ack-level of topic {topic.name} is not one of {', '.join(ACK_LEVELS)}")
    return {"acks": "0"} if level == "none" else {"acks": "all", "enable.idempotence": "true"}


def _tls(topic: Topic) -> dict[str, str]:
    files = {
        "ssl.ca.location": topic.attributes.get("ca-location", ""),
        "ssl.certificate.location": topic.attributes.get("client-certificate-location", ""),
        "ssl.key.location": topic.attributes.get("client-key-location", ""),
    }
    if bool(files["ssl.certificate.location"]) != bool(files["ssl.key.location"]):
        raise ConfigError(
            f"topic {topic.name} has one of client-certificate-location and client-key-location, not both"
        )
    if not topic.is_set("use-ssl"):
        if files["ssl.key.location"]:
            raise ConfigError(f"client-certificate-location of topic {topic.name} needs use-ssl=true")
        return {}
    verifies = "true" if topic.is_set("verify-ssl", default=True) else "false"
    given = {name: file for name, file in files.items() if file}
    return {"enable.ssl.certificate.verification": verifies, **given}


def _login(topic: Topic, parts: SplitResult) -> dict[str, str]:
    """How to say who we are; nothing when the topic has neither a user nor a mechanism."""
    user = topic.attributes.get("user-name") or unquote(parts.username or "")
    password = topic.attributes.get("password") or unquote(parts.password or "")
    named = topic.attributes.get("mechanism", "")
    if not user and not named:
        return {}
    mechanism = (named or "PLAIN").upper()
    if mechanism not in MECHANISMS:
        raise ConfigError(f"mechanism of topic {topic.name} is not one of {', '.join(MECHANISMS)}")
    if mechanism == "GSSAPI":
        return _kerberos(topic)
    if not user or not password:
        raise ConfigError(f"mechanism {mechanism} of topic {topic.name} needs a user-name and a password")
    if mechanism == "OAUTHBEARER":
        return _oauth(topic, user, password)
    return {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}


def _oauth(topic: Topic, client_id: str, secret: str) -> dict[str, str]:
    endpoint = topic.attributes.get("oauth-token-endpoint", "")
    if not endpoint.startswith(("https://", "http://")):
        raise ConfigError(f"mechanism OAUTHBEARER of topic {topic.name} needs oauth-token-endpoint, a URL")
    scope = topic.attributes.get("oauth-scope", "")
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.oauthbearer.client.id": client_id,
        "sasl.oauthbearer.client.secret": secret,
        **({"sasl.oauthbearer.scope": scope} if scope else {}),
    }


def _kerberos(topic: Topic) -> dict[str, str]:
    settings = {"sasl.mechanism": "GSSAPI"}
    if not _has_kerberos():
        raise ConfigError(
            f"mechanism GSSAPI of topic {topic.name} needs a librdkafka with Kerberos, which is not installed"
        )
    return settings


@cache
def _has_kerberos() -> bool:
    """The wheel of PyPI comes without; one that was built on a machine with libsasl2 has it."""
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "log_level": 0}
    try:
        Producer(settings)
    except KafkaException:
        return False
    return True
