"""XML and forms, in and out."""

from typing import Any

import pytest
from botocore.parsers import QueryParser, RestXMLParser
from botocore.serialize import RestXMLSerializer
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.errors import CallError, Conflict, Denied, InvalidRequest, NotFound, Unavailable
from bucketwire.gateway.protocol.faults import s3_fault, sns_fault, status_of
from bucketwire.gateway.protocol.model import load_service
from bucketwire.gateway.protocol.parse import parse_form, parse_query_input, rest_plan
from bucketwire.gateway.protocol.serialize import query_document, rest_output_plan
from bucketwire.gateway.protocol.xml import parse_xml

S3 = load_service("s3")
SNS = load_service("sns")
NOTIFICATION = rest_plan(S3.operation_model("PutBucketNotificationConfiguration"))
DELETE = rest_plan(S3.operation_model("DeleteObjects"))
TOPIC = "<TopicConfiguration><Topic>arn</Topic><Event>a</Event><Event>b</Event></TopicConfiguration>"

TWICE = "<Topic>x</Topic><Topic>"


def read(document: str) -> Any:
    return NOTIFICATION.parse_document(document.encode())["NotificationConfiguration"]


def test_a_document_is_read_by_the_model_with_or_without_a_namespace() -> None:
    expected = {"TopicConfigurations": [{"TopicArn": "arn", "Events": ["a", "b"]}]}
    plain = f"<NotificationConfiguration>{TOPIC}</NotificationConfiguration>"
    assert read(plain) == expected
    namespace = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    assert read(plain.replace("Configuration>", f"Configuration{namespace}>", 1)) == expected


def test_an_empty_document_is_an_empty_configuration() -> None:
    assert read("<NotificationConfiguration/>") == {}


def test_text_between_elements_is_joined() -> None:
    root = parse_xml(b"<a>" + b"x<b>y&amp;</b>" * 3 + b"</a>")
    assert root.text == "xxx"
    assert {each.text for each in root.children} == {"y&"}


def test_a_document_may_tell_of_all_parts_with_their_checksums_and_not_of_much_more() -> None:
    part = "<Part><ETag>e</ETag><PartNumber>1</PartNumber><ChecksumCRC32>c</ChecksumCRC32></Part>"
    assert len(parse_xml(f"<a>{part * 10_000}</a>".encode()).children) == 10_000
    with pytest.raises(InvalidRequest) as raised:
        parse_xml(b"<a>" + b"<b/>" * 100_000 + b"</a>")
    assert raised.value.code == "MalformedXML"


