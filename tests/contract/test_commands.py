"""The operators' commands, in processes of their own, beside whoever else has the metabase open."""

import json
import subprocess
import sys
from typing import Any

import pytest

from bucketwire.event.name import Operation
from bucketwire.metabase.base import Metabase
from factories import TOPIC_ARN, new_object, origin, rule, topic


class Commands:
    """Runs commands on a metabase."""

    def __init__(self, metabase_url: str) -> None:
        self._metabase_url = metabase_url

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bucketwire", *arguments, "--metabase", self._metabase_url]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def commands(metabase_url: str) -> Commands:
    return Commands(metabase_url)


def test_a_topic_is_listed_and_removed_for_all_at_once(metabase: Metabase, commands: Commands) -> None:
    metabase.topics.put(topic())
    assert [each["arn"] for each in commands.json("topic", "list")] == [TOPIC_ARN]
    assert commands.run("topic", "rm", "videos").returncode == 0
    found = metabase.topics.get(TOPIC_ARN)
    assert found is not None
    assert found.deleted_at_ns is not None
    assert commands.run("topic", "rm", "videos").returncode == 2


def test_a_removed_rule_takes_no_event_of_the_next_write(
    metabase: Metabase, commands: Commands, bucket: str
) -> None:
    metabase.rules.edit(bucket, lambda _: [rule(id="films")])
    metabase.objects.put(bucket, new_object(), Operation.PUT, origin())
    before = metabase.changes.wait(metabase.changes.start(), 100, 10)
    assert commands.run("notification", "rm", "--bucket", bucket, "--id", "films").returncode == 0
    metabase.objects.put(bucket, new_object(), Operation.PUT, origin())
    assert metabase.rules.current(bucket) == []
    assert metabase.changes.head(before, 100) == before
    assert commands.run("notification", "rm", "--bucket", bucket, "--id", "films").returncode == 2


def test_the_object_that_another_process_has_put_is_explained(
    metabase: Metabase, commands: Commands, bucket: str
) -> None:
    metabase.topics.put(topic())
    metabase.rules.edit(bucket, lambda _: [rule(id="films", suffix=".mp4")])
    metabase.objects.put(bucket, new_object(), Operation.PUT, origin())
    asked = ("explain", "--bucket", bucket, "--event", "s3:ObjectRemoved:Delete", "--key")
    shown = commands.json(*asked, "video.mp4")
    assert shown["object_exists"]
    assert [each["delivers"] for each in shown["rules"]] == [True]
    assert not commands.json(*asked, "none.jpg")["rules"][0]["matches"]
