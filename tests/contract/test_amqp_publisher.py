"""What only the AMQP publisher promises, against a real RabbitMQ."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from cloudevents.core.bindings.amqp import AMQPMessage, from_amqp_event
from cloudevents.core.bindings.rabbitmq import RabbitMQMessage, from_rabbitmq_event

from bucketwire.errors import ConfigError
from bucketwire.event.topic import Topic
from bucketwire.publish.amqp import LANES, AmqpPublisher
from bucketwire.publish.amqp_batch import WINDOW_MESSAGES
from bucketwire.publish.amqp_channel import AmqpChannel
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections
from factories import message, topic
from golden.consumers import MODES, assert_is_the_event, cloudevent
from services.http_endpoint import HttpEndpoint
from services.proxy import Condition, Proxy
from services.rabbitmq import MESSAGE_LIMIT_BYTES, RabbitmqServer, rabbitmq_server

LONG_SECONDS = 30.0
_NUMBERS = count()


@pytest.fixture
def server() -> RabbitmqServer:
    return rabbitmq_server()


@pytest.fixture
def connections() -> Iterator[Connections]:
    opened = Connections()
    yield opened
    opened.close()


@pytest.fixture
def proxy(server: RabbitmqServer) -> Iterator[Proxy]:
    with Proxy(server.port) as opened:
        yield opened


class Exchange:
    """A direct exchange of its own, with a queue for the routing key `videos` when that is bound."""

    def __init__(self, server: RabbitmqServer, vhost: str = "/") -> None:
        self.name = f"special-{next(_NUMBERS)}"
        self._server = server
        self._vhost = vhost
        self.declare()

    def declare(self) -> None:
        with self._server.channel(self._vhost) as channel:
            channel.exchange_declare(self.name, "direct")

    def delete(self) -> None:
        with self._server.channel(self._vhost) as channel:
            channel.exchange_delete(self.name)
            channel.queue_delete(self.name)

    def bind(self, **arguments: Any) -> None:
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        with self._server.channel(self._vhost) as channel:
            channel.queue_declare(self.name, arguments=named)
            channel.queue_bind(self.name, self.name, "videos")

    def take(self) -> list[tuple[Any, Any, bytes]]:
        """What is in the queue: (method, properties, body) of each."""
        taken = []
        with self._server.channel(self._vhost) as channel:
            while (found := channel.basic_get(self.name, auto_ack=True))[0] is not None:
                taken.append(found)
        return taken


@pytest.fixture
def exchange(server: RabbitmqServer) -> Iterator[Exchange]:
    made = Exchange(server)
    made.bind()
    yield made
    made.delete()


def to(exchange: str, url: str, **attributes: str) -> Topic:
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    return topic(url, **{"amqp-exchange": exchange, **named})


def publish(
    connections: Connections, where: Topic, count: int = 1, deadline_seconds: float = LONG_SECONDS
) -> list[Outcome]:
    messages = [message(f"event-{n}", body=b"%d" % n) for n in range(count)]
    return AmqpPublisher(where, connections).publish(messages, deadline_seconds)


def test_a_message_carries_what_a_consumer_needs_beside_the_body(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    sent = msgspec.structs.replace(
        message("event-7", body=b"\x00body"),
        key="Ünï/cöde 漢字.mp4",
        content_type="application/cloudevents+json",
        committed_at_ns=1_763_238_280_123_456_789,
        cloudevent={"id": "event-7", "subject": "Ünï"},
    )
    publisher = AmqpPublisher(to(exchange.name, server.url()), connections)
    assert publisher.publish([sent], LONG_SECONDS) == [Delivered()]
    ((method, properties, body),) = exchange.take()
    assert (method.exchange, method.routing_key, body) == (exchange.name, "videos", b"\x00body")
    assert (properties.message_id, properties.delivery_mode) == ("event-7", 2)
    assert properties.content_type == "application/cloudevents+json"
    assert properties.timestamp == 1_763_238_280
    assert properties.headers == {
        "bucketwire-event-id": "event-7",
        "bucketwire-key": "Ünï/cöde 漢字.mp4",
        "ce-id": "event-7",
        "ce-subject": "Ünï",
        "cloudEvents:id": "event-7",
        "cloudEvents:subject": "Ünï",
    }


def over_amqp_1_0(properties: Any, body: bytes) -> Any:
    return from_amqp_event(AMQPMessage({"content-type": properties.content_type}, properties.headers, body))


def over_amqp_0_9_1(properties: Any, body: bytes) -> Any:
    return from_rabbitmq_event(RabbitMQMessage(properties.headers, properties.content_type, body))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read", [over_amqp_0_9_1, over_amqp_1_0])
def test_a_consumer_of_cloudevents_reads_what_arrives(
    server: RabbitmqServer, exchange: Exchange, connections: Connections, read: Any, mode: str
) -> None:
    sent = cloudevent(mode)
    AmqpPublisher(to(exchange.name, server.url()), connections).publish([sent], LONG_SECONDS)
    ((_, properties, body),) = exchange.take()
    assert_is_the_event(read(properties, body), sent)


def test_a_message_about_no_object_carries_no_key(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    sent = msgspec.structs.replace(message("event-7"), key="")
    AmqpPublisher(to(exchange.name, server.url()), connections).publish([sent], LONG_SECONDS)
    ((_, properties, _),) = exchange.take()
    assert properties.headers == {"bucketwire-event-id": "event-7"}
    assert properties.timestamp is None


@pytest.mark.parametrize("level", ["none", "broker", "routable"])
def test_a_batch_larger_than_the_window_arrives_in_order(
    server: RabbitmqServer, exchange: Exchange, connections: Connections, level: str
) -> None:
    many = 2 * WINDOW_MESSAGES + 500
    outcomes = publish(connections, to(exchange.name, server.url(), amqp_ack_level=level), many)
    assert outcomes == [Delivered()] * many
    assert [body for _, _, body in exchange.take()] == [b"%d" % n for n in range(many)]


def test_messages_of_one_key_arrive_in_order(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    publisher = AmqpPublisher(to(exchange.name, server.url(), ordering="key"), connections)
    keyless = [message(f"event-{n}", body=b"%d" % n) for n in range(100)]
    sent = [msgspec.structs.replace(each, key=f"key-{n % 7}") for n, each in enumerate(keyless)]
    assert publisher.publish(sent, LONG_SECONDS) == [Delivered()] * 100
    assert [body for _, _, body in exchange.take()] == [b"%d" % n for n in range(100)]


def test_with_ordering_nothing_overtakes_a_message_that_the_broker_refused(
    server: RabbitmqServer, connections: Connections
) -> None:
    full = Exchange(server)
    full.bind(x_max_length=1, x_overflow="reject-publish")
    publisher = AmqpPublisher(to(full.name, server.url(), ordering="key"), connections)
    outcomes = publisher.publish([message(f"event-{n}") for n in range(4)], LONG_SECONDS)
    behind = Retry("an earlier message about the same key was not taken")
    assert outcomes == [Delivered(), Retry("the broker did not accept the message"), behind, behind]
    full.delete()


def test_user_password_and_virtual_host_are_decoded(server: RabbitmqServer, connections: Connections) -> None:
    exchange = Exchange(server, "media/eu")
    exchange.bind()
    url = f"amqp://j%C3%B6rg:p%40ss%3Aword%2F100%25@127.0.0.1:{server.port}/media%2Feu"
    assert publish(connections, to(exchange.name, url)) == [Delivered()]
    assert len(exchange.take()) == 1
    exchange.delete()


def test_attributes_override_the_credentials_of_the_url(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    url = f"amqp://somebody:else@127.0.0.1:{server.port}"
    where = to(exchange.name, url, user_name="jörg", password="p@ss:word/100%")
    assert publish(connections, where) == [Delivered()]


def test_a_missing_exchange_is_waited_for_and_leaves_the_connection_alone(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    where = to(exchange.name, server.url(port=proxy.port))
    exchange.delete()
    assert publish(connections, where, 3) == [Retry("the exchange does not exist")] * 3
    exchange.declare()
    exchange.bind()
    assert publish(connections, where, 3) == [Delivered()] * 3
    assert proxy.connections == 1


def test_an_exchange_that_is_gone_is_noticed_at_every_level(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    topics = [
        to(exchange.name, server.url(), amqp_ack_level=level) for level in ("none", "broker", "routable")
    ]
    assert [publish(connections, where) for where in topics] == [[Delivered()]] * 3
    exchange.delete()
    assert [publish(connections, where) for where in topics] == [[Retry("the exchange does not exist")]] * 3


def test_without_permission_to_write_messages_wait(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    where = to(exchange.name, f"amqp://reader:reader@127.0.0.1:{server.port}")
    assert publish(connections, where, 50) == [Retry("access to the exchange is refused")] * 50


@pytest.mark.parametrize(
    ("userinfo", "vhost", "reason"),
    [
        ("guest:wrong", "", "the login is refused"),
        ("nobody:guest", "", "the login is refused"),
        ("guest:guest", "/nowhere", "the virtual host does not exist"),
        ("stranger:stranger", "", "access to the virtual host is refused"),
    ],
)
def test_whom_the_broker_does_not_let_in_is_told_why(
    server: RabbitmqServer,
    exchange: Exchange,
    connections: Connections,
    userinfo: str,
    vhost: str,
    reason: str,
) -> None:
    where = to(exchange.name, f"amqp://{userinfo}@127.0.0.1:{server.port}{vhost}")
    assert publish(connections, where, 3) == [Retry(reason)] * 3


def test_what_no_queue_takes_is_a_failure_at_level_routable_only(
    server: RabbitmqServer, connections: Connections
) -> None:
    exchange = Exchange(server)
    many = WINDOW_MESSAGES + 10
    routable = to(exchange.name, server.url(), amqp_ack_level="routable")
    assert publish(connections, to(exchange.name, server.url()), 3) == [Delivered()] * 3
    unroutable = Retry("no queue is bound for the routing key videos")
    assert publish(connections, routable, many) == [unroutable] * many
    exchange.bind()
    assert publish(connections, routable, 3) == [Delivered()] * 3
    exchange.delete()


def test_messages_with_one_event_id_have_an_outcome_each(
    server: RabbitmqServer, connections: Connections
) -> None:
    exchange = Exchange(server)
    publisher = AmqpPublisher(to(exchange.name, server.url(), amqp_ack_level="routable"), connections)
    outcomes = publisher.publish([message()] * 5, LONG_SECONDS)
    assert outcomes == [Retry("no queue is bound for the routing key videos")] * 5
    exchange.delete()


@pytest.mark.parametrize("level", ["none", "broker"])
def test_a_message_too_large_is_rejected_and_the_others_arrive(
    server: RabbitmqServer, exchange: Exchange, connections: Connections, level: str
) -> None:
    large = message("large", body=b"x" * (MESSAGE_LIMIT_BYTES + 1))
    small = [message(f"event-{n}") for n in range(20)]
    publisher = AmqpPublisher(to(exchange.name, server.url(), amqp_ack_level=level), connections)
    outcomes = publisher.publish([*small[:10], large, *small[10:], large], LONG_SECONDS)
    rejected = Rejected(f"larger than the {MESSAGE_LIMIT_BYTES} bytes that the broker takes")
    assert outcomes == [*[Delivered()] * 10, rejected, *[Delivered()] * 10, rejected]
    arrived = {properties.message_id for _, properties, _ in exchange.take()}
    assert arrived == {each.event_id for each in small}


def test_a_message_that_amqp_cannot_say_is_rejected_alone(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    publisher = AmqpPublisher(to(exchange.name, server.url()), connections)
    outcomes = publisher.publish([message("x" * 256), message("fine")], LONG_SECONDS)
    assert [type(outcome) for outcome in outcomes] == [Rejected, Delivered]
    assert [properties.message_id for _, properties, _ in exchange.take()] == ["fine"]


def test_a_connection_lost_while_it_rested_is_replaced_at_once(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    where = to(exchange.name, server.url(port=proxy.port))
    publish(connections, where)
    proxy.cut()
    assert publish(connections, where, 3) == [Delivered()] * 3
    assert proxy.connections == 2
    assert len(exchange.take()) == 4


def test_a_connection_that_the_broker_closed_is_replaced_at_once(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    where = to(exchange.name, server.url(port=proxy.port))
    publish(connections, where)
    server.evaluate('rabbit_networking:close_connections(rabbit_networking:connections(), "maintenance").')
    assert publish(connections, where, 3) == [Delivered()] * 3
    assert proxy.connections == 2


def test_a_connection_that_has_gone_silent_is_replaced(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    publisher = AmqpPublisher(to(exchange.name, server.url(port=proxy.port)), connections)
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    proxy.condition = Condition.HANGS
    assert publisher.publish([message()], 0.2) == [Retry("no answer within 0.2 s")]
    proxy.condition = Condition.WORKS
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
    assert proxy.connections == 2


def test_what_is_unconfirmed_when_the_connection_is_cut_is_retried(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    where = to(exchange.name, server.url(port=proxy.port))
    publish(connections, where)
    exchange.take()
    outcomes: list[Outcome] = []
    proxy.delay_seconds, proxy.condition = 0.1, Condition.SLOW
    at_work = Thread(target=lambda: outcomes.extend(publish(connections, where, 20_000)))
    at_work.start()
    _wait_for_messages(server, exchange.name)
    proxy.cut()
    at_work.join(LONG_SECONDS)
    arrived = {int(body) for _, _, body in exchange.take()}
    delivered = {place for place, outcome in enumerate(outcomes) if outcome == Delivered()}
    assert len(outcomes) == 20_000
    assert delivered <= arrived
    assert {outcome for outcome in outcomes if outcome != Delivered()} == {Retry("connection lost")}


def _wait_for_messages(server: RabbitmqServer, queue: str) -> None:
    give_up_at = time.monotonic() + LONG_SECONDS
    with server.channel() as channel:
        while channel.queue_declare(queue, passive=True).method.message_count == 0:
            assert time.monotonic() < give_up_at


def test_a_hundred_topics_at_once_need_few_connections(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    where = [
        topic(server.url(port=proxy.port), f"topic-{n}", **{"amqp-exchange": exchange.name})
        for n in range(100)
    ]
    publishers = [AmqpPublisher(each, connections) for each in where]
    with ThreadPoolExecutor(64) as threads:
        for _ in range(3):
            found = threads.map(lambda each: each.publish([message()] * 20, LONG_SECONDS), publishers)
            assert list(found) == [[Delivered()] * 20] * 100
    assert proxy.connections <= LANES
    ends = time.monotonic() + LONG_SECONDS  # those of the test before may still be closing
    while server.client_connections("bucketwire") > LANES:
        assert time.monotonic() < ends
    assert server.client_connections("bucketwire") > 0


def test_1200_topics_outlive_the_loss_of_their_connections(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    exchanges = {"amqp-exchange": exchange.name}
    where = [topic(server.url(port=proxy.port), f"topic-{n}", **exchanges) for n in range(1200)]
    publishers = [AmqpPublisher(each, connections) for each in where]
    with ThreadPoolExecutor(64) as threads:
        found = threads.map(lambda each: each.publish([message()], LONG_SECONDS), publishers)
        outcomes = {outcome for _ in range(600) for outcome in next(found)}
        proxy.cut()
        outcomes |= {outcome for each in found for outcome in each}
        assert outcomes <= {Delivered(), Retry("connection lost")}
        again = threads.map(lambda each: each.publish([message()], LONG_SECONDS), publishers)
        assert list(again) == [[Delivered()]] * 1200
    assert proxy.open_connections <= LANES


def test_a_queue_that_hangs_keeps_nobody_else_waiting(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    stuck = Exchange(server)
    stuck.bind()
    hanging = AmqpPublisher(to(stuck.name, server.url()), connections)
    healthy = AmqpPublisher(to(exchange.name, server.url()), connections)
    many = [message(f"event-{n}") for n in range(WINDOW_MESSAGES)]
    assert healthy.publish([message()], LONG_SECONDS) == [Delivered()]
    server.suspend_queue(stuck.name)
    try:
        assert Delivered() not in hanging.publish(many, 1.0)
        at_work = Thread(target=hanging.publish, args=(many, LONG_SECONDS))
        at_work.start()
        for _ in range(20):
            assert healthy.publish(many, LONG_SECONDS / 2) == [Delivered()] * len(many)
    finally:
        server.resume_queue(stuck.name)
    at_work.join(LONG_SECONDS)
    stuck.delete()


def test_two_queues_that_hang_both_stay_apart_from_the_others(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    stuck = [Exchange(server), Exchange(server)]
    first, second = (AmqpPublisher(to(each.name, server.url()), connections) for each in stuck)
    healthy = AmqpPublisher(to(exchange.name, server.url()), connections)
    many = [message(f"event-{n}") for n in range(WINDOW_MESSAGES)]
    for each in stuck:
        each.bind()
        server.suspend_queue(each.name)
    try:
        assert Delivered() not in first.publish(many, 1.0) + second.publish(many, 1.0)
        at_work = [Thread(target=first.publish, args=(many, LONG_SECONDS))]
        at_work[0].start()
        _wait_until(lambda: server.held_up_connections() > 0)
        assert Delivered() not in second.publish(many, 1.0)  # none of it is even sent
        at_work.append(Thread(target=second.publish, args=(many, LONG_SECONDS)))
        at_work[1].start()
        for _ in range(20):
            assert healthy.publish(many, LONG_SECONDS / 2) == [Delivered()] * len(many)
    finally:
        for each in stuck:
            server.resume_queue(each.name)
    for thread in at_work:
        thread.join(LONG_SECONDS)
    for each in stuck:
        each.delete()


def _wait_until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + LONG_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at


@pytest.fixture
def few_channels(server: RabbitmqServer) -> Iterator[int]:
    """How many the broker allows on each new connection."""
    server.evaluate("application:set_env(rabbit, channel_max, 2).")
    yield 2
    server.evaluate("application:set_env(rabbit, channel_max, 2047).")


def test_calls_wait_for_each_other_where_the_broker_allows_few_channels(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections, few_channels: int
) -> None:
    url, calls = server.url(port=proxy.port), 4 * LANES * few_channels
    with ThreadPoolExecutor(calls) as threads:
        for level in ("broker", "none", "broker"):
            where = to(exchange.name, url, amqp_ack_level=level)
            found = threads.map(lambda where: publish(connections, where, 20), [where] * calls)
            assert list(found) == [[Delivered()] * 20] * calls
    assert len(exchange.take()) == 3 * 20 * calls
    assert proxy.connections <= LANES


def test_a_message_too_large_is_rejected_where_the_broker_allows_few_channels(
    server: RabbitmqServer, exchange: Exchange, connections: Connections, few_channels: int
) -> None:
    publishers = [
        AmqpPublisher(to(exchange.name, server.url()), connections) for _ in range(2 * few_channels)
    ]
    sent = [message("small"), message("large", body=b"x" * (MESSAGE_LIMIT_BYTES + 1))]
    with ThreadPoolExecutor(len(publishers)) as threads:
        found = list(threads.map(lambda each: each.publish(sent, LONG_SECONDS), publishers))
    assert [[type(outcome) for outcome in each] for each in found] == [[Delivered, Rejected]] * len(found)


def test_a_connection_without_free_channels_gets_no_calls_while_there_can_be_another(
    server: RabbitmqServer, exchange: Exchange, connections: Connections, few_channels: int
) -> None:
    stuck = Exchange(server)
    stuck.bind()
    healthy = AmqpPublisher(to(exchange.name, server.url()), connections)
    assert healthy.publish([message()], LONG_SECONDS) == [Delivered()]
    server.suspend_queue(stuck.name)
    try:
        hanging = [AmqpPublisher(to(stuck.name, server.url()), connections) for _ in range(few_channels)]
        at_work = [Thread(target=each.publish, args=([message()], LONG_SECONDS)) for each in hanging]
        for thread in at_work:
            thread.start()
        for _ in range(100):
            assert healthy.publish([message()], LONG_SECONDS / 2) == [Delivered()]
    finally:
        server.resume_queue(stuck.name)
    for thread in at_work:
        thread.join(LONG_SECONDS)
    stuck.delete()


@pytest.mark.parametrize("step", ["check", "send"])
def test_what_nobody_expects_ends_its_own_call_alone(
    server: RabbitmqServer,
    proxy: Proxy,
    exchange: Exchange,
    connections: Connections,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    where = to(exchange.name, server.url(port=proxy.port))
    assert publish(connections, where) == [Delivered()]
    works = getattr(AmqpChannel, step)

    def fails(channel: AmqpChannel, exchange: str, *given: Any) -> Any:
        if exchange == "odd":
            raise RuntimeError
        return works(channel, exchange, *given)

    odd = to("odd", server.url(port=proxy.port))
    with server.channel() as channel:
        channel.exchange_declare("odd")
    monkeypatch.setattr(AmqpChannel, step, fails)
    assert publish(connections, odd, 3) == [Retry("unexpected RuntimeError")] * 3
    assert publish(connections, where) == [Delivered()]
    assert proxy.connections == 1


def test_a_call_without_an_answer_costs_the_others_on_its_connection_nothing(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    stuck = Exchange(server)
    stuck.bind()
    hanging = AmqpPublisher(to(stuck.name, server.url()), connections)
    healthy = AmqpPublisher(to(exchange.name, server.url()), connections)
    assert healthy.publish([message()], LONG_SECONDS) == [Delivered()]
    server.suspend_queue(stuck.name)
    try:
        at_work = Thread(target=hanging.publish, args=([message()], 1.0))
        at_work.start()
        while at_work.is_alive():
            assert healthy.publish([message()], LONG_SECONDS) == [Delivered()]
    finally:
        server.resume_queue(stuck.name)
    stuck.delete()


def test_a_hundred_topics_share_a_connection(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    url = server.url(port=proxy.port)
    publishers = [
        AmqpPublisher(topic(url, f"topic-{n}", **{"amqp-exchange": exchange.name}), connections)
        for n in range(100)
    ]
    for publisher in publishers:
        assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]
        publisher.close()
    assert proxy.connections == 1


def test_a_forked_process_connects_anew_and_leaves_the_parent_its_connection(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    publisher = AmqpPublisher(to(exchange.name, server.url()), connections)
    publisher.publish([message("before")], LONG_SECONDS)
    child = os.fork()
    if child == 0:
        delivered = publisher.publish([message("child")], LONG_SECONDS) == [Delivered()]
        os._exit(0 if delivered else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert publisher.publish([message("after")], LONG_SECONDS) == [Delivered()]
    assert [properties.message_id for _, properties, _ in exchange.take()] == ["before", "child", "after"]


def test_a_broker_that_nobody_runs_is_connection_refused(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    proxy.condition = Condition.DOWN
    where = to(exchange.name, server.url(port=proxy.port))
    assert publish(connections, where, 500) == [Retry("connection refused")] * 500


def test_a_broker_short_of_memory_is_named_as_the_reason(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    where = to(exchange.name, server.url())
    expected = [Retry("the broker takes no messages for now: it is short of memory or disk")] * 3
    alarm = "{resource_limit, memory, node()}"
    server.evaluate(f"rabbit_alarm:set_alarm({{{alarm}, []}}).")
    try:
        told = any(publish(connections, where, 3, seconds) == expected for seconds in (1, 2, 4, 8, 16))
    finally:
        server.evaluate(f"rabbit_alarm:clear_alarm({alarm}).")
    assert told
    assert publish(connections, where, 3) == [Delivered()] * 3


def test_waiting_for_an_answer_takes_no_processor_time(
    server: RabbitmqServer, proxy: Proxy, exchange: Exchange, connections: Connections
) -> None:
    proxy.condition = Condition.HANGS
    where = to(exchange.name, server.url(port=proxy.port))
    before = time.process_time()
    assert publish(connections, where, 10, deadline_seconds=1.0) == [Retry("no answer within 1 s")] * 10
    assert time.process_time() - before < 0.25


def test_a_server_that_speaks_something_else_is_retried(connections: Connections) -> None:
    with HttpEndpoint() as endpoint:
        where = to("media", f"amqp://127.0.0.1:{endpoint.port}")
        (outcome,) = publish(connections, where, deadline_seconds=0.5)
    assert isinstance(outcome, Retry)


@pytest.mark.parametrize("name", ["no%20host", "a..b", "x" * 70])
def test_a_host_name_that_leads_nowhere_is_retried(connections: Connections, name: str) -> None:
    assert publish(connections, to("media", f"amqp://{name}")) == [Retry("host name not found")]


def test_private_networks_can_be_forbidden(server: RabbitmqServer, exchange: Exchange) -> None:
    connections = Connections(private_allowed=False)
    for host in ("127.0.0.1", "localhost"):
        where = to(exchange.name, f"amqp://{host}:{server.port}")
        assert publish(connections, where) == [Retry("the endpoint is in a private network")]
    connections.close()


def test_a_trusted_certificate_is_accepted(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    where = to(exchange.name, server.url(tls=True), ca_location=str(server.certificates.ca))
    assert publish(connections, where, 300) == [Delivered()] * 300


def test_an_untrusted_certificate_is_named_as_the_reason(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    reason = Retry("the certificate is of an unknown authority")
    for more in ({}, {"ca_location": str(server.certificates.other_ca)}):
        assert publish(connections, to(exchange.name, server.url(tls=True), **more), 3) == [reason] * 3


def test_verification_can_be_switched_off(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    where = to(exchange.name, server.url(tls=True), verify_ssl="false")
    assert publish(connections, where) == [Delivered()]


@pytest.mark.parametrize("content", [None, "this is no certificate"])
def test_trusted_certificates_that_cannot_be_read_are_named_as_the_reason(
    server: RabbitmqServer, exchange: Exchange, connections: Connections, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if content:
        file.write_text(content)
    where = to(exchange.name, server.url(tls=True), ca_location=str(file))
    assert publish(connections, where) == [Retry("the certificate or key files cannot be used")]


def test_tls_at_a_plain_port_and_plain_at_a_tls_port_are_retried(
    server: RabbitmqServer, exchange: Exchange, connections: Connections
) -> None:
    for url in (f"amqps://127.0.0.1:{server.port}", f"amqp://127.0.0.1:{server.tls_port}"):
        (outcome,) = publish(connections, to(exchange.name, url), deadline_seconds=1.0)
        assert isinstance(outcome, Retry)


@pytest.mark.parametrize(
    ("url", "attributes", "named"),
    [
        ("amqp://", {}, "push-endpoint"),
        ("amqp://user:secret@host:port", {}, "push-endpoint"),
        ("amqp://user:sec#ret@host", {}, "push-endpoint"),
        ("amqp://user:secret@host?heartbeat=1", {}, "push-endpoint"),
        ("amqp://user:secret@host", {"amqp-exchange": ""}, "amqp-exchange"),
        ("amqp://user:secret@host", {"amqp-exchange": "x" * 256}, "amqp-exchange"),
        ("amqp://user:secret@host", {"amqp-ack-level": "always"}, "amqp-ack-level"),
    ],
)
def test_what_can_never_work_is_refused_by_name(url: str, attributes: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as refused:
        AmqpPublisher(topic(url, **{"amqp-exchange": "media", **attributes}), Connections())
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(refused.value.__context__)