@pytest.mark.parametrize(
    "document",
    [
        "no xml",
        "<NotificationConfiguration>",
        "<Other/>",
        "<NotificationConfiguration><Unknown/></NotificationConfiguration>",
        "<NotificationConfiguration>text</NotificationConfiguration>",
        "<NotificationConfiguration><TopicConfiguration/></NotificationConfiguration>",
        f"<NotificationConfiguration>{TOPIC.replace('arn', '<x/>')}</NotificationConfiguration>",
        f"<NotificationConfiguration>{TOPIC.replace('<Topic>', TWICE)}</NotificationConfiguration>",
        '<!DOCTYPE x [<!ENTITY a "b">]><NotificationConfiguration/>',
        "<!DOCTYPE NotificationConfiguration><NotificationConfiguration/>",
        "<NotificationConfiguration>&undefined;</NotificationConfiguration>",
        "<a>" * 5000,
        '<?xml version="1.0" encoding="nonsense"?><NotificationConfiguration/>',
        "<NotificationConfiguration>\0</NotificationConfiguration>",
    ],
)
def test_what_is_not_the_operations_document_is_malformed(document: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(document)
    assert raised.value.code == "MalformedXML"


NAMED = "<Delete><Object><Key>{}</Key></Object></Delete>"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("declared", ["", '<?xml version="1.0" encoding="utf-16"?>'])
def test_a_document_in_another_encoding_is_malformed(encoding: str, declared: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        DELETE.parse_document((declared + NAMED.format("key")).encode(encoding))
    assert raised.value.code == "MalformedXML"


def test_half_a_pair_of_utf_16_names_no_other_key() -> None:
    halves = "\ufeff" + NAMED.format("\ud800A")
    with pytest.raises(InvalidRequest) as raised:
        DELETE.parse_document(halves.encode("utf-16-be", "surrogatepass"))
    assert raised.value.code == "MalformedXML"


@pytest.mark.parametrize("declared", ["iso-8859-1", "utf-16", "windows-1252", "nonsense"])
@pytest.mark.parametrize("key", [b"key", b"\xc3\xa4", b"\xe4"])
def test_a_document_that_declares_another_encoding_is_malformed(declared: str, key: bytes) -> None:
    document = f'<?xml version="1.0" encoding="{declared}"?>{NAMED}'.encode()
    with pytest.raises(InvalidRequest) as raised:
        DELETE.parse_document(document.replace(b"{}", key))
    assert raised.value.code == "MalformedXML"


@pytest.mark.parametrize(
    ("start", "key"),
    [
        ("", "\u00e4\U0001f680"),
        ("\ufeff", "\u00e4"),
        ('<?xml version="1.0"?>', "\u00e4"),
        ('<?xml version="1.0" encoding="UTF-8"?>', "\u00e4"),
        ("<?xml version='1.0' encoding='utf-8' standalone='yes'?>\n", "\u00e4"),
        ('\ufeff<?xml version="1.0" encoding="utf-8"?>', "\u00e4"),
        ("<?xml version='1.0' encoding='utf8'?>\n", "\u00e4"),
        ("<?xml version='1.0' encoding='us-ascii'?>", "&#228;"),
        ("<?xml version='1.0' encoding='ASCII'?>", "&#228;"),
    ],
)
def test_a_document_in_utf_8_may_say_so_or_not(start: str, key: str) -> None:
    given = DELETE.parse_document((start + NAMED.format(key)).encode())
    assert given["Delete"]["Objects"] == [{"Key": key.replace("&#228;", "\u00e4")}]


def test_documents_of_botocore_are_read() -> None:
    asked = {"Bucket": "b", "Delete": {"Objects": [{"Key": "\u00e4\U0001f680"}]}}
    sent = RestXMLSerializer().serialize_to_request(asked, S3.operation_model("DeleteObjects"))
    assert DELETE.parse_document(sent["body"]) == {"Delete": asked["Delete"]}


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(body: bytes) -> None:
    with pytest.raises(InvalidRequest) as raised:
        NOTIFICATION.parse_document(body)
    assert raised.value.code in {"MalformedXML", "MissingRequestBodyError"}


xml_text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


@given(
    st.lists(
        st.fixed_dictionaries(
            {"Id": xml_text, "TopicArn": xml_text, "Events": st.lists(xml_text, min_size=1)}
        )
    )
)
def test_what_is_written_is_read_back_by_botocore(entries: list[dict[str, Any]]) -> None:
    operation = S3.operation_model("GetBucketNotificationConfiguration")
    output = {"TopicConfigurations": entries} if entries else {}
    body = rest_output_plan(operation).body(output)
    parsed = RestXMLParser().parse({"status_code": 200, "headers": {}, "body": body}, operation.output_shape)
    parsed.pop("ResponseMetadata")
    assert parsed == output


def test_a_form_gives_maps_whatever_the_numbers_of_their_entries() -> None:
    form = parse_form(
        "Action=CreateTopic&Name=t&Attributes.entry.9.key=b&Attributes.entry.9.value=2"
        "&Attributes.entry.4.value=1&Attributes.entry.4.key=a&Version=1&X-Amz-Date=now"
    )
    found = parse_query_input(SNS.operation_model("CreateTopic"), form)
    assert found == {"Name": "t", "Attributes": {"a": "1", "b": "2"}}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        (
            "Attributes.entry.99999999.key=x&Attributes.entry.99999999.value=1",
            "Attributes.entry.99999999.key",
        ),
        ("Attributes.entry.x.key=a", "Attributes.entry.x.key"),
        ("Attributes.entry.1.key=a", "Attributes.entry.1"),
        ("Attributes.entry.1.value=a", "Attributes.entry.1"),
        ("Attributes.entry.1.key=a&Attributes.entry.1.value=&Attributes.entry.1.more=", "entry.1.more"),
        (
            "Attributes.entry.1.key=a&Attributes.entry.1.value=1&Attributes.entry.2.key=a&Attributes.entry.2.value=",
            "Attributes.entry.2.key",
        ),
        ("Attributes.1.key=a", "Attributes.1.key"),
        ("Attributes=a", "Attributes"),
        ("Tags.member.1.Other=a", "Tags.member.1.Other"),
        ("Tags.member.1=a", "Tags.member.1"),
        ("Name.x=a", "Name.x"),
    ],
)
def test_a_field_that_says_nothing_of_its_member_is_named(fields: str, named: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse_query_input(SNS.operation_model("CreateTopic"), parse_form(f"Name=t&{fields}"))
    assert raised.value.code == "InvalidParameter"
    assert f"{named} Reason: " in raised.value.message


def test_the_name_of_a_field_is_not_repeated_at_any_length() -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse_query_input(SNS.operation_model("CreateTopic"), {"Name": "t", "Tags." + "x" * 10_000: ""})
    assert len(raised.value.message) < 200


def test_a_list_and_a_map_may_be_said_to_be_empty() -> None:
    form = parse_form("Name=t&Attributes=&Tags=")
    assert parse_query_input(SNS.operation_model("CreateTopic"), form) == {"Name": "t"}


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(InvalidRequest, match="Name is missing"):
        parse_query_input(SNS.operation_model("CreateTopic"), {})


def test_an_answer_of_sns_is_read_back_by_botocore() -> None:
    operation = SNS.operation_model("GetTopicAttributes")
    body = query_document(operation, "http://sns", {"Attributes": {"a<": "1&", "b": ""}}, "ID")
    parsed = QueryParser().parse({"status_code": 200, "headers": {}, "body": body}, operation.output_shape)
    assert parsed["Attributes"] == {"a<": "1&", "b": ""}
    assert parsed["ResponseMetadata"]["RequestId"] == "ID"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidRequest("x", code="Unheard"), 400),
        (NotFound("x"), 404),
        (Conflict("x"), 409),
        (Denied("x"), 403),
        (Unavailable("x"), 503),
        (InvalidRequest("x", code="NotImplemented"), 501),
        (InvalidRequest("x", code="InvalidRange"), 416),
        (InvalidRequest("x", code="MissingContentLength"), 411),
        (CallError("x"), 500),
    ],
)
def test_the_status_is_that_of_the_code_or_of_the_class(error: CallError, status: int) -> None:
    assert status_of(error) == status


def test_error_documents_escape_what_they_repeat() -> None:
    ids = {"resource": "/b/<k>\x01", "request_id": "R", "host_id": "H"}
    assert "<Resource>/b/&lt;k&gt;\ufffd</Resource>".encode() in s3_fault("C", "m", {"A": "&"}, **ids)
    assert b"<Code>InvalidClientTokenId</Code>" in sns_fault(
        "InvalidAccessKeyId", "m", 403, namespace="n", request_id="R"
    )
