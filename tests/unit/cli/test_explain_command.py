"""`bucketwire explain`, beside a metabase that is open."""

import json
from collections.abc import Callable

import pytest

from bucketwire.event.name import Operation
from bucketwire.event.rule import Filter, Part, Rule
from bucketwire.metabase.base import Metabase
from factories import TOPIC_ARN, new_object, origin, topic

Run = Callable[..., tuple[int, str, str]]
ASKED = ("explain", "--bucket", "media", "--event", "s3:ObjectCreated:Put")


@pytest.fixture
def ruled(metabase: Metabase) -> Metabase:
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.topics.put(topic("http://user:hidden@127.0.0.1:1/"))
    blue = Filter("x-amz-meta-project", "blue", Part.METADATA)
    rules = [
        Rule("films", TOPIC_ARN, ("s3:ObjectCreated:*",), (Filter("suffix", ".mp4"),)),
        Rule("blue", TOPIC_ARN + "-gone", ("s3:ObjectCreated:*",), (blue,)),
        Rule("removed", TOPIC_ARN, ("s3:ObjectRemoved:*",)),
    ]
    metabase.rules.edit("media", lambda _: rules)
    return metabase


def test_people_get_a_line_a_rule_the_reasons_and_the_message(run: Run, ruled: Metabase) -> None:
    ruled.objects.put("media", new_object(), Operation.PUT, origin())
    code, out, err = run(*ASKED, "--key", "video.mp4")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:8] == [
        "s3:ObjectCreated:Put of media/video.mp4",
        "the object exists",
        "",
        f"+ films -> {TOPIC_ARN}",
        f"! blue -> {TOPIC_ARN}-gone",
        "    the topic does not exist",
        f"- removed -> {TOPIC_ARN}",
        "    the event s3:ObjectRemoved:* does not cover s3:ObjectCreated:Put",
    ]
    assert "message of films:" in lines
    assert "  key: video.mp4" in lines
    assert '"size": 5,' in [line.strip() for line in lines]
    assert "hidden" not in out


@pytest.mark.usefixtures("ruled")
def test_machines_get_json_with_what_was_supposed(run: Run) -> None:
    supposed = ("--size", "7", "--metadata", "Project=red", "--tag", "a=b", "--tag", "c=d")
    more = ("--etag", "abc", "--content-type", "video/mp4", "--dialect", "ceph", "--json")
    code, out, _ = run(*ASKED, "--key", "new.mp4", *supposed, *more)
    assert code == 0
    shown = json.loads(out)
    assert shown["object_exists"] is False
    assert shown["event"] == "s3:ObjectCreated:Put"
    films, blue, removed = shown["rules"]
    assert (films["rule"], films["matches"], films["delivers"], films["reasons"]) == ("films", True, True, [])
    assert blue["reasons"][0] == "metadata x-amz-meta-project is 'red', not 'blue'"
    assert (removed["matches"], removed["message"]) == (False, None)
    (record,) = films["message"]["body"]["Records"]
    assert record["eventSource"] == "ceph:s3"
    assert (record["s3"]["object"]["size"], record["s3"]["object"]["eTag"]) == (7, "abc")
    assert [each["key"] for each in record["s3"]["object"]["tags"]] == ["a", "c"]
    assert films["message"]["key"] == "new.mp4"


def test_a_bucket_without_rules_says_so_and_one_that_does_not_exist_is_exit_code_2(
    run: Run, metabase: Metabase
) -> None:
    code, _, err = run(*ASKED, "--key", "k")
    assert (code, err.count("\n")) == (2, 1)
    metabase.buckets.create("media", "owner-1", "us-east-1")
    code, out, _ = run(*ASKED, "--key", "k")
    assert code == 0
    assert "the bucket has no rules: nothing is sent" in out
    assert json.loads(run(*ASKED, "--key", "k", "--json")[1])["rules"] == []


@pytest.mark.usefixtures("ruled")
def test_what_cannot_be_supposed_is_one_line_and_exit_code_1(run: Run) -> None:
    for event in ("s3:ObjectCreated:*", "Put"):
        code, out, err = run("explain", "--bucket", "media", "--key", "k", "--event", event)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "s3:ObjectTagging:Delete" in err
    for bad in (("--size", "-1"), ("--tag", "team"), ("--version", "one")):
        assert run(*ASKED, "--key", "k", *bad)[0] == 1
