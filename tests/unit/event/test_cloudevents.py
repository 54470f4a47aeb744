"""CloudEvents, as read by the package that consumers use."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from cloudevents.core.bindings import amqp, http, kafka, rabbitmq
from cloudevents.core.bindings.amqp import AMQPMessage
from cloudevents.core.bindings.http import HTTPMessage
from cloudevents.core.bindings.kafka import KafkaMessage
from cloudevents.core.bindings.rabbitmq import RabbitMQMessage
from cloudevents.v1.http import from_http

from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import AWS, DIALECTS
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from bucketwire.publish.http_request import header_value
from factories import change, rule, state, topic
from golden.cases import CHANGES, FORMS, composed
from golden.consumers import CASE, MODES, assert_is_the_event, cloudevent
from golden.expected import expected
from golden.wire import lines_of_message

BINARY = FORMS["binary"]


def over_http(message: Message) -> Any:
    headers = {f"ce-{name}": quote(value) for name, value in message.cloudevent.items()}
    return http.from_http_event(HTTPMessage(headers | {"content-type": message.content_type}, message.body))


def over_kafka(message: Message) -> Any:
    headers = {f"ce_{name}": value.encode() for name, value in message.cloudevent.items()}
    headers["content-type"] = message.content_type.encode()
    return kafka.from_kafka_event(KafkaMessage(headers, message.partition_key, message.body))


def over_amqp(message: Message) -> Any:
    headers = {f"cloudEvents:{name}": value for name, value in message.cloudevent.items()}
    return amqp.from_amqp_event(AMQPMessage({"content-type": message.content_type}, headers, message.body))


def over_rabbitmq(message: Message) -> Any:
    headers = {f"ce-{name}": value for name, value in message.cloudevent.items()}
    return rabbitmq.from_rabbitmq_event(RabbitMQMessage(headers, message.content_type, message.body))


@pytest.mark.parametrize("read", [over_http, over_kafka, over_amqp, over_rabbitmq])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_consumer_reads_the_event_and_the_record(read: Any, mode: str, dialect: str) -> None:
    message = cloudevent(mode, dialect)
    assert_is_the_event(read(message), message, dialect)


def test_a_consumer_that_does_not_decode_headers_reads_the_key_in_structured_mode() -> None:
    read = {}
    for mode in MODES:
        message = cloudevent(mode)
        headers = {f"ce-{name}": header_value(value) for name, value in message.cloudevent.items()}
        read[mode] = from_http(headers | {"content-type": message.content_type}, message.body)["subject"]
    assert read == {"structured": CHANGES[CASE].key, "binary": header_value(CHANGES[CASE].key)}


@pytest.mark.parametrize("case", CHANGES)
def test_both_modes_say_the_same(case: str) -> None:
    for dialect in DIALECTS:
        binary = composed(case, dialect, **BINARY)
        structured = composed(case, dialect, format="cloudevents")
        whole = json.loads(structured.body)
        data, content_type = whole.pop("data"), whole.pop("datacontenttype")
        assert (whole, data) == (binary.cloudevent, json.loads(binary.body))
        assert content_type == binary.content_type
        assert structured.content_type == "application/cloudevents+json; charset=utf-8"
        assert structured.cloudevent == {}


@pytest.mark.parametrize("case", CHANGES)
def test_an_s3_topic_that_asks_for_it_has_the_attributes_beside_the_same_body(case: str) -> None:
    for dialect in DIALECTS:
        message = composed(case, dialect, cloudevents="true")
        assert lines_of_message(message) == expected(case, "headers", dialect)
        assert over_http(message).get_data() == json.loads(message.body)
        assert composed(case, dialect, cloudevents="false").cloudevent == {}


def test_ids_are_unique_within_a_multi_delete() -> None:
    deletes = [
        change(f"key-{number}", Operation.DELETE, committed_at_ns=1 + number, old=state())
        for number in range(100)
    ]
    ids = set()
    for each in deletes:
        message = Subscription(rule(), topic(**BINARY), Installation(AWS)).compose(each)
        ids.add(message.cloudevent["id"])
    assert len({each.origin.request_id for each in deletes}) == 1
    assert len(ids) == len(deletes)


@pytest.mark.parametrize("key", ["a\nb", "a\x7f", "a\x85", "a\ufdd0", "a\uffff", "a\U0010ffff"])
def test_a_key_that_cloudevents_forbid_in_attributes_gives_no_subject(key: str) -> None:
    message = Subscription(rule(), topic(**BINARY), Installation(AWS)).compose(change(key))
    assert "subject" not in message.cloudevent
    message = Subscription(rule(), topic(format="cloudevents"), Installation(AWS)).compose(change(key))
    assert "subject" not in json.loads(message.body)


@pytest.mark.parametrize("key", ["ä b", "a\xa0b", "a\u2028b", "a\u200bb", "a\U0001f600"])
def test_other_keys_are_the_subject_as_they_are(key: str) -> None:
    message = Subscription(rule(), topic(**BINARY), Installation(AWS)).compose(change(key))
    assert message.cloudevent["subject"] == key
