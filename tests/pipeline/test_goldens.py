"""What Spark delivers are the golden messages: one formatter, here and in the gateway."""

import json
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from bucketwire.event.change import Versioning
from bucketwire.event.name import Operation
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import NewObject
from factories import origin, rule, topic
from golden.cases import CHANGES, path
from golden.pinned import pinned
from services.http_endpoint import HttpEndpoint, Received

BUCKET = "media"
VERSIONED_BUCKET = "versions"
PATIENCE_SECONDS = 60
FORMS = {
    "aws": {},
    "cos": {"format": "cos"},
    "cloudevents": {"format": "cloudevents"},
    "binary": {"format": "cloudevents", "cloudevents-mode": "binary"},
}
BODY_LINE = {"aws": 0, "cos": 1, "cloudevents": 0, "binary": 1}
CASES = {
    **dict.fromkeys(("put", "put-empty", "put-odd-key", "put-control-key", "put-huge"), BUCKET),
    "put-described": BUCKET,
    "versioned-put": VERSIONED_BUCKET,
}


def write(metabase: Metabase, case: str) -> None:
    change = CHANGES[case]
    assert change.new is not None
    new = NewObject(
        change.key,
        change.new.size_bytes,
        change.new.etag,
        "owner-1",
        content_type=change.new.content_type,
        metadata=change.new.metadata,
        tags=change.new.tags,
        inline=b"",
    )
    metabase.objects.put(CASES[case], new, Operation.PUT, origin())


@pytest.fixture
def subscribed(metabase: Metabase, endpoint: HttpEndpoint) -> None:
    """Both buckets, with a rule for a topic of each format."""
    metabase.buckets.create(VERSIONED_BUCKET, "owner-1", "us-east-1")
    metabase.buckets.set_versioning(VERSIONED_BUCKET, Versioning.ENABLED)
    topics = [topic(f"{endpoint.url}/{form}", form, **attributes) for form, attributes in FORMS.items()]
    for each in topics:
        metabase.topics.put(each)
    rules = [rule("s3:ObjectCreated:*", id=f"to-{each.name}", topic_arn=each.arn) for each in topics]
    for bucket in (BUCKET, VERSIONED_BUCKET):
        metabase.rules.edit(bucket, lambda _: rules)


@pytest.mark.usefixtures("subscribed")
def test_every_format_comes_as_in_the_golden_files(
    run_pipeline: Callable[..., list[StreamingQuery]], metabase: Metabase, endpoint: HttpEndpoint
) -> None:
    for case in CASES:
        write(metabase, case)
    run_pipeline()
    received = endpoint.wait_for(len(CASES) * len(FORMS), PATIENCE_SECONDS)
    found = {
        (event.path.rpartition("/")[2], unquote(event.headers["bucketwire-key"])): event for event in received
    }
    for case in CASES:
        for form in FORMS:
            assert_golden(found[form, CHANGES[case].key], case, form)


def assert_golden(event: Received, case: str, form: str) -> None:
    lines = path(case, form).read_bytes().splitlines()
    golden = lines[BODY_LINE[form]]
    assert pinned(event.body, golden) == golden
    beside = {name[3:]: unquote(value) for name, value in event.headers.items() if name.startswith("ce-")}
    if form == "binary":
        assert pinned(json.dumps(beside).encode(), lines[0]) == lines[0]
    else:
        assert beside == {}
