"""`bucketwire deadletter`, beside a metabase that is open."""

import json
import time
from collections.abc import Callable

import pytest

from bucketwire.cli import deadletter as deadletter_command
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Letters

Run = Callable[..., tuple[int, str, str]]

ARN = "arn:aws:sns:us-east-1::videos"
BLUE_ARN = "arn:aws:sns:us-east-1:blue:films"
FAR_ARN = "arn:aws:sns:us-east-1::never-made"


@pytest.fixture
def dead(metabase: Metabase) -> Metabase:
    """Three dead letters of two topics, one of a topic that was deleted."""
    metabase.topics.put(Topic(ARN, "videos", "owner-1"))
    metabase.topics.put(Topic(BLUE_ARN, "films", "owner-2"))
    metabase.topics.delete(BLUE_ARN)
    metabase.queue.bury([Message(ARN, "event-1", "a/one", b'{"Records":[1]}')], "HTTP 410")
    metabase.queue.bury([Message(ARN, "event-2", "b/two\x1b[2J", b"\xff\x00")], "HTTP 413")
    metabase.queue.bury([Message(BLUE_ARN, "event-3", "a/three", b"{}")], "gone\nfor good")
    return metabase


def listed(run: Run, *arguments: str) -> list[str]:
    code, out, _ = run("deadletter", "list", "--json", *arguments)
    assert code == 0
    return [json.loads(line)["event_id"] for line in out.splitlines()]


def id_of(metabase: Metabase, event_id: str) -> str:
    (number,) = (
        each.id for each in metabase.queue.letters(Letters(), 10) if each.message.event_id == event_id
    )
    return str(number)


@pytest.mark.usefixtures("dead")
def test_dead_letters_are_found_by_topic_tenant_and_prefix(run: Run) -> None:
    assert listed(run) == ["event-1", "event-2", "event-3"]
    assert listed(run, "--topic", "videos") == ["event-1", "event-2"]
    assert listed(run, "--topic", BLUE_ARN) == ["event-3"]
    assert listed(run, "--tenant", "blue") == ["event-3"]
    assert listed(run, "--tenant", "") == ["event-1", "event-2"]
    assert listed(run, "--prefix", "a/") == ["event-1", "event-3"]
    assert listed(run, "--topic", "videos", "--prefix", "b/") == ["event-2"]
    assert listed(run, "--limit", "2") == ["event-1", "event-2"]


@pytest.mark.usefixtures("dead")
def test_dead_letters_are_found_by_time_and_by_age(run: Run) -> None:
    assert listed(run, "--since", "1h") == listed(run)
    assert listed(run, "--until", "1h") == []
    assert listed(run, "--since", "2000-01-01T00:00:00Z", "--until", "2200-01-01") == listed(run)
    assert listed(run, "--since", "2200-01-01") == []
    code, _, err = run("deadletter", "list", "--since", "yesterday")
    assert code != 0
    assert "'yesterday' is neither a time" in err


@pytest.mark.usefixtures("dead")
def test_a_row_has_id_time_topic_key_and_reason_and_nothing_a_terminal_would_obey(run: Run) -> None:
    rows = run("deadletter", "list")[1].splitlines()
    assert len(rows) == 3
    number, when, topic, key, reason = rows[0].split("  ")
    assert (number.isdecimal(), when[-1], topic, key, reason) == (True, "Z", ARN, "a/one", "HTTP 410")
    assert "b/two\\x1b[2J" in rows[1]
    assert rows[2].endswith("gone\\nfor good")


def test_a_letter_is_shown_whole_and_pretty(run: Run, dead: Metabase) -> None:
    code, out, _ = run("deadletter", "show", id_of(dead, "event-1"))
    assert code == 0
    assert len(out.splitlines()) > 8
    shown = json.loads(out)
    assert (shown["body"], shown["reason"], shown["topic"]) == ({"Records": [1]}, "HTTP 410", ARN)
    assert shown["content_type"] == "application/json"
    binary = json.loads(run("deadletter", "show", id_of(dead, "event-2"), "--json")[1])
    assert (binary["body"], binary["body_encoding"]) == ("/wA=", "base64")


