"""IBM COS 2.0: every row of the inclusion table, in the three versioning states."""

import json
import struct
import uuid
from collections import Counter
from typing import Any

import msgspec
import pytest

from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import AWS
from bucketwire.event.installation import Installation
from bucketwire.event.name import Operation
from factories import change, rule, topic
from golden.cases import BEFORE_IMAGE, CHANGES, SYSTEM_NAME, asks_before_image, composed

ALWAYS = {
    "format": "2.0",
    "request_id": "4F1D0A2B3C4D5E6F",
    "request_time": "2025-11-15T20:24:40.123Z",
    "bucket_name": "media",
    "bucket_uuid": "8b7bbeef-9f6a-192d-d839-a0b9a8c7f00d",
    "system_uuid": "48def817-f0a3-4949-abe2-9193be91de22",
}
FOR_EVERY_EVENT = {"event_type", "object_name", "object_length"}
DESCRIPTION = {"content_type", "meta_headers"}
VERSION = {"object_version"}
ETAG = {"object_etag"}
WRITE = "Object:Write"
DELETE = "Object:Delete"
MARKER = "Object:CreateDeleteMarker"
NULL_DELETED = "Object:CreateDeleteMarker:NullVersionDeleted"

V1, V2 = "0123456789abcdef", "0123456789abcdf0"

DESCRIBED: dict[int, dict[str, Any]] = {
    7: {
        "content_type": "image/jpg",
        "meta_headers": [
            {"header": "x-amz-meta-foobar", "value": "foobar value"},
            {"header": "x-amz-meta-mandm", "value": "green"},
            {"header": "x-amz-meta-odd", "value": "\u00e4\x01=?utf-8?B?w6Q=?="},
        ],
    },
    11: {
        "content_type": "video/mp4",
        "meta_headers": [{"header": "x-amz-meta-color", "value": "red"}],
    },
}
"""What describes the objects of the cases, by their size."""
ETAGS = {7: "7ac66c0f148de9519b8bd264312c4d64", 11: "0b4e7a0e5fe84ad35fb5f95b9ceeac79"}
OTHERS_ETAG = "5d41402abc4b2a76b9719d911017c592"

