"""The contracts of `Queue` and `Cursors`: what the pipeline must not forget."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Letters, Settlement, TopicHealth
from factories import TOPIC_ARN, message
from wire import until as wait_until

OTHER_ARN = TOPIC_ARN + "-other"


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, 10, lambda: "the clock stands still")


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


def withdraw(metabase: Metabase, *event_ids: str, arn: str = TOPIC_ARN) -> None:
    """As after an answer that came late."""
    metabase.queue.settle(Settlement(delivered=[*metabase.queue.find(arn, event_ids).values()]))


def test_parked_messages_are_found_by_their_event_ids(metabase: Metabase) -> None:
    park(metabase, "a", "b", "c")
    park(metabase, "a", arn=OTHER_ARN)
    found = metabase.queue.find(TOPIC_ARN, ["a", "c", "never-parked"])
    assert found.keys() == {"a", "c"}
    assert metabase.queue.find(TOPIC_ARN, []) == {}
    metabase.queue.settle(Settlement(delivered=[*found.values()]))
    assert waiting(metabase) == ["b"]
    assert waiting(metabase, OTHER_ARN) == ["a"]


@pytest.mark.parametrize("now", [None, TopicHealth(TOPIC_ARN, 3, 50, "HTTP 503")], ids=["healthy", "failing"])
@pytest.mark.parametrize(
    "seen", [TopicHealth(TOPIC_ARN), TopicHealth(TOPIC_ARN, 1, 50), TopicHealth(TOPIC_ARN, 1, 7)]
)
def test_a_failure_is_told_of_a_topic_that_is_as_it_was_seen(
    metabase: Metabase, now: TopicHealth | None, seen: TopicHealth
) -> None:
    """Another may have claimed it, or told of it."""
    if now is not None:
        metabase.queue.report(now)
    before, told = metabase.queue.unhealthy(), TopicHealth(TOPIC_ARN, 2, 90, "no answer")
    as_seen = seen.retry_at_ns == (now.retry_at_ns if now else 0)
    assert metabase.queue.report(told, seen=seen) is as_seen
    assert metabase.queue.unhealthy() == ({TOPIC_ARN: told} if as_seen else before)


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


def test_a_topic_is_claimed_if_its_health_is_as_it_was_seen(metabase: Metabase) -> None:
    sick, well = TopicHealth(TOPIC_ARN, 2, 7, "no answer"), TopicHealth(OTHER_ARN)
    metabase.queue.report(sick)
    assert metabase.queue.claim([sick, well], 50) == {TOPIC_ARN, OTHER_ARN}
    assert metabase.queue.unhealthy() == {
        TOPIC_ARN: TopicHealth(TOPIC_ARN, 2, 50, "no answer"),
        OTHER_ARN: TopicHealth(OTHER_ARN, 1, 50, ""),
    }


def test_a_topic_is_not_claimed_if_another_has_claimed_it_or_told_of_it(metabase: Metabase) -> None:
    sick, well = TopicHealth(TOPIC_ARN, 2, 7, "no answer"), TopicHealth(OTHER_ARN)
    metabase.queue.report(sick)
    metabase.queue.claim([sick, well], 50)
    before = metabase.queue.unhealthy()
    assert metabase.queue.claim([sick, well], 60) == set()
    assert metabase.queue.unhealthy() == before
    metabase.queue.report(TopicHealth(TOPIC_ARN))
    assert metabase.queue.claim([sick], 60) == set(), "it is healthy by now"
    assert TOPIC_ARN not in metabase.queue.unhealthy()


def test_one_of_many_topics_is_claimed_by_one_worker_only(metabase: Metabase) -> None:
    """Each sees all of them, and tries to claim them at the same time, in an order of its own."""
    arns = [f"{TOPIC_ARN}-{number}" for number in range(40)]
    seen = [TopicHealth(arn, number % 2, 0, "") for number, arn in enumerate(arns)]
    for each in seen:
        metabase.queue.report(each)
    together = Barrier(4)

    def claim(worker: int) -> set[str]:
        together.wait(30)
        return metabase.queue.claim(seen if worker % 2 else seen[::-1], 50 + worker)

    with ThreadPoolExecutor(4) as threads:
        claimed = list(threads.map(claim, range(4)))
    assert sorted(arn for each in claimed for arn in each) == sorted(arns)
    assert {arn: each.retry_at_ns for arn, each in metabase.queue.unhealthy().items()} == {
        arn: 50 + worker for worker, each in enumerate(claimed) for arn in each
    }


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


def test_when_a_consumer_was_last_alive_is_known_when_it_is_not_at_work(metabase: Metabase) -> None:
    assert metabase.cursors.last_alive_at_ns("pipeline") == 0
    metabase.cursors.save("pipeline", "17", 1_000)
    metabase.cursors.not_alive("pipeline")
    metabase.cursors.save("pipeline", "18", 0)
    assert metabase.cursors.alive_at_ns("pipeline") == 0
    assert metabase.cursors.last_alive_at_ns("pipeline") == 1_000
    metabase.cursors.save("pipeline", "18", 500)
    assert metabase.cursors.last_alive_at_ns("pipeline") == 500, "its clock was set back"


def test_what_has_waited_too_long_becomes_a_dead_letter(metabase: Metabase) -> None:
    park(metabase, "old")
    (old,) = metabase.queue.pending(TOPIC_ARN, after=0, limit=10)
    until(lambda: time.time_ns() > old.parked_at_ns + 1000)
    before = time.time_ns()
    until(lambda: time.time_ns() > before)
    park(metabase, "new")
    expired = metabase.queue.expire(TOPIC_ARN, parked_before_ns=before, more_attempts_than=None, limit=10)
    assert [each.event_id for each in expired] == ["old"]
    assert waiting(metabase) == ["new"]
    (letter,) = metabase.queue.letters(Letters(), 10)
    assert (letter.message, letter.reason) == (message("old"), "time_to_live is over: HTTP 503")


def test_what_was_tried_too_often_becomes_a_dead_letter(metabase: Metabase) -> None:
    park(metabase, "once")
    park(metabase, "thrice")
    ids = {each.message.event_id: each.id for each in metabase.queue.take(TOPIC_ARN, 100, 10)}
    for _ in range(2):
        metabase.queue.settle(Settlement(retried=[(ids["thrice"], 0, "HTTP 500")]))
    expired = metabase.queue.expire(TOPIC_ARN, parked_before_ns=0, more_attempts_than=2, limit=10)
    assert [each.event_id for each in expired] == ["thrice"]
    (letter,) = metabase.queue.letters(Letters(), 10)
    assert letter.reason == "max_retries reached: HTTP 500"
    assert metabase.queue.expire(TOPIC_ARN, parked_before_ns=0, more_attempts_than=None, limit=10) == []


def test_what_waits_behind_a_failing_topic_counts_its_failures_since_then(metabase: Metabase) -> None:
    park(metabase, "first")
    metabase.queue.report(TopicHealth(TOPIC_ARN, failures=3, retry_at_ns=0, reason="refused"))
    park(metabase, "second")
    metabase.queue.report(TopicHealth(TOPIC_ARN, failures=4, retry_at_ns=0, reason="refused"))
    expired = metabase.queue.expire(TOPIC_ARN, parked_before_ns=0, more_attempts_than=3, limit=10)
    assert [each.event_id for each in expired] == ["first"]
    metabase.queue.report(TopicHealth(TOPIC_ARN))
    assert metabase.queue.expire(TOPIC_ARN, parked_before_ns=0, more_attempts_than=1, limit=10) == []


def test_what_was_never_tried_itself_dies_of_the_last_failure_of_its_topic(metabase: Metabase) -> None:
    park(metabase, "tried")
    metabase.queue.park([message("behind")], due_at_ns=0, attempts=0, reason="behind others that wait")
    metabase.queue.report(TopicHealth(TOPIC_ARN, failures=4, retry_at_ns=0, reason="refused"))
    metabase.queue.expire(TOPIC_ARN, parked_before_ns=0, more_attempts_than=3, limit=10)
    assert {each.message.event_id: each.reason for each in metabase.queue.letters(Letters(), 10)} == {
        "tried": "max_retries reached: HTTP 503",
        "behind": "max_retries reached: refused",
    }


def test_what_was_never_tried_keeps_its_own_reason_where_its_topic_has_none(metabase: Metabase) -> None:
    for health in (TopicHealth(TOPIC_ARN), TopicHealth(TOPIC_ARN, failures=1)):
        metabase.queue.report(health)
        metabase.queue.park([message("behind")], due_at_ns=0, attempts=0, reason="behind others that wait")
        later = time.time_ns() + 10**12
        metabase.queue.expire(TOPIC_ARN, parked_before_ns=later, more_attempts_than=None, limit=10)
        (letter,) = metabase.queue.letters(Letters(), 10)
        assert letter.reason == "time_to_live is over: behind others that wait"
        metabase.queue.purge([letter.id])


def test_expiry_takes_no_more_than_it_is_asked_to_and_none_of_other_topics(metabase: Metabase) -> None:
    park(metabase, "a", "b", "c")
    park(metabase, "d", arn=OTHER_ARN)
    later = time.time_ns() + 10**12
    count = len(metabase.queue.expire(TOPIC_ARN, parked_before_ns=later, more_attempts_than=None, limit=2))
    assert (count, len(waiting(metabase)), waiting(metabase, OTHER_ARN)) == (2, 1, ["d"])


def test_dead_letters_are_found_by_topic_and_time_and_in_pages(metabase: Metabase) -> None:
    metabase.queue.bury([message("a")], "gone")
    metabase.queue.bury([message("b", OTHER_ARN)], "gone")
    first, second = metabase.queue.letters(Letters(), 10)
    assert (first.message.event_id, second.message.event_id) == ("a", "b")
    assert metabase.queue.letters(Letters(topic_arn=OTHER_ARN), 10) == [second]
    assert metabase.queue.letters(Letters(after=first.id), 10) == [second]
    assert metabase.queue.letters(Letters(), 1) == [first]
    assert metabase.queue.letters(Letters(since_ns=second.buried_at_ns + 1), 10) == []
    assert metabase.queue.letters(Letters(until_ns=first.buried_at_ns), 10) == []


def test_a_dead_letter_that_is_redriven_waits_again_with_no_attempts(metabase: Metabase) -> None:
    metabase.queue.bury([message("a"), message("b")], "gone")
    letters = metabase.queue.letters(Letters(), 10)
    assert metabase.queue.redrive([letters[0].id, 999_999]) == 1
    (parked,) = metabase.queue.take(TOPIC_ARN, 100, 10)
    assert (parked.message, parked.attempts) == (message("a"), 0)
    assert metabase.queue.dead_letters() == 1
    assert metabase.queue.redrive([letters[0].id]) == 0


def test_redriving_what_waits_already_keeps_one(metabase: Metabase) -> None:
    metabase.queue.bury([message("a")], "gone")
    park(metabase, "a")
    (letter,) = metabase.queue.letters(Letters(), 10)
    assert metabase.queue.redrive([letter.id]) == 1
    assert waiting(metabase) == ["a"]


def test_everything_that_leaves_is_counted_and_nothing_twice(metabase: Metabase) -> None:
    metabase.queue.bury([message("a"), message("b"), message("c", OTHER_ARN)], "gone")
    metabase.queue.bury([message("a")], "gone")
    park(metabase, "d")
    (parked,) = metabase.queue.take(TOPIC_ARN, 100, 10)
    metabase.queue.settle(Settlement(buried=[(parked.id, "gone")]))
    letters = {each.message.event_id: each.id for each in metabase.queue.letters(Letters(), 10)}
    metabase.queue.redrive([letters["a"]])
    metabase.queue.purge([letters["b"], letters["c"], letters["c"]])
    assert metabase.queue.counts() == {
        ("buried", TOPIC_ARN): 3,
        ("buried", OTHER_ARN): 1,
        ("redriven", TOPIC_ARN): 1,
        ("purged", TOPIC_ARN): 1,
        ("purged", OTHER_ARN): 1,
    }


def test_pending_shows_everything_in_pages_due_or_not(metabase: Metabase) -> None:
    park(metabase, "a", due_at_ns=10**19 // 2)
    park(metabase, "b", "c")
    park(metabase, "d", arn=OTHER_ARN)
    first = metabase.queue.pending(TOPIC_ARN, after=0, limit=2)
    rest = metabase.queue.pending(TOPIC_ARN, after=first[-1].id, limit=2)
    assert [each.message.event_id for each in (*first, *rest)] == ["a", "b", "c"]


def test_stats_tell_of_topics_that_fail_even_when_nothing_waits(metabase: Metabase) -> None:
    metabase.queue.report(TopicHealth(OTHER_ARN, failures=2, retry_at_ns=7, reason="refused"))
    park(metabase, "a", "b")
    waiting_line, failing = metabase.queue.stats()
    assert (waiting_line.topic_arn, waiting_line.entries, waiting_line.attempts) == (TOPIC_ARN, 2, 1)
    assert (failing.topic_arn, failing.entries, failing.failures, failing.reason) == (
        OTHER_ARN,
        0,
        2,
        "refused",
    )
    assert failing.retry_at_ns == 7


def test_stats_take_no_claim_for_a_pause(metabase: Metabase) -> None:
    def pauses() -> list[tuple[int, int, str]]:
        return [(line.retry_at_ns, line.failures, line.reason) for line in metabase.queue.stats()]

    sick = TopicHealth(TOPIC_ARN, failures=2, retry_at_ns=7, reason="refused")
    metabase.queue.report(sick)
    assert pauses() == [(7, 2, "refused")]
    metabase.queue.claim([sick, TopicHealth(OTHER_ARN)], 50)
    assert pauses() == [(0, 2, "refused"), (0, 1, "")]
    metabase.queue.claim([TopicHealth(TOPIC_ARN, 2, 50), TopicHealth(OTHER_ARN, 1, 50)], 60)
    assert pauses() == [(0, 2, "refused"), (0, 1, "")], "it is kept"
    metabase.queue.report(TopicHealth(TOPIC_ARN, 3, 90, "refused"))
    metabase.queue.report(TopicHealth(OTHER_ARN))
    assert pauses() == [(90, 3, "refused")]


def test_a_topic_put_off_when_the_clock_was_ahead_is_tried_all_the_same(metabase: Metabase) -> None:
    park(metabase, "a")
    tomorrow_ns = 24 * 3600 * 10**9
    metabase.queue.report(TopicHealth(TOPIC_ARN, failures=2, retry_at_ns=tomorrow_ns, reason="refused"))
    assert metabase.queue.due_topics(100) == [TOPIC_ARN]


def test_a_message_put_off_when_the_clock_was_ahead_is_tried_all_the_same(metabase: Metabase) -> None:
    hour_ns = 3600 * 10**9
    park(metabase, "from tomorrow", due_at_ns=24 * hour_ns)
    park(metabase, "in an hour", due_at_ns=hour_ns)
    assert metabase.queue.due_topics(100) == [TOPIC_ARN]
    assert waiting(metabase) == ["from tomorrow"]
    assert waiting(metabase, now_ns=hour_ns) == ["in an hour", "from tomorrow"]


def test_what_is_due_goes_before_what_was_put_off_when_the_clock_was_ahead(metabase: Metabase) -> None:
    park(metabase, "a", "b", due_at_ns=24 * 3600 * 10**9)
    park(metabase, "c", "d", due_at_ns=50)
    assert [each.message.event_id for each in metabase.queue.take(TOPIC_ARN, 100, 3)] == ["c", "d", "a"]


def test_waits_that_are_too_long_can_be_ended_for_all(metabase: Metabase) -> None:
    park(metabase, "long", due_at_ns=300)
    park(metabase, "short", due_at_ns=200)
    park(metabase, "behind", arn=OTHER_ARN)
    metabase.queue.report(TopicHealth(OTHER_ARN, failures=2, retry_at_ns=300, reason="refused"))
    metabase.queue.hasten(200)
    assert metabase.queue.due_topics(100) == [TOPIC_ARN, OTHER_ARN]
    assert waiting(metabase) == ["long"]
    assert waiting(metabase, now_ns=200) == ["long", "short"]
    assert metabase.queue.unhealthy() == {OTHER_ARN: TopicHealth(OTHER_ARN, 2, 0, "refused")}


def test_a_topic_has_something_parked_or_not_whenever_it_is_due(metabase: Metabase) -> None:
    assert not metabase.queue.has_parked(TOPIC_ARN)
    park(metabase, "a", due_at_ns=10**18)
    assert metabase.queue.has_parked(TOPIC_ARN)
    assert not metabase.queue.has_parked(OTHER_ARN)
    withdraw(metabase, "a")
    assert not metabase.queue.has_parked(TOPIC_ARN)


def test_the_bytes_that_wait_are_kept_as_messages_come_and_go(metabase: Metabase) -> None:
    assert metabase.queue.backlogs() == {}
    park(metabase, "a", "b", "c", "d")
    park(metabase, "a", "b")
    park(metabase, "e", arn=OTHER_ARN)
    assert metabase.queue.backlogs() == {TOPIC_ARN: 8, OTHER_ARN: 2}
    first, second, *_ = metabase.queue.take(TOPIC_ARN, 100, 10)
    metabase.queue.settle(Settlement(delivered=[first.id], buried=[(second.id, "gone")]))
    withdraw(metabase, "e", arn=OTHER_ARN)
    assert metabase.queue.backlogs() == {TOPIC_ARN: 4}
    later = time.time_ns() + 10**12
    metabase.queue.expire(TOPIC_ARN, parked_before_ns=later, more_attempts_than=None, limit=10)
    assert metabase.queue.backlogs() == {}
    metabase.queue.redrive([each.id for each in metabase.queue.letters(Letters(), 10)])
    assert metabase.queue.backlogs() == {TOPIC_ARN: 6}


def test_the_bytes_that_wait_are_right_when_many_park_and_settle_at_once(metabase: Metabase) -> None:
    def come_and_go(worker: int) -> None:
        for turn in range(10):
            park(metabase, f"{worker}-{turn}-stays", f"{worker}-{turn}-goes")
            withdraw(metabase, f"{worker}-{turn}-goes")
            metabase.queue.backlogs()

    with ThreadPoolExecutor(6) as workers:
        list(workers.map(come_and_go, range(6)))
    (line,) = metabase.queue.stats()
    assert line.entries == 60
    assert metabase.queue.backlogs() == {TOPIC_ARN: line.size_bytes}
