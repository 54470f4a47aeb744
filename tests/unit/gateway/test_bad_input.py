"""Whatever is sent, the answer is an error of the client's and the gateway goes on."""

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketwire.event.change import Origin
from bucketwire.event.name import Operation
from factories import new_object
from gateway.in_process import Answered, InProcess, signed_headers

fuzzed = settings(max_examples=60)
tokens = st.sampled_from(
    [
        "acl",
        "notification",
        "list-type",
        "uploads",
        "uploadId",
        "partNumber",
        "versionId",
        "max-keys",
        "prefix",
        "delimiter",
        "continuation-token",
        "encoding-type",
        "response-content-type",
        "start-after",
        "x-id",
        "é",
        "Action",
    ]
)
values = st.sampled_from(["", "2", "-1", "1e9", "999999999999999999999", "url", "\r\n", "\0"]) | st.text(
    max_size=12
)
queries = st.lists(st.tuples(tokens, values), max_size=4).map(
    lambda pairs: "&".join(f"{quote(a.encode())}={quote(b.encode(errors='replace'))}" for a, b in pairs)
)
header_text = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20) | st.sampled_from(
    [
        "bytes=0-",
        "bytes=5-1",
        "bytes=-",
        "bytes=99999999999999999999-",
        "Sun, 99 Foo 2026",
        "2026-13-45",
        "true",
        "*",
    ]
)
headers = st.dictionaries(
    st.sampled_from(
        [
            "range",
            "if-match",
            "if-modified-since",
            "if-unmodified-since",
            "content-md5",
            "x-amz-acl",
            "expires",
            "x-amz-checksum-crc32",
            "x-amz-tagging",
            "x-amz-meta-a",
            "x-amz-storage-class",
            "x-amz-checksum-mode",
            "x-amz-copy-source",
            "x-amz-trailer",
            "x-amz-decoded-content-length",
            "x-amz-expected-bucket-owner",
            "x-amz-object-lock-retain-until-date",
            "x-amz-skip-destination-validation",
            "content-encoding",
        ]
    ),
    header_text.map(str.strip),
    max_size=4,
)
paths = st.sampled_from(
    ["/", "/media", "/media/key", "/media//", "/media/%2e%2e/%FF", "/media/%00", "/none/key", "//"]
)
methods = st.sampled_from(["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"])


@pytest.fixture(scope="module", autouse=True)
def _an_object_to_read(app: InProcess) -> None:
    app.metabase.objects.put("media", new_object("key"), Operation.PUT, Origin("a", "b", "c", "d"))


def assert_answered_well(answered: Answered) -> None:
    assert answered.status < 500 or answered.status == 501, answered
    assert answered.headers["x-amz-request-id"]
    for name, text in answered.headers.items():
        assert "\n" not in text, name
    if answered.status >= 400 and answered.body:
        assert answered.code


@fuzzed
@given(methods, paths, queries, headers, st.binary(max_size=40))
def test_any_signed_request_is_answered(
    app: InProcess, method: str, path: str, query: str, sent: dict[str, str], body: bytes
) -> None:
    target = f"{path}?{query}" if query else path
    assert_answered_well(app.signed(method, target, body, sent.items()))


@fuzzed
@given(
    methods,
    paths,
    queries,
    st.lists(
        st.tuples(
            st.sampled_from(
                ["authorization", "x-amz-date", "date", "x-amz-content-sha256", "host", "content-length"]
            ),
            header_text | st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"]), max_size=30),
        ),
        max_size=6,
    ),
)
def test_any_unsigned_request_is_refused_but_for_the_list_of_no_buckets(
    app: InProcess, method: str, path: str, query: str, sent: list[tuple[str, str]]
) -> None:
    answered = app.send(method, f"{path}?{query}" if query else path, sent, b"body")
    assert 400 <= answered.status < 500 or b"<Buckets></Buckets>" in answered.body


@fuzzed
@given(st.data())
def test_any_change_to_an_authorization_header_is_refused(app: InProcess, data: st.DataObject) -> None:
    sent = signed_headers("GET", "/", b"")
    at = next(index for index, (name, _) in enumerate(sent) if name == "Authorization")
    text = sent[at][1]
    cut = data.draw(st.integers(0, len(text) - 1))
    put_in = data.draw(
        st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=", "), max_size=3)
    )
    changed = text[:cut] + put_in + text[cut + 1 :]
    if changed.lower().replace(" ", "") != text.lower().replace(" ", ""):
        sent[at] = ("Authorization", changed)
        assert 400 <= app.send("GET", "/", sent).status < 500


