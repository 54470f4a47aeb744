"""The topics that a condition chooses."""

import pytest

from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.all_topics import ChosenTopics
from factories import topic


def test_chosen_topics_follow_every_change_and_remember_deleted_ones(
    metabase: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketwire.metainfo.all_topics._PAGE", 2)
    chosen = ChosenTopics(metabase.topics, lambda each: each.ordered)
    assert chosen.look() == {}
    for name in "abcde":
        metabase.topics.put(topic(name=name, ordering="none" if name == "c" else "key"))
    assert sorted(each.name for each in chosen.look().values()) == ["a", "b", "d", "e"]
    metabase.topics.put(topic(name="a"))
    metabase.topics.put(topic(name="c", ordering="key"))
    metabase.topics.delete(topic(name="b").arn)
    found = {each.name: each.deleted_at_ns is not None for each in chosen.look().values()}
    assert found == {"b": True, "c": False, "d": False, "e": False}