TABLE: dict[str, tuple[str, set[str], str | None, int]] = {
    "put": (WRITE, ETAG, None, 64908),
    "put-empty": (WRITE, ETAG, None, 0),
    "put-odd-key": (WRITE, ETAG, None, 5),
    "put-control-key": (WRITE, ETAG, None, 5),
    "put-huge": (WRITE, ETAG, None, 2**63 - 1),
    "put-described": (WRITE, ETAG | DESCRIPTION, None, 7),
    "overwrite": (WRITE, ETAG | DESCRIPTION, None, 11),
    "post": (WRITE, ETAG | DESCRIPTION, None, 11),
    "copy": (WRITE, ETAG | DESCRIPTION, None, 11),
    "multipart": (WRITE, ETAG | DESCRIPTION, None, 11),
    "acl-put": (WRITE, ETAG | DESCRIPTION, None, 11),
    "tagging-put": (WRITE, ETAG | DESCRIPTION, None, 11),
    "tagging-delete": (WRITE, ETAG | DESCRIPTION, None, 11),
    "versioned-overwrite": (WRITE, ETAG | VERSION | DESCRIPTION, V1, 11),
    "versioned-post": (WRITE, ETAG | VERSION | DESCRIPTION, V1, 11),
    "versioned-copy": (WRITE, ETAG | VERSION | DESCRIPTION, V1, 11),
    "versioned-multipart": (WRITE, ETAG | VERSION | DESCRIPTION, V1, 11),
    "versioned-put": (WRITE, ETAG | VERSION | DESCRIPTION, V1, 11),
    "versioned-acl-put": (WRITE, ETAG | VERSION | DESCRIPTION, V1, 11),
    "versioned-tagging-put": (WRITE, ETAG | VERSION | DESCRIPTION, V1, 11),
    "versioned-tagging-delete": (WRITE, ETAG | VERSION | DESCRIPTION, V1, 11),
    "suspended-overwrite": (WRITE, ETAG | VERSION | DESCRIPTION, "null", 11),
    "suspended-post": (WRITE, ETAG | VERSION | DESCRIPTION, "null", 11),
    "suspended-copy": (WRITE, ETAG | VERSION | DESCRIPTION, "null", 11),
    "suspended-multipart": (WRITE, ETAG | VERSION | DESCRIPTION, "null", 11),
    "suspended-put": (WRITE, ETAG | VERSION | DESCRIPTION, "null", 11),
    "suspended-acl-put": (WRITE, ETAG | VERSION | DESCRIPTION, "null", 11),
    "suspended-tagging-put": (WRITE, ETAG | VERSION | DESCRIPTION, "null", 11),
    "suspended-tagging-delete": (WRITE, ETAG | VERSION | DESCRIPTION, "null", 11),
    "delete": (DELETE, set(), None, 5),
    "delete-described": (DELETE, DESCRIPTION, None, 7),
    "delete-missing": (DELETE, set(), None, 0),
    "expire": (DELETE, DESCRIPTION, None, 7),
    "versioned-delete": (MARKER, VERSION, V2, 0),
    "versioned-delete-hides-null": (MARKER, VERSION, V2, 0),
    "versioned-delete-hides-marker": (MARKER, VERSION, V2, 0),
    "versioned-delete-hides-null-marker": (MARKER, VERSION, V2, 0),
    "versioned-delete-missing": (MARKER, VERSION, V2, 0),
    "versioned-expire": (MARKER, VERSION, V2, 0),
    "versioned-expire-hides-null": (MARKER, VERSION, V2, 0),
    "versioned-delete-version": (DELETE, VERSION | DESCRIPTION, V1, 11),
    "versioned-delete-null": (DELETE, VERSION | DESCRIPTION, "null", 7),
    "versioned-delete-marker": (DELETE, VERSION, V2, 0),
    "versioned-delete-null-marker": (DELETE, VERSION, "null", 0),
    "versioned-expire-noncurrent": (DELETE, VERSION | DESCRIPTION, V1, 11),
    "versioned-expire-noncurrent-null": (DELETE, VERSION | DESCRIPTION, "null", 7),
    "versioned-expire-marker": (DELETE, VERSION, V2, 0),
    "versioned-expire-null-marker": (DELETE, VERSION, "null", 0),
    "suspended-delete-version": (DELETE, VERSION | DESCRIPTION, V1, 11),
    "suspended-delete-null": (DELETE, VERSION | DESCRIPTION, "null", 7),
    "suspended-delete-marker": (DELETE, VERSION, V2, 0),
    "suspended-delete-null-marker": (DELETE, VERSION, "null", 0),
    "suspended-expire-noncurrent": (DELETE, VERSION | DESCRIPTION, V1, 11),
    "suspended-expire-noncurrent-null": (DELETE, VERSION | DESCRIPTION, "null", 7),
    "suspended-expire-marker": (DELETE, VERSION, V2, 0),
    "suspended-expire-null-marker": (DELETE, VERSION, "null", 0),
    "suspended-delete-missing": (MARKER, VERSION, "null", 0),
    "suspended-delete-hides-version": (MARKER, VERSION, "null", 0),
    "suspended-delete-hides-marker": (MARKER, VERSION, "null", 0),
    "suspended-expire-hides-version": (MARKER, VERSION, "null", 0),
    "suspended-delete": (NULL_DELETED, VERSION | DESCRIPTION, "null", 7),
    "suspended-expire": (NULL_DELETED, VERSION | DESCRIPTION, "null", 7),
    "suspended-delete-hides-version-replaces-null": (NULL_DELETED, VERSION | DESCRIPTION, "null", 7),
    "suspended-delete-hides-marker-replaces-null": (NULL_DELETED, VERSION | DESCRIPTION, "null", 7),
    "suspended-expire-hides-version-replaces-null": (NULL_DELETED, VERSION | DESCRIPTION, "null", 7),
    "suspended-delete-bare": (NULL_DELETED, VERSION, "null", 5),
    "suspended-delete-replaces-marker": (NULL_DELETED, VERSION, "null", 0),
    "suspended-delete-hides-version-replaces-marker": (NULL_DELETED, VERSION, "null", 0),
    "suspended-expire-hides-version-replaces-marker": (NULL_DELETED, VERSION, "null", 0),
}

