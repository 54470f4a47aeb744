"""`bucketwire notification`, beside a metabase that is open."""

import json
from collections.abc import Callable

import pytest

from bucketwire.event.rule import Filter, Part, Rule
from bucketwire.metabase.base import Metabase
from factories import TOPIC_ARN

Run = Callable[..., tuple[int, str, str]]
FILTERS = (Filter("suffix", ".mp4"), Filter("team", "blue", Part.TAGS))
RULES = [
    Rule("films", TOPIC_ARN, ("s3:ObjectCreated:*",), FILTERS),
    Rule("gone", TOPIC_ARN, ("s3:ObjectRemoved:*",)),
]


@pytest.fixture
def ruled(metabase: Metabase) -> Metabase:
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.rules.edit("media", lambda _: RULES)
    return metabase


@pytest.mark.usefixtures("ruled")
def test_the_rules_of_a_bucket_are_listed(run: Run) -> None:
    code, out, _ = run("notification", "list", "--bucket", "media")
    assert code == 0
    assert out.splitlines() == [
        f"films -> {TOPIC_ARN}  s3:ObjectCreated:* Suffix=.mp4 tag team=blue",
        f"gone -> {TOPIC_ARN}  s3:ObjectRemoved:*",
    ]


@pytest.mark.usefixtures("ruled")
def test_as_json_the_rules_are_the_configuration_that_s3_gives(run: Run) -> None:
    shown = json.loads(run("notification", "list", "--bucket", "media", "--json")[1])
    films, gone = shown["TopicConfigurations"]
    assert gone == {"Id": "gone", "TopicArn": TOPIC_ARN, "Events": ["s3:ObjectRemoved:*"]}
    assert films["Filter"]["Key"]["FilterRules"] == [{"Name": "Suffix", "Value": ".mp4"}]
    in_ceph = run("notification", "get", "--bucket", "media", "--id", "films", "--json", "--dialect", "ceph")
    assert json.loads(in_ceph[1])["Filter"]["Key"]["FilterRules"] == [{"Name": "suffix", "Value": ".mp4"}]


@pytest.mark.usefixtures("ruled")
def test_one_rule_is_shown(run: Run) -> None:
    code, out, _ = run("notification", "get", "--bucket", "media", "--id", "films")
    assert code == 0
    assert out.splitlines() == [
        "id: films",
        f"topic: {TOPIC_ARN}",
        "events: s3:ObjectCreated:*",
        "key Suffix: .mp4",
        "tags team: blue",
    ]


@pytest.mark.usefixtures("ruled")
def test_names_of_filters_are_those_of_the_servers_dialect(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    listing, one = ("list", "--bucket", "media"), ("get", "--bucket", "media", "--id", "films")
    assert "suffix=.mp4" in run("notification", *listing, "--dialect", "ceph")[1]
    monkeypatch.setenv("BUCKETWIRE_DIALECT", "ceph")
    assert "suffix=.mp4" in run("notification", *listing)[1]
    assert "key suffix: .mp4" in run("notification", *one)[1]
    assert '"Name":"suffix"' in run("notification", *listing, "--json")[1]
    assert "Suffix=.mp4" in run("notification", *listing, "--dialect", "aws")[1]


@pytest.mark.usefixtures("ruled")
def test_as_json_a_removal_tells_the_ids(run: Run) -> None:
    removal = ("notification", "rm", "--bucket", "media", "--json")
    assert json.loads(run(*removal, "--id", "films")[1]) == {"bucket": "media", "removed": ["films"]}
    assert json.loads(run(*removal)[1]) == {"bucket": "media", "removed": ["gone"]}
    assert json.loads(run(*removal)[1]) == {"bucket": "media", "removed": []}


def test_a_rule_is_removed_for_the_next_write_of_a_server_that_runs(run: Run, ruled: Metabase) -> None:
    assert run("notification", "rm", "--bucket", "media", "--id", "films")[0] == 0
    assert [rule.id for rule in ruled.rules.current("media")] == ["gone"]
    assert run("notification", "rm", "--bucket", "media", "--id", "films")[0] == 2
    assert run("notification", "rm", "--bucket", "media")[0] == 0
    assert ruled.rules.current("media") == []
    assert run("notification", "rm", "--bucket", "media")[0] == 0
    assert json.loads(run("notification", "list", "--bucket", "media", "--json")[1]) == {
        "TopicConfigurations": []
    }


@pytest.mark.usefixtures("ruled")
def test_what_does_not_exist_is_exit_code_2(run: Run) -> None:
    assert run("notification", "get", "--bucket", "media", "--id", "none") == (
        2,
        "",
        "bucketwire: there is no rule none in bucket media\n",
    )
    for arguments in (("list",), ("get", "--id", "films"), ("rm",), ("rm", "--id", "films")):
        code, out, err = run("notification", *arguments, "--bucket", "none-such")
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
