"""The contract of `Topics`."""

import msgspec

from bucketwire.metabase.base import Metabase
from factories import topic


def test_a_topic_comes_back_as_it_was_put(metabase: Metabase) -> None:
    made = topic("http://127.0.0.1:9/hook", OpaqueData="mine")
    metabase.topics.put(made)
    assert metabase.topics.get(made.arn) == made
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
    assert msgspec.structs.replace(found, deleted_at_ns=None) == made
    assert metabase.topics.owned_by(made.owner_id, after="", limit=10) == []
    metabase.topics.delete(made.arn)
    assert metabase.topics.get(made.arn) == found
    metabase.topics.delete("arn:aws:sns:us-east-1::nothing")


def test_an_owner_pages_through_its_topics(metabase: Metabase) -> None:
    made = [topic(name=name) for name in ("a", "b", "c")]
    for each in reversed(made):
        metabase.topics.put(each)
    assert metabase.topics.owned_by("owner-1", after="", limit=2) == made[:2]
    assert metabase.topics.owned_by("owner-1", after=made[1].arn, limit=2) == made[2:]
    assert metabase.topics.owned_by("owner-2", after="", limit=2) == []


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
