"""The contract of `Topics`."""

import threading
from collections.abc import Iterable

import msgspec
import pytest

from bucketwire.errors import Denied
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase
from factories import rule, topic


def as_put(found: Topic | None) -> Topic:
    assert found is not None
    return msgspec.structs.replace(found, changed_at_ns=0)


def names(topics: Iterable[Topic]) -> list[str]:
    return [each.name for each in topics]


def test_a_topic_comes_back_as_it_was_put(metabase: Metabase) -> None:
    made = topic("http://127.0.0.1:9/hook", OpaqueData="mine")
    metabase.topics.put(made)
    assert as_put(metabase.topics.get(made.arn)) == made
    assert metabase.topics.get("arn:aws:sns:us-east-1::nothing") is None


def test_putting_again_replaces_the_attributes(metabase: Metabase) -> None:
    metabase.topics.put(topic("http://127.0.0.1:9/old"))
    metabase.topics.put(topic("http://127.0.0.1:9/new"))
    found = metabase.topics.get(topic().arn)
    assert found is not None
    assert found.endpoint == "http://127.0.0.1:9/new"


def test_a_deleted_topic_is_remembered_but_not_listed(metabase: Metabase) -> None:
    made = topic()
    metabase.topics.put(made)
    metabase.topics.delete(made.arn)
    found = metabase.topics.get(made.arn)
    assert found is not None
    assert found.deleted_at_ns is not None
    assert as_put(msgspec.structs.replace(found, deleted_at_ns=None)) == made
    assert metabase.topics.owned_by(made.owner_id, after="", limit=10) == []
    metabase.topics.delete(made.arn)
    assert metabase.topics.get(made.arn) == found
    metabase.topics.delete("arn:aws:sns:us-east-1::nothing")


def test_an_owner_pages_through_its_topics(metabase: Metabase) -> None:
    made = [topic(name=name) for name in ("a", "b", "c")]
    for each in reversed(made):
        metabase.topics.put(each)
    metabase.topics.put(msgspec.structs.replace(topic(name="bb"), owner_id="owner-2"))
    assert names(metabase.topics.owned_by("owner-1", after="", limit=2)) == ["a", "b"]
    assert names(metabase.topics.owned_by("owner-1", after=made[1].arn, limit=2)) == ["c"]
    assert names(metabase.topics.owned_by("owner-3", after="", limit=2)) == []
    assert names(metabase.topics.owned_by(None, after=made[0].arn, limit=5)) == ["b", "bb", "c"]


def test_edits_of_one_topic_by_many_lose_none(metabase: Metabase) -> None:
    made = topic()

    def add(number: int) -> None:
        def change(found: Topic | None) -> Topic:
            known = found or made
            return msgspec.structs.replace(known, attributes={**known.attributes, f"a{number}": "set"})

        metabase.topics.edit(made.arn, change)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = metabase.topics.get(made.arn)
    assert found is not None
    assert {f"a{number}" for number in range(8)} <= found.attributes.keys()


def test_an_edit_that_raises_or_gives_nothing_changes_nothing(metabase: Metabase) -> None:
    metabase.topics.put(topic())
    before, version = metabase.topics.get(topic().arn), metabase.topics.version()

    def refuse(_: Topic | None) -> Topic:
        raise Denied("no")

    with pytest.raises(Denied):
        metabase.topics.edit(topic().arn, refuse)
    metabase.topics.edit(topic().arn, lambda _: None)
    assert (metabase.topics.get(topic().arn), metabase.topics.version()) == (before, version)


def test_a_topic_knows_when_it_was_last_set_on_the_clock_of_the_rules(metabase: Metabase) -> None:
    metabase.buckets.create("bucket", "owner-1", "us-east-1")
    metabase.topics.put(topic())
    between = metabase.rules.edit("bucket", lambda _: [rule()])
    first = metabase.topics.get(topic().arn)
    metabase.topics.put(topic())
    second = metabase.topics.get(topic().arn)
    assert first is not None
    assert second is not None
    assert first.changed_at_ns < between < second.changed_at_ns


def test_a_metabase_keeps_its_identity(metabase: Metabase) -> None:
    assert len(metabase.identity()) == 36
    assert metabase.identity() == metabase.identity()


def test_the_version_grows_with_every_change_of_any_topic(metabase: Metabase) -> None:
    versions = [metabase.topics.version()]
    for step in (
        lambda: metabase.topics.put(topic(name="a")),
        lambda: metabase.topics.put(topic(name="b")),
        lambda: metabase.topics.put(topic("http://127.0.0.1:9/", name="a")),
        lambda: metabase.topics.delete(topic(name="a").arn),
    ):
        step()
        versions.append(metabase.topics.version())
    assert versions == sorted(set(versions))


def test_what_has_changed_behind_a_version_comes_once_as_it_is_now_and_deleted_ones_too(
    metabase: Metabase,
) -> None:
    assert metabase.topics.changed(after=0, limit=10) == []
    for name in ("c", "b", "a"):
        metabase.topics.put(topic(name=name))
    before = metabase.topics.version()
    metabase.topics.put(topic(name="c"))
    metabase.topics.put(topic("http://127.0.0.1:9/new", name="b"))
    metabase.topics.delete(topic(name="c").arn)
    changed = metabase.topics.changed(after=before, limit=10)
    assert [(each.name, each.endpoint, each.deleted_at_ns is None) for _, each in changed] == [
        ("b", "http://127.0.0.1:9/new", True),
        ("c", "http://127.0.0.1:1/", False),
    ]
    assert changed[-1][0] == metabase.topics.version()
    assert metabase.topics.changed(after=changed[-1][0], limit=10) == []


def test_what_has_changed_is_read_in_pages(metabase: Metabase) -> None:
    for name in ("c", "b", "a"):
        metabase.topics.put(topic(name=name))
    first = metabase.topics.changed(after=0, limit=2)
    second = metabase.topics.changed(after=first[-1][0], limit=2)
    assert names(each for _, each in first + second) == ["c", "b", "a"]