NOW_NS = 1_763_238_280_123_456_789
MULTI_DELETE = [
    change(f"key-{number}", Operation.DELETE, committed_at_ns=NOW_NS + number * 1_000)
    for number in range(4_000)
]


def payload(case: str, name: str = "") -> dict[str, Any]:
    return dict(json.loads(composed(case, "aws", name=name, format="cos").body))


def test_the_table_has_all_cases() -> None:
    assert TABLE.keys() == {case for case in CHANGES if not asks_before_image(case)}


@pytest.mark.parametrize("case", TABLE)
def test_a_payload_has_the_fields_of_its_row_and_no_others(case: str) -> None:
    event_type, more, version, length = TABLE[case]
    told = {
        **ALWAYS,
        "event_type": event_type,
        "object_name": CHANGES[case].key,
        "object_length": length,
        "object_version": version,
        "object_etag": ETAGS.get(length, OTHERS_ETAG),
        **DESCRIBED.get(length, {}),
    }
    assert payload(case) == {name: told[name] for name in (ALWAYS.keys() | FOR_EVERY_EVENT | more)}


@pytest.mark.parametrize("case", [case for case in CHANGES if asks_before_image(case)])
def test_a_topic_that_asks_what_was_there_gets_the_same(case: str) -> None:
    """The table says what is told of it."""
    assert payload(case) == payload(case.removesuffix(BEFORE_IMAGE))


def test_the_name_of_the_system_is_told_when_it_has_one() -> None:
    assert payload("put", SYSTEM_NAME) == payload("put") | {"system_name": SYSTEM_NAME}


def test_the_key_names_the_request_and_the_event_and_is_the_same_on_a_retry() -> None:
    message = composed("put", "aws", format="cos")
    assert message.partition_key == composed("put", "aws", format="cos").partition_key
    assert json.loads(message.partition_key or b"") == {
        "format": "2.0",
        "request_id": CHANGES["put"].origin.request_id,
        "notification_id": str(uuid.UUID(message.event_id)),
    }


def test_keys_of_one_request_differ() -> None:
    keys = set()
    for each in MULTI_DELETE[:3]:
        message = Subscription(rule(), topic(format="cos"), Installation(AWS)).compose(each)
        keys.add(message.partition_key)
    assert len({each.origin.request_id for each in MULTI_DELETE}) == 1
    assert len(keys) == 3


@pytest.mark.parametrize("apart_ns", [1, 1_000])
def test_keys_spread_evenly_over_partitions(apart_ns: int) -> None:
    """Also those of one multi-object delete, whose times may be the next ones to each other."""
    found: Counter[int] = Counter()
    subscription = Subscription(rule(), topic(format="cos"), Installation(AWS))
    for number, each in enumerate(MULTI_DELETE):
        moved = msgspec.structs.replace(each, committed_at_ns=NOW_NS + number * apart_ns)
        found[partition(subscription.compose(moved).partition_key or b"", 8)] += 1
    assert len(found) == 8
    assert max(found.values()) < 1.3 * min(found.values())


def partition(key: bytes, count: int) -> int:
    """Where Kafka's clients place a key, librdkafka's `murmur2_random` among them."""
    return (murmur2(key) & 0x7FFFFFFF) % count


def murmur2(key: bytes) -> int:
    """Austin Appleby's hash, with the seed of Kafka."""
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    value = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for (word,) in struct.iter_unpack("<I", key[:whole]):
        mixed = word * factor & mask
        value = (value * factor & mask) ^ ((mixed ^ mixed >> 24) * factor & mask)
    if key[whole:]:
        value = (value ^ int.from_bytes(key[whole:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


def test_the_hash_is_that_of_kafka() -> None:
    """Numbers that Kafka's own tests have, without their signs."""
    found = [murmur2(each) for each in (b"21", b"foobar", b"a-little-bit-long-string")]
    assert found == [each & 0xFFFFFFFF for each in (-973932308, -790332482, -985981536)]


def test_the_dialect_of_the_server_does_not_show() -> None:
    for case in CHANGES:
        aws, ceph = (composed(case, dialect, format="cos") for dialect in ("aws", "ceph"))
        assert aws == ceph
