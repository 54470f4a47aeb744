"""The topics that a condition chooses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.all_topics import ChosenTopics
from factories import topic


@pytest.fixture
def metabase(tmp_path: Path) -> Iterator[Metabase]:
    opened = open_metabase(f"sqlite:///{tmp_path}/metabase.db")
    yield opened
    opened.close()


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