pieces = st.sampled_from(
    [
        "<NotificationConfiguration>",
        "</NotificationConfiguration>",
        "<TopicConfiguration>",
        "</TopicConfiguration>",
        "<Id>x</Id>",
        "<Topic>arn:aws:sns:us-east-1:000000000000:t</Topic>",
        "<Event>s3:ObjectCreated:*</Event>",
        "<Filter><S3Key><FilterRule><Name>prefix</Name><Value>",
        "</Value></FilterRule></S3Key></Filter>",
        "<!DOCTYPE a>",
        "<!-- c -->",
        "<![CDATA[x]]>",
        "&amp;",
        "&#0;",
        "<QueueConfiguration/>",
        "<?xml?>",
        "text",
    ]
)


@fuzzed
@given(st.lists(pieces, max_size=10).map("".join))
def test_any_document_is_answered(app: InProcess, document: str) -> None:
    answered = app.signed("PUT", "/media?notification", document.encode())
    assert answered.status in {200, 400}
    assert_answered_well(answered)


fields = st.sampled_from(
    ["Action", "Name", "TopicArn", "NextToken", "Version", "Attributes.entry.1.key"]
) | st.text(max_size=10)
texts = st.sampled_from(
    ["CreateTopic", "ListTopics", "GetTopicAttributes", "DeleteTopic", "Publish"]
) | st.text(max_size=20)


@fuzzed
@given(st.lists(st.tuples(fields, texts), max_size=6))
def test_any_form_is_answered(app: InProcess, pairs: list[tuple[str, str]]) -> None:
    body = "&".join(
        f"{quote(a.encode(errors='replace'))}={quote(b.encode(errors='replace'))}" for a, b in pairs
    )
    assert_answered_well(app.signed("POST", "/", body.encode(), service="sns"))


@pytest.mark.parametrize(
    ("method", "target", "sent", "named"),
    [
        ("PUT", "/media/k", {"x-amz-server-side-encryption": "AES256"}, "x-amz-server-side-encryption"),
        ("PUT", "/media/k", {"x-amz-object-lock-mode": "GOVERNANCE"}, "x-amz-object-lock-mode"),
        ("POST", "/media/k?uploads", {"x-amz-object-lock-mode": "GOVERNANCE"}, "x-amz-object-lock-mode"),
        ("GET", "/media/key?torrent", {}, "GetObjectTorrent"),
        ("POST", "/media/key?restore", {}, "RestoreObject"),
        ("GET", "/media?metrics", {}, "ListBucketMetricsConfigurations"),
    ],
)
def test_what_is_not_built_is_named_and_never_ignored(
    app: InProcess, method: str, target: str, sent: dict[str, str], named: str
) -> None:
    answered = app.signed(method, target, b"", sent.items())
    assert (answered.status, answered.code) == (501, "NotImplemented")
    assert named in (answered.field("Message") or "")


def test_defaults_that_are_spelt_out_are_accepted(app: InProcess) -> None:
    app.signed("PUT", "/media")  # any request was sent before, one that deletes it too
    sent = {"x-amz-acl": "private", "x-amz-storage-class": "STANDARD"}
    assert app.signed("PUT", "/media/spelt", b"", sent.items()).status == 200


def test_an_unforeseen_failure_is_told_to_the_log_and_not_to_the_client(
    app: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[dict[str, Any]] = []

    class Log:
        def error(self, event: str, **fields: Any) -> None:
            logged.append({"event": event, **fields})

    def broken(_owner: str) -> None:
        raise RuntimeError("a secret path")

    monkeypatch.setattr(app.metabase.buckets, "owned_by", broken)
    monkeypatch.setattr(app.app, "_log", Log())
    answered = app.signed("GET", "/")
    assert (answered.status, answered.code, b"secret" in answered.body) == (500, "InternalError", False)
    assert [each["request_id"] for each in logged] == [answered.headers["x-amz-request-id"]]
    assert str(logged[0]["exc_info"]) == "a secret path"