@pytest.mark.usefixtures("dead")
def test_a_letter_or_a_topic_that_does_not_exist_is_exit_code_2(run: Run) -> None:
    assert run("deadletter", "show", "999") == (2, "", "bucketwire: there is no dead letter 999\n")
    assert run("deadletter", "redrive", "999")[0] == 2
    assert run("deadletter", "purge", "999", "--yes")[0] == 2
    assert run("deadletter", "list", "--topic", "none")[0] == 2
    assert run("deadletter", "list", "--topic", FAR_ARN)[0] == 2


def test_what_is_redriven_waits_again_and_is_counted(run: Run, dead: Metabase) -> None:
    code, out, _ = run("deadletter", "redrive", id_of(dead, "event-1"), "999")
    assert (code, out) == (0, "redriven 1 dead letter\n")
    (parked,) = dead.queue.take(ARN, time.time_ns(), 10)
    assert (parked.message.event_id, parked.attempts) == ("event-1", 0)
    assert json.loads(run("deadletter", "redrive", "--all", "--json")[1]) == {"redriven": 2}
    assert dead.queue.counts()["redriven", ARN] == 2
    assert dead.queue.dead_letters() == 0


def test_a_redrive_ends_although_what_it_sends_dies_again(
    run: Run, dead: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadletter_command, "_PAGE", 1)
    bury = dead.queue.bury
    in_pages = deadletter_command._in_pages

    def dying(act: Callable[..., int], *rest: object) -> int:
        def act_and_die(ids: list[int]) -> int:
            done = act(ids)
            bury([Message(ARN, f"again-{ids[0]}", "a", b"{}")], "HTTP 410")
            return done

        return in_pages(act_and_die, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(deadletter_command, "_in_pages", dying)
    assert run("deadletter", "redrive", "--all")[1] == "redriven 3 dead letters\n"
    assert dead.queue.dead_letters() == 3


def test_a_purge_by_filter_leaves_the_others(run: Run, dead: Metabase) -> None:
    assert run("deadletter", "purge", "--prefix", "a/", "--yes") == (0, "purged 2 dead letters\n", "")
    assert listed(run) == ["event-2"]
    assert dead.queue.counts()["purged", BLUE_ARN] == 1


def test_a_purge_asks_and_does_nothing_without_an_answer(
    run: Run, dead: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(text: str) -> str:
        asked.append(text)
        return "n" if len(asked) == 1 else "y"

    monkeypatch.setattr("click.termui.visible_prompt_func", answer)
    assert run("deadletter", "purge", "--topic", "videos")[0] == 1
    assert dead.queue.dead_letters() == 3
    assert run("deadletter", "purge", "--topic", "videos")[0] == 0
    assert dead.queue.dead_letters() == 1
    assert run("deadletter", "list")[1].count("\n") == 1


def test_it_must_be_said_which_letters(run: Run, dead: Metabase) -> None:
    for command in (("redrive",), ("purge", "--yes")):
        for which in ((), ("1", "--all"), ("--all", "--prefix", "a"), ("1", "--topic", "videos")):
            code, _, err = run("deadletter", *command, *which)
            assert code != 0
            assert "Say which dead letters" in err
    assert dead.queue.dead_letters() == 3


def test_many_letters_are_done_in_pages(run: Run, dead: Metabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadletter_command, "_PAGE", 2)
    dead.queue.bury([Message(ARN, f"more-{number}", "c", b"{}") for number in range(7)], "HTTP 410")
    assert len(listed(run)) == 10
    assert run("deadletter", "redrive", "--topic", "videos")[1] == "redriven 9 dead letters\n"
    assert run("deadletter", "purge", "--all", "--yes")[1] == "purged 1 dead letter\n"
