"""The attributes of topics: what they may be set to."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from bucketwire.errors import CallError, ConfigError, InvalidRequest
from bucketwire.event.dialect import AWS, CEPH, Dialect
from bucketwire.event.topic import Topic
from bucketwire.metainfo import topic_attributes
from bucketwire.metainfo.aws_attributes import WORDS_FOR_NOTHING
from bucketwire.metainfo.topic_attributes import (
    ATTRIBUTES,
    MAX_SLEEP_SECONDS,
    SCHEMES,
    Attribute,
    check_order,
    check_policy,
    check_together,
    checked_attributes,
    secrets_among,
)
from bucketwire.metainfo.topic_view import shown_attributes
from bucketwire.pipeline.attempt import LONGEST_WAIT_SECONDS
from bucketwire.publish.webhooks import signer_from_text
from factories import topic

PAGE = Path(__file__).parents[3] / "docs" / "topics.md"
KEY = "whsec_" + b64encode(b"k" * 32).decode()
OTHER_KEY = "whsec_" + b64encode(b"o" * 32).decode()


def refused(**attributes: str) -> str:
    with pytest.raises(InvalidRequest) as raised:
        checked_attributes({name.replace("__", "-"): text for name, text in attributes.items()}, AWS)
    assert raised.value.code == "InvalidParameter"
    return raised.value.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("push-endpoint", "http://127.0.0.1:1/"),
        ("push-endpoint", "https://user:password@host/hook?x=1"),
        ("push-endpoint", "amqp://host:5672/vhost"),
        ("push-endpoint", "amqps://host"),
        ("push-endpoint", "kafka://host:9092"),
        ("push-endpoint", "pubsub://my-project/my-topic"),
        ("push-endpoint", "pubsub://example.com:my-project/my-topic"),
        ("OpaqueData", '{"a":"b<&>"}'),
        ("DisplayName", "Our videos"),
        ("persistent", "True"),
        ("persistent", "false"),
        ("time_to_live", "0"),
        ("max_retries", "10080"),
        ("retry_sleep_duration", "60"),
        ("retry_sleep_duration", "3600"),
        ("Policy", '{"Statement":{"Effect":"Deny","Principal":"*","Action":"sns:*","Resource":"*"}}'),
        ("format", "cloudevents"),
        ("ordering", "key"),
        ("cloudevents-mode", "structured"),
        ("before-image", "true"),
        ("test-event-records", "true"),
        ("ca-location", "/etc/ssl/ca.pem"),
        ("signing-secret", KEY),
        ("signing-secret", f"{KEY} {OTHER_KEY}"),
        ("amqp-exchange", "amq.topic"),
        ("amqp-ack-level", "routable"),
        ("kafka-ack-level", "none"),
        ("kafka-brokers", "one:9092, two,[::1]:9093"),
        ("mechanism", "SCRAM-SHA-512"),
        ("oauth-token-endpoint", "https://idp.example/token?tenant=a@b"),
        ("user-name", "alice"),
        ("password", "alice-secret"),
    ],
)
def test_what_an_attribute_may_be_is_kept_as_it_was_sent(name: str, text: str) -> None:
    assert checked_attributes({name: text}, AWS) == {name: text}


@pytest.mark.parametrize("dialect", [AWS, CEPH])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("push-endpoint", "https://user:hush@host:8443/path?x=1"),
        ("push-endpoint", "amqps://user:hush@host/vhost"),
        ("user-name", "hush"),
        ("password", "hush"),
        ("signing-secret", KEY),
    ],
)
def test_a_secret_as_it_is_shown_cannot_be_set(name: str, text: str, dialect: Dialect) -> None:
    kept = checked_attributes({name: text}, dialect)
    shown = shown_attributes(Topic("arn", "name", "owner", kept))[name]
    assert "****" in shown
    with pytest.raises(InvalidRequest, match=f"{name}: .* send the secret itself") as raised:
        checked_attributes({name: shown}, dialect)
    assert raised.value.code == dialect.bad_topic_code


def test_two_signing_secrets_that_are_one_are_refused() -> None:
    """Who sets them believes that the secret is being replaced."""
    told = refused(signing__secret=f"{KEY} {KEY}")
    assert told.endswith("both secrets are the same; to replace one, send the old and the new one")


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        KEY.rstrip("="),
        f"{KEY}==",
        f"{KEY} {OTHER_KEY}",
        f"{KEY}  {OTHER_KEY}",
        KEY[:-3],
        "whsec_ü",
        "whsec_",
    ],
)
def test_what_may_be_set_can_be_signed_with(text: str) -> None:
    try:
        checked_attributes({"signing-secret": text}, AWS)
    except InvalidRequest:
        with pytest.raises(ValueError, match="a secret is"):
            signer_from_text(text)
    else:
        assert signer_from_text(text).secrets


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("push-endpoint", "http://host/****"),
        ("push-endpoint", "http://****@host/"),
        ("push-endpoint", "http://user:*****@host/"),
        ("OpaqueData", "****"),
        ("password", "****-and-more"),
    ],
)
def test_stars_in_other_places_are_taken(name: str, text: str) -> None:
    assert checked_attributes({name: text}, AWS) == {name: text}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("push-endpoint", "localhost:9000"),
        ("push-endpoint", "ftp://host/"),
        ("push-endpoint", "http://"),
        ("push-endpoint", "http://host:port/"),
        ("push-endpoint", "http://host:99999/"),
        ("push-endpoint", "http://a b/"),
        ("push-endpoint", "https://[::1"),
        ("push-endpoint", "http://h\n/"),
        ("push-endpoint", "http://h/" + "x" * 2048),
        ("push-endpoint", "pubsub://my-project"),
        ("push-endpoint", "pubsub://my-project/goog-topic"),
        ("push-endpoint", "pubsub://my-project/topic/more"),
        ("OpaqueData", "x" * 4097),
        ("OpaqueData", "bell \x07"),
        ("DisplayName", "x" * 101),
        ("OpaqueData", "half \ud800"),
        ("persistent", "yes"),
        ("time_to_live", "-1"),
        ("time_to_live", "1.5"),
        ("time_to_live", "9" * 5000),
        ("max_retries", "many"),
        ("retry_sleep_duration", "٣"),
        ("retry_sleep_duration", "3601"),
        ("Policy", "{}"),
        ("format", "xml"),
        ("ordering", "strict"),
        ("cloudevents", "1"),
        ("cloudevents-mode", "batch"),
        ("ca-location", "ca.pem"),
        ("signing-secret", "hush"),
        ("signing-secret", "whsec_" + b64encode(b"short").decode()),
        ("signing-secret", "whsec_!"),
        ("signing-secret", f"{KEY} {OTHER_KEY} whsec_{b64encode(b'x' * 32).decode()}"),
        ("signing-secret", f"{KEY},{OTHER_KEY}"),
        ("signing-secret", KEY.rstrip("=")),
        ("amqp-exchange", "x" * 256),
        ("amqp-ack-level", "all"),
        ("kafka-ack-level", "routable"),
        ("kafka-brokers", "one:0"),
        ("kafka-brokers", "one,,two"),
        ("kafka-brokers", "a b"),
        ("mechanism", "plain"),
        ("oauth-token-endpoint", "ftp://idp.example/token"),
        ("oauth-token-endpoint", "https://client:secret@idp.example/token"),
        ("oauth-token-endpoint", "https://secret@idp.example/token"),
        ("oauth-token-endpoint", "https://@idp.example/token"),
    ],
)
def test_a_bad_value_is_refused_with_the_attributes_name_and_is_not_repeated(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        checked_attributes({name: text}, CEPH)
    assert raised.value.code == "InvalidInput"
    assert f"Reason: {name}: " in raised.value.message
    if len(text) > len("http://"):
        assert text not in raised.value.message


def test_unknown_attributes_are_named_with_those_that_there_are() -> None:
    message = refused(color="red", size="XL", push__endpoint="http://h/")
    assert "color, size" in message
    assert all(name in message for name in ATTRIBUTES)
    many = refused(**{f"n{number:04}": "x" for number in range(1000)})
    assert len(many) < 1000


@pytest.mark.parametrize("attribute", WORDS_FOR_NOTHING)
def test_what_only_aws_has_is_refused_by_name_unless_it_says_nothing(attribute: str) -> None:
    assert f"Reason: {attribute}: not supported" in refused(**{attribute: "something"})
    for nothing in ("", WORDS_FOR_NOTHING[attribute]):
        assert checked_attributes({attribute: nothing}, AWS) == {}


def test_what_terraform_sends_without_being_asked_says_nothing() -> None:
    sent = {
        "FifoTopic": "false",
        "ContentBasedDeduplication": "false",
        "SignatureVersion": "1",
        "TracingConfig": "PassThrough",
        "SQSSuccessFeedbackSampleRate": "0",
        "HTTPFailureFeedbackRoleArn": "",
    }
    assert checked_attributes(sent, AWS) == {}
    for name, text in (("SignatureVersion", "2"), ("TracingConfig", "Active"), ("FifoTopic", "true")):
        assert name in refused(**{name: text})


def test_what_is_wrong_with_a_policy_is_told_once_and_with_the_topic_it_is_for() -> None:
    assert refused(Policy="{").endswith("Reason: Policy: it is not JSON")
    statement = {"Effect": "Allow", "Principal": "*", "Action": "sns:Publish", "Resource": topic().arn}
    attributes = {"Policy": json.dumps({"Statement": statement})}
    check_policy(attributes, topic().arn, AWS)
    check_policy({}, topic().arn, AWS)
    with pytest.raises(InvalidRequest, match="Reason: Policy: bad resource"):
        check_policy(attributes, topic(name="photos").arn, AWS)


def test_empty_values_and_cephs_word_for_the_default_are_unset() -> None:
    sent = {"push-endpoint": "", "time_to_live": "None", "max_retries": "none", "OpaqueData": "None"}
    assert checked_attributes(sent, CEPH) == {"OpaqueData": "None"}


def test_amqp_needs_an_exchange() -> None:
    with pytest.raises(CallError, match="amqp-exchange"):
        check_together({"push-endpoint": "amqp://host"}, AWS)


@pytest.mark.parametrize(
    ("attributes", "dialect"),
    [
        ({"ordering": "key"}, CEPH),
        ({"ordering": "key", "persistent": "false"}, CEPH),
        ({"ordering": "key", "persistent": "False"}, AWS),
    ],
)
def test_order_needs_a_persistent_topic_unless_it_was_so_before(
    attributes: dict[str, str], dialect: Dialect
) -> None:
    with pytest.raises(InvalidRequest, match=r"Reason: ordering: key needs persistent=true") as raised:
        check_order(attributes, {}, dialect)
    assert raised.value.code == dialect.bad_topic_code
    check_order(attributes, attributes, dialect)
    for without in ({**attributes, "persistent": "true"}, {**attributes, "ordering": "none"}):
        check_order(without, {}, dialect)
        with pytest.raises(InvalidRequest):
            check_order(attributes, without, dialect)


def test_nobody_can_ask_for_a_longer_pause_than_there_is() -> None:
    assert MAX_SLEEP_SECONDS == LONGEST_WAIT_SECONDS


def test_a_missing_library_is_told_by_the_name_of_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(scheme: str, _name: str) -> None:
        raise ConfigError(
            f"{scheme}:// needs more than is installed: install Bucketwire with the extra kafka"
        )

    monkeypatch.setattr(topic_attributes, "publisher_kind", missing)
    with pytest.raises(InvalidRequest, match=r"push-endpoint: kafka:// needs .* extra kafka"):
        check_together({"push-endpoint": "kafka://host"}, AWS)


def test_a_topic_without_an_endpoint_needs_nothing_more() -> None:
    check_together({}, AWS)


def test_secrets_are_known_by_name_and_in_the_endpoint() -> None:
    assert secrets_among({"password": "x", "user-name": "u", "signing-secret": KEY, "OpaqueData": "x"}) == [
        "password",
        "user-name",
        "signing-secret",
    ]
    assert secrets_among({"push-endpoint": "amqp://u:p@host"}) == ["push-endpoint"]
    assert secrets_among({"push-endpoint": "http://host/?mail=a@b", "password": ""}) == []


def row(attribute: Attribute) -> str:
    endpoints = "all" if attribute.schemes == SCHEMES else ", ".join(attribute.schemes)
    secret = "yes" if attribute.secret else "no"
    return f"| `{attribute.name}` | {attribute.values} | {attribute.default} | {endpoints} | {secret} |"


def test_the_page_of_topics_shows_the_table_as_it_is() -> None:
    table = PAGE.read_text().partition("## Attributes")[2].partition("\n\n|")[2].partition("\n\n")[0]
    assert table.splitlines()[2:] == [row(attribute) for attribute in ATTRIBUTES.values()]
