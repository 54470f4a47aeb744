"""Whatever document is put as a notification configuration: an answer of the right kind, and never a 500."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.in_process import InProcess
from gateway.notifications import document, topic_named

NAMES = [
    "NotificationConfiguration",
    "TopicConfiguration",
    "QueueConfiguration",
    "CloudFunctionConfiguration",
    "EventBridgeConfiguration",
    *(
        "Id",
        "Topic",
        "Event",
        "Filter",
        "S3Key",
        "S3Metadata",
        "S3Tags",
        "FilterRule",
        "Name",
        "Value",
        "Other",
    ),
]
WORDS = [
    *("s3:ObjectCreated:*", "s3:ObjectRemoved:Delete", "s3:Nothing"),
    *("prefix", "Suffix", "regex", "x-amz-meta-a", "X-AMZ-META-", "a"),
    *("arn:aws:sns:us-east-1::t", "arn:aws:sns:us-east-1::none"),
    "arn:gcp:pubsub::p:t",  # no project has so short a name: nothing is sent to Google
    *("(", "(a*)*b", "[[:alpha:]]", "\\pN", "\\C"),
]

texts = st.one_of(
    st.sampled_from(WORDS),
    st.text(st.characters(exclude_characters="<&\0", exclude_categories=["Cc", "Cs"]), max_size=20),
    st.sampled_from(["", "x" * 1024, "x" * 1025]),
)


def element(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>"


elements = st.recursive(
    st.builds(element, st.sampled_from(NAMES), texts),
    lambda inner: st.builds(element, st.sampled_from(NAMES), st.lists(inner, max_size=4).map("".join)),
    max_leaves=12,
)
conditions = st.builds(
    lambda name, value: element("FilterRule", element("Name", name) + element("Value", value)), texts, texts
)
filters = st.builds(
    lambda part, inner: element("Filter", element(part, "".join(inner))),
    st.sampled_from(["S3Key", "S3Metadata", "S3Tags"]),
    st.lists(conditions, max_size=3),
)
rules = st.builds(
    lambda *inner: element("TopicConfiguration", "".join(inner)),
    texts.map(lambda text: element("Id", text)),
    st.sampled_from(WORDS).map(lambda text: element("Topic", text)),
    st.lists(st.sampled_from(WORDS).map(lambda text: element("Event", text)), max_size=3).map("".join),
    filters,
)


@pytest.fixture(scope="module", params=["aws", "ceph", "storj"])
def fuzzed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    gateway = InProcess(tmp_path_factory.mktemp("fuzz"), request.param)
    topic_named(gateway)
    gateway.signed("PUT", "/media")
    yield gateway
    gateway.close()


@given(
    body=st.one_of(
        st.binary(max_size=50),
        st.lists(elements, max_size=3).map(lambda each: document(*each)),
        st.lists(rules, max_size=3).map(lambda each: document(*each)),
    ),
    rule_id=st.sampled_from(["", "a", "%00", "x%0Ay"]),
)
@settings(max_examples=100)
def test_no_document_is_answered_with_a_fault_of_ours(fuzzed: InProcess, body: bytes, rule_id: str) -> None:
    answered = fuzzed.signed("PUT", f"/media?notification={rule_id}", body)
    assert answered.status in {200, 400, 404}, answered.body
    assert fuzzed.signed("GET", "/media?notification").status == 200
