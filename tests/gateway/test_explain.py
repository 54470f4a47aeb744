"""GET /bucket?explain: what an event would do, for the owner of the bucket."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningCredentials

from bucketwire.event.name import Operation
from bucketwire.event.rule import Filter, Part, Rule
from factories import TOPIC_ARN, policy_for, topic
from gateway.in_process import HOST, InProcess
from gateway.running import OTHER, ROOT

PUT = "event=s3%3AObjectCreated%3APut"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[InProcess]:
    running = InProcess(tmp_path)
    running.signed("PUT", "/media")
    running.metabase.topics.put(msgspec.structs.replace(topic(), owner_id=ROOT.user_id))
    team = Filter("team", "blue", Part.TAGS)
    color = Filter("x-amz-meta-color", "red", Part.METADATA)
    rules = [
        Rule("logs", TOPIC_ARN, ("s3:ObjectCreated:*",), (Filter("prefix", "logs/"),)),
        Rule("team", TOPIC_ARN, ("s3:ObjectCreated:*",), (team, color)),
    ]
    running.metabase.rules.edit("media", lambda _: rules)
    yield running
    running.close()


def explained(gateway: InProcess, query: str) -> dict[str, Any]:
    answer = gateway.signed("GET", f"/media?explain=&{query}")
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/json"
    return dict(json.loads(answer.body))


def test_the_owner_learns_which_rules_match_why_not_and_what_is_sent(gateway: InProcess) -> None:
    shown = explained(gateway, f"key=logs%2Fa%20b.txt&{PUT}&size=12")
    logs, team = shown["rules"]
    assert (shown["bucket"], shown["key"], shown["object_exists"]) == ("media", "logs/a b.txt", False)
    assert (logs["matches"], logs["reasons"]) == (True, [])
    (record,) = logs["message"]["body"]["Records"]
    assert record["s3"]["object"]["size"] == 12
    assert record["s3"]["object"]["key"] == "logs/a+b.txt"
    assert record["userIdentity"] == {"principalId": ROOT.user_id}
    assert team["reasons"] == [
        "tag team is not set, and must be 'blue'",
        "metadata x-amz-meta-color is not set, and must be 'red'",
    ]


def test_the_object_in_the_bucket_is_looked_at(gateway: InProcess) -> None:
    headers = [("x-amz-tagging", "team=blue"), ("x-amz-meta-color", "red")]
    gateway.signed("PUT", "/media/a.txt", b"hello", headers)
    shown = explained(gateway, f"key=a.txt&{PUT}")
    assert shown["object_exists"]
    assert [each["matches"] for each in shown["rules"]] == [False, True]
    other = explained(gateway, f"key=a.txt&{PUT}&tag=team%3Dgreen&tag=x%3Dy&metadata=color%3Dred")
    assert other["rules"][1]["reasons"] == ["tag team is 'green', not 'blue'"]


def test_nothing_is_told_of_a_topic_that_another_user_has_closed(gateway: InProcess) -> None:
    theirs = msgspec.structs.replace(topic(OpaqueData="a secret word"), owner_id=OTHER.user_id)
    gateway.metabase.topics.put(theirs)
    shown = explained(gateway, f"key=logs%2Fa&{PUT}")["rules"][0]
    assert (shown["matches"], shown["delivers"], shown["message"]) == (True, False, None)
    assert "another user's" in shown["reasons"][0]
    opened = {**theirs.attributes, "Policy": policy_for("arn:aws:iam::000000000000:user/root")}
    gateway.metabase.topics.put(msgspec.structs.replace(theirs, attributes=opened))
    assert explained(gateway, f"key=logs%2Fa&{PUT}")["rules"][0]["delivers"]


def test_every_event_can_be_asked_for_and_nothing_is_written(gateway: InProcess) -> None:
    stream = gateway.metabase.changes
    before = stream.head(stream.start(), 100)
    for operation in Operation:
        assert explained(gateway, f"key=k&event={quote(operation)}")["event"] == f"s3:{operation}"
    assert stream.head(stream.start(), 100) == before


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        (f"explain=&{PUT}", 400, "InvalidArgument"),
        ("explain=&key=k", 400, "InvalidArgument"),
        (f"explain=&key=&{PUT}", 400, "InvalidArgument"),
        (f"explain=&key=%00&{PUT}", 400, "InvalidArgument"),
        ("explain=&key=k&event=s3%3AObjectCreated%3A%2A", 400, "InvalidArgument"),
        ("explain=&key=k&event=s3%3ANone", 400, "InvalidArgument"),
        (f"explain=&key=k&{PUT}&size=big", 400, "InvalidArgument"),
        (f"explain=&key=k&{PUT}&size=-1", 400, "InvalidArgument"),
        (f"explain=&key=k&{PUT}&tag=team", 400, "InvalidArgument"),
        (f"explain=&key=k&{PUT}&version=one", 400, "InvalidArgument"),
        (f"explain=&key=k&{PUT}&sise=1", 400, "InvalidArgument"),
        (f"explain=&key=k&{PUT}&notification=", 405, "MethodNotAllowed"),
        (f"explain=&key=k&{PUT}&versionId=null", 400, "InvalidArgument"),
    ],
)
def test_what_is_wrong_or_unknown_is_refused(gateway: InProcess, query: str, status: int, code: str) -> None:
    answer = gateway.signed("GET", f"/media?{query}")
    assert (answer.status, answer.code) == (status, code), answer.body


def test_an_unknown_event_is_told_which_there_are(gateway: InProcess) -> None:
    message = gateway.signed("GET", "/media?explain=&key=k&event=Put").field("Message") or ""
    assert all(f"s3:{each}" in message for each in Operation)


def test_only_a_bucket_that_exists_can_be_asked_and_only_with_get(gateway: InProcess) -> None:
    query = f"?explain=&key=k&{PUT}"
    assert gateway.signed("GET", "/none-such" + query).code == "NoSuchBucket"
    for method, target in (("PUT", "/media"), ("DELETE", "/media"), ("GET", "/media/k")):
        assert gateway.signed(method, target + query).status == 405
    assert (
        gateway.signed("GET", f"/media{query}", headers=[("x-amz-expected-bucket-owner", "x")]).status == 403
    )


def test_it_is_for_who_may_read_the_configuration_alone(gateway: InProcess) -> None:
    target = f"/media?explain=&key=k&{PUT}"
    gateway.signed("PUT", "/media?acl", headers=[("x-amz-acl", "public-read")])
    request = AWSRequest("GET", f"http://{HOST}{target}")
    S3SigV4Auth(SigningCredentials(OTHER.access_key, OTHER.secret_key), "s3", "us-east-1").add_auth(request)
    for headers in ([*request.headers.items(), ("Host", HOST)], [("Host", HOST)]):
        answer = gateway.send("GET", target, headers)
        assert (answer.status, answer.code) == (403, "AccessDenied")


def test_a_url_signed_in_advance_works(gateway: InProcess) -> None:
    request = AWSRequest("GET", f"http://{HOST}/media?explain=&key=logs/a&{PUT}")
    S3SigV4QueryAuth(SigningCredentials(ROOT.access_key, ROOT.secret_key), "s3", "us-east-1").add_auth(
        request
    )
    answer = gateway.send("GET", request.url.removeprefix(f"http://{HOST}"), [("Host", HOST)])
    assert answer.status == 200, answer.body
    assert json.loads(answer.body)["rules"][0]["matches"]
