"""`bucketwire topic`, beside a metabase that is open."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from bucketwire.cli import topic as topic_command
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import TopicHealth

Run = Callable[..., tuple[int, str, str]]

ARN = "arn:aws:sns:us-east-1::videos"
BLUE_ARN = "arn:aws:sns:us-east-1:blue:videos"
FAR_ARN = "arn:aws:sns:eu-west-1:blue:films"
SECRETS = {
    "push-endpoint": "amqps://guest:hidden-one@127.0.0.1:1/",
    "amqp-exchange": "films",
    "password": "hidden-two",
    "signing-secret": "whsec_hidden-three",
}


@pytest.fixture
def topics(metabase: Metabase) -> Metabase:
    metabase.topics.put(Topic(ARN, "videos", "owner-1", {"push-endpoint": "http://127.0.0.1:1/"}))
    metabase.topics.put(Topic(BLUE_ARN, "videos", "owner-2", SECRETS, tags={"team": "blue"}))
    metabase.topics.put(Topic(FAR_ARN, "films", "owner-2"))
    return metabase


def listed(run: Run, *arguments: str) -> list[str]:
    code, out, _ = run("topic", "list", "--json", *arguments)
    assert code == 0
    return [each["arn"] for each in json.loads(out)]


@pytest.mark.usefixtures("topics")
def test_topics_of_all_users_are_listed_or_those_of_a_tenant(run: Run) -> None:
    assert listed(run) == sorted([ARN, BLUE_ARN, FAR_ARN])
    assert listed(run, "--tenant", "blue") == [FAR_ARN, BLUE_ARN]
    assert listed(run, "--tenant", "") == [ARN]
    assert listed(run, "--tenant", "red") == []
    text = run("topic", "list")[1].splitlines()
    assert f"{ARN}  owner-1  http://127.0.0.1:1/" in text
    assert f"{FAR_ARN}  owner-2  no push-endpoint" in text


@pytest.mark.usefixtures("topics")
def test_a_listing_longer_than_a_page_is_whole(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketwire.metainfo.all_topics._PAGE", 1)
    assert listed(run) == sorted([ARN, BLUE_ARN, FAR_ARN])


@pytest.mark.usefixtures("topics")
def test_a_topic_is_shown_by_arn_or_by_name_as_argument_or_option(run: Run) -> None:
    shown = json.loads(run("topic", "get", FAR_ARN, "--json")[1])
    assert (shown["arn"], shown["name"], shown["tenant"], shown["owner_id"]) == (
        FAR_ARN,
        "films",
        "blue",
        "owner-2",
    )
    for arguments in (("films",), ("--topic", "films"), ("--topic", FAR_ARN), ("films", "--tenant", "blue")):
        assert json.loads(run("topic", "get", *arguments, "--json")[1]) == shown
    assert "push-endpoint: http://127.0.0.1:1/" in run("topic", "get", ARN)[1].splitlines()
    assert json.loads(run("topic", "get", BLUE_ARN, "--json")[1])["tags"] == {"team": "blue"}


@pytest.mark.usefixtures("topics")
def test_a_name_of_several_topics_is_an_error_that_lists_them(run: Run) -> None:
    for command in ("get", "rm"):
        code, out, err = run("topic", command, "videos")
        assert (code, out) == (1, "")
        assert ARN in err
        assert BLUE_ARN in err
    assert json.loads(run("topic", "get", "videos", "--tenant", "blue", "--json")[1])["arn"] == BLUE_ARN


@pytest.mark.usefixtures("topics")
def test_no_secret_is_shown_by_any_command(run: Run) -> None:
    for arguments in (("list",), ("get", BLUE_ARN)):
        for as_json in ((), ("--json",)):
            code, out, err = run("topic", *arguments, *as_json)
            assert code == 0
            assert "hidden" not in out + err
            assert "amqps://" in out


def test_a_removed_topic_is_gone_at_once_for_a_server_that_runs(run: Run, topics: Metabase) -> None:
    version = topics.topics.version()
    assert run("topic", "rm", "films") == (0, f"removed topic {FAR_ARN}\n", "")
    assert json.loads(run("topic", "rm", BLUE_ARN, "--json")[1]) == {"removed": BLUE_ARN}
    found = topics.topics.get(FAR_ARN)
    assert found is not None
    assert found.deleted_at_ns is not None
    assert topics.topics.version() > version
    assert FAR_ARN not in listed(run)
    assert run("topic", "rm", "films")[0] == 2
    assert run("topic", "get", FAR_ARN)[0] == 2


@pytest.mark.usefixtures("topics")
def test_a_topic_that_does_not_exist_is_exit_code_2(run: Run) -> None:
    for command in ("get", "rm"):
        assert run("topic", command, "none") == (2, "", "bucketwire: there is no topic none\n")
        assert run("topic", command, "films", "--tenant", "red")[0] == 2
        assert run("topic", command, FAR_ARN + "x")[0] == 2


@pytest.mark.usefixtures("metabase")
def test_one_topic_must_be_named(run: Run) -> None:
    for arguments in ((), ("videos", "--topic", "videos")):
        code, _, err = run("topic", "rm", *arguments)
        assert code != 0
        assert "Name one topic" in err


@pytest.fixture
def waiting(topics: Metabase) -> Metabase:
    messages = [Message(ARN, f"event-{number}", f"key-{number}", b'{"n":1}') for number in range(3)]
    topics.queue.park(messages, due_at_ns=0, attempts=2, reason="HTTP 503")
    topics.queue.bury([Message(ARN, "dead", "key", b"{}")], "HTTP 410")
    return topics


def stats_of(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, _ = run("topic", "stats", *arguments, "--json")
    assert code == 0
    return dict(json.loads(out))


def test_stats_tell_what_waits_and_how_the_destination_does(run: Run, waiting: Metabase) -> None:
    found = stats_of(run, ARN)
    assert {name: found[name] for name in ("entries", "bytes", "attempts", "failures", "dead_letters")} == {
        "entries": 3,
        "bytes": 21,
        "attempts": 2,
        "failures": 0,
        "dead_letters": 1,
    }
    assert found["oldest_age_seconds"] >= 0
    assert (found["breaker"], found["last_error"], found["next_attempt_at"]) == ("closed", None, None)
    later_ns = time.time_ns() + 3_600_000_000_000
    waiting.queue.report(TopicHealth(ARN, 4, later_ns, "HTTP 503"))
    found = stats_of(run, ARN)
    assert (found["breaker"], found["failures"], found["last_error"]) == ("open", 4, "HTTP 503")
    assert found["next_attempt_at"].endswith("Z")
    waiting.queue.report(TopicHealth(ARN, 4, 0, "HTTP 503"))
    assert stats_of(run, ARN)["breaker"] == "probing"
    text = run("topic", "stats", ARN)[1]
    assert "3 messages, 21 bytes, the oldest for" in text
    assert "probing" in text


def test_the_breaker_is_probing_while_an_attempt_is_under_way(run: Run, waiting: Metabase) -> None:
    failed = TopicHealth(ARN, 4, 0, "HTTP 503")
    waiting.queue.report(failed)
    for _ in range(2):  # taken, and kept
        waiting.queue.claim([waiting.queue.unhealthy()[ARN]], time.time_ns() + 3_000_000_000)
        found = stats_of(run, ARN)
        assert (found["breaker"], found["next_attempt_at"]) == ("probing", None)
        assert (found["failures"], found["last_error"]) == (4, "HTTP 503")


def test_the_breaker_of_a_queue_that_has_expired_to_nothing_is_closed(run: Run, topics: Metabase) -> None:
    topics.queue.report(TopicHealth(ARN, 4, 0, "HTTP 503"))
    found = stats_of(run, ARN)
    assert (found["breaker"], found["entries"], found["last_error"]) == ("closed", 0, "HTTP 503")
    later_ns = time.time_ns() + 3_600_000_000_000
    topics.queue.report(TopicHealth(ARN, 4, later_ns, "HTTP 503"))
    assert stats_of(run, ARN)["breaker"] == "open"


def test_stats_of_all_topics_have_idle_and_deleted_ones_too(run: Run, waiting: Metabase) -> None:
    waiting.topics.delete(ARN)
    lines = json.loads(run("topic", "stats", "--json")[1])
    assert [(each["topic"], each["entries"]) for each in lines] == [(FAR_ARN, 0), (ARN, 3), (BLUE_ARN, 0)]
    assert len(json.loads(run("topic", "stats", "--tenant", "blue", "--json")[1])) == 2
    assert stats_of(run, ARN)["entries"] == 3


def test_a_dump_has_every_message_that_waits(
    run: Run, waiting: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_command, "_DUMP_PAGE", 2)
    waiting.queue.park([Message(ARN, "binary", "k", b"\xff")], due_at_ns=10**18, attempts=1, reason="slow")
    lines = [json.loads(line) for line in run("topic", "dump", ARN)[1].splitlines()]
    assert [each["event_id"] for each in lines] == ["event-0", "event-1", "event-2", "binary"]
    assert (lines[0]["body"], lines[0]["attempts"], lines[0]["reason"], lines[0]["key"]) == (
        {"n": 1},
        2,
        "HTTP 503",
        "key-0",
    )
    assert (lines[3]["body"], lines[3]["body_encoding"]) == ("/w==", "base64")
    assert (lines[0]["due_at"], lines[3]["due_at"]) == (None, "2001-09-09T01:46:40.000Z")
    assert len(run("topic", "dump", ARN, "--max-entries", "2", "--json")[1].splitlines()) == 2
    assert run("topic", "dump", "films") == (0, "", "")


@pytest.mark.usefixtures("waiting")
def test_stats_and_dump_of_no_topic_are_exit_code_2(run: Run) -> None:
    for command in ("stats", "dump"):
        assert run("topic", command, "none")[0] == 2
        assert run("topic", command, FAR_ARN + "x")[0] == 2
        assert run("topic", command, ARN, "--tenant", "blue")[0] == 2
