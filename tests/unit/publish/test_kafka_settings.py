"""What a topic says about its Kafka cluster."""

import pytest

from bucketwire.errors import ConfigError
from bucketwire.event.topic import Topic
from bucketwire.publish.kafka_settings import cluster_from_topic, kafka_topic_name
from factories import topic

SECRET = "s3cret"


def configuration(endpoint: str = "kafka://broker", **attributes: str) -> dict[str, str]:
    return cluster_from_topic(kafka_topic(endpoint, **attributes)).configuration()


def kafka_topic(endpoint: str = "kafka://broker", **attributes: str) -> Topic:
    return topic(endpoint, **{name.replace("_", "-"): value for name, value in attributes.items()})


@pytest.mark.parametrize(
    ("endpoint", "brokers", "found"),
    [
        ("kafka://broker", "", "broker:9092"),
        ("kafka://broker:19092/", "", "broker:19092"),
        ("kafka://[::1]:9093", "", "[::1]:9093"),
        ("kafka://a", "b:1, c ,[::1],a:9092", "a:9092,b:1,c:9092,[::1]:9092"),
    ],
)
def test_brokers_are_those_of_the_endpoint_and_of_the_list(endpoint: str, brokers: str, found: str) -> None:
    assert configuration(endpoint, kafka_brokers=brokers)["bootstrap.servers"] == found


def test_without_attributes_a_message_is_acknowledged_in_plain_text() -> None:
    found = configuration()
    assert (found["acks"], found["enable.idempotence"]) == ("all", "true")
    assert found["security.protocol"] == "PLAINTEXT"


def test_without_acknowledgements_there_is_no_idempotence() -> None:
    found = configuration(kafka_ack_level="none")
    assert found["acks"] == "0"
    assert "enable.idempotence" not in found


def test_user_and_password_of_attributes_come_before_those_of_the_endpoint() -> None:
    found = configuration("kafka://a%40b:p%3Aw@broker", password=SECRET, use_ssl="true", mechanism="plain")
    assert (found["sasl.username"], found["sasl.password"]) == ("a@b", SECRET)
    assert (found["security.protocol"], found["sasl.mechanism"]) == ("SASL_SSL", "PLAIN")


def test_equal_topics_share_a_cluster_and_another_password_makes_another() -> None:
    first, same, other = (
        cluster_from_topic(kafka_topic(f"kafka://user:{password}@broker")) for password in ("a", "a", "b")
    )
    assert first == same
    assert hash(first) == hash(same)
    assert first != other


def test_no_secret_is_in_a_repr() -> None:
    assert SECRET not in repr(cluster_from_topic(kafka_topic(f"kafka://user:{SECRET}@broker")))


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({"endpoint": f"kafka://user:{SECRET}@"}, "push-endpoint"),
        ({"endpoint": f"kafka://user:{SECRET}@broker:port"}, "push-endpoint"),
        ({"endpoint": f"kafka://user:{SECRET}@broker/topic"}, "push-endpoint"),
        ({"endpoint": f"kafka://user:{SECRET}@[broker"}, "push-endpoint"),
        ({"kafka_brokers": "one two"}, "kafka-brokers"),
        ({"kafka_brokers": f"user:{SECRET}@broker"}, "kafka-brokers"),
        ({"kafka_ack_level": "all"}, "kafka-ack-level"),
        ({"mechanism": "MD5", "user_name": "user", "password": SECRET}, "mechanism"),
        ({"mechanism": "PLAIN"}, "user-name"),
        ({"user_name": "user"}, "password"),
        ({"mechanism": "OAUTHBEARER", "user_name": "user", "password": SECRET}, "oauth-token-endpoint"),
        ({"use_ssl": "true", "client_key_location": "/key.pem"}, "client-certificate-location"),
        ({"client_key_location": "/k.pem", "client_certificate_location": "/c.pem"}, "use-ssl"),
    ],
)
def test_what_can_never_work_is_refused_by_the_name_of_its_attribute(
    attributes: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        configuration(**attributes)
    assert named in str(refused.value)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or SECRET not in str(refused.value.__context__)


@pytest.mark.parametrize("name", ["a topic", "..", "x" * 250, "tópic"])
def test_a_name_that_kafka_has_not_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        kafka_topic_name(topic(name=name))
