"""The contracts of `Queue` and `Cursors`: what the pipeline must not forget."""

from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Settlement, TopicHealth
from factories import TOPIC_ARN, message

OTHER_ARN = TOPIC_ARN + "-other"


def park(metabase: Metabase, *ids: str, arn: str = TOPIC_ARN, due_at_ns: int = 0) -> None:
    metabase.queue.park(
        [message(each, arn) for each in ids], due_at_ns=due_at_ns, attempts=1, reason="HTTP 503"
    )


def waiting(metabase: Metabase, arn: str = TOPIC_ARN, now_ns: int = 100) -> list[str]:
    return [parked.message.event_id for parked in metabase.queue.take(arn, now_ns, 100)]


def test_parked_messages_survive_and_come_back_whole(metabase: Metabase, metabase_url: str) -> None:
    park(metabase, "event-1")
    again = open_metabase(metabase_url)
    try:
        (parked,) = again.queue.take(TOPIC_ARN, 100, 10)
    finally:
        again.close()
    assert parked.message == message("event-1")
    assert (parked.attempts, parked.reason) == (1, "HTTP 503")


def test_parking_twice_keeps_one(metabase: Metabase) -> None:
    park(metabase, "a", "b")
    park(metabase, "b", "c")
    assert waiting(metabase) == ["a", "b", "c"]


def test_only_what_is_due_is_taken_and_taking_takes_nothing_away(metabase: Metabase) -> None:
    park(metabase, "later", due_at_ns=200)
    park(metabase, "now", due_at_ns=50)
    assert waiting(metabase) == ["now"]
    assert waiting(metabase) == ["now"]
    assert waiting(metabase, now_ns=300) == ["now", "later"]


def test_topics_are_due_when_a_message_is_and_the_destination_may_be_tried(metabase: Metabase) -> None:
    park(metabase, "a")
    park(metabase, "b", arn=OTHER_ARN, due_at_ns=500)
    assert metabase.queue.due_topics(100) == [TOPIC_ARN]
    metabase.queue.report(TopicHealth(TOPIC_ARN, failures=2, retry_at_ns=300, reason="refused"))
    assert metabase.queue.due_topics(100) == []
    assert metabase.queue.due_topics(300) == [TOPIC_ARN]
    assert metabase.queue.due_topics(500) == [TOPIC_ARN, OTHER_ARN]


def test_a_settlement_is_written_as_a_whole_and_may_be_written_twice(metabase: Metabase) -> None:
    park(metabase, "delivered", "retried", "buried")
    ids = {each.message.event_id: each.id for each in metabase.queue.take(TOPIC_ARN, 100, 10)}
    settlement = Settlement(
        delivered=[ids["delivered"]],
        retried=[(ids["retried"], 400, "HTTP 500")],
        buried=[(ids["buried"], "gone for good")],
    )
    metabase.queue.settle(settlement)
    assert waiting(metabase) == []
    (parked,) = metabase.queue.take(TOPIC_ARN, 400, 10)
    assert (parked.message.event_id, parked.attempts, parked.reason) == ("retried", 2, "HTTP 500")
    metabase.queue.settle(settlement)
    assert metabase.queue.dead_letters() == 1
    assert waiting(metabase, now_ns=400) == ["retried"]


def test_burying_twice_keeps_one(metabase: Metabase) -> None:
    metabase.queue.bury([message("a")], "topic deleted")
    metabase.queue.bury([message("a"), message("b")], "topic deleted")
    assert metabase.queue.dead_letters() == 2


def test_a_topic_is_unhealthy_until_it_is_reported_healthy(metabase: Metabase) -> None:
    sick = TopicHealth(TOPIC_ARN, failures=1, retry_at_ns=7, reason="no answer")
    metabase.queue.report(sick)
    assert metabase.queue.unhealthy() == {TOPIC_ARN: sick}
    metabase.queue.report(TopicHealth(TOPIC_ARN))
    assert metabase.queue.unhealthy() == {}


def test_statistics_count_entries_and_bytes_by_topic(metabase: Metabase) -> None:
    park(metabase, "a", "b")
    metabase.queue.report(TopicHealth(TOPIC_ARN, failures=3))
    (line,) = metabase.queue.stats()
    assert (line.topic_arn, line.entries, line.size_bytes, line.failures) == (TOPIC_ARN, 2, 4, 3)


def test_a_cursor_is_where_it_was_left(metabase: Metabase, metabase_url: str) -> None:
    assert metabase.cursors.load("pipeline") is None
    assert metabase.cursors.alive_at_ns("pipeline") is None
    metabase.cursors.save("pipeline", "17", 1_000)
    metabase.cursors.save("pipeline", "18", 2_000)
    again = open_metabase(metabase_url)
    try:
        assert again.cursors.load("pipeline") == "18"
        assert again.cursors.alive_at_ns("pipeline") == 2_000
    finally:
        again.close()
