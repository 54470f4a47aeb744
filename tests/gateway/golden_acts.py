"""The requests that make the golden changes: what each case asks of the gateway, by boto3 where it can.

The last change of an act is the case's. Two things no request can say: an object of 2^63 - 1 bytes, and a
control character in metadata. The acts come as near as they can, and `UNSAYABLE` has what differs then.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import urllib3
from urllib3.filepost import encode_multipart_formdata

from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.expire import run_lifecycle
from golden.cases import BEFORE_IMAGE, BUCKETS, DESCRIBED, VERSIONED
from golden.pinned import Pin

BARE, SEVEN, ELEVEN = b"hello", b"7 bytes", b"has 11 byte"
UNTAGGED = {"Metadata": VERSIONED.metadata, "ContentType": "video/mp4"}
DESCRIPTION = {**UNTAGGED, "Tagging": "team=blue"}
TAGS = {"TagSet": [{"Key": "team", "Value": "blue"}]}
TAGS_OF_FORM = "<Tagging><TagSet><Tag><Key>team</Key><Value>blue</Value></Tag></TagSet></Tagging>"
TWO_DAYS_NS = 2 * 86_400 * 10**9
UNSAYABLE: list[Pin] = [
    ('"key":"huge","size":5,', f'"key":"huge","size":{2**63 - 1},'),
    ('"object_name":"huge","object_length":5,', f'"object_name":"huge","object_length":{2**63 - 1},'),
    ("\u00e4\\t=?", "\u00e4\\u0001=?"),
]


@dataclass(frozen=True)
class Place:
    """A bucket with a rule, and the key that a case is about."""

    s3: Any
    url: str
    metabase: Metabase
    bucket: str
    key: str

    @property
    def named(self) -> dict[str, str]:
        """The object, as boto3 names it."""
        return {"Bucket": self.bucket, "Key": self.key}


Act = Callable[[Place], Any]


def put(body: bytes, **description: Any) -> Act:
    return lambda at: at.s3.put_object(**at.named, Body=body, **description)


def put_described(at: Place) -> None:
    """By hand, as boto3 sends no metadata beyond ASCII; a tab stands for the control character."""
    at.s3.put_bucket_acl(Bucket=at.bucket, ACL="public-read-write")
    headers = {f"x-amz-meta-{name}": text.replace("\1", "\t") for name, text in DESCRIBED.metadata.items()}
    headers |= {"content-type": "image/jpg", "x-amz-tagging": "day=4&env=test"}
    sent = {name: text.encode().decode("latin-1") for name, text in headers.items()}
    url = f"{at.url}/{at.bucket}/{quote(at.key)}"
    check(urllib3.request("PUT", url, body=SEVEN, headers=sent))


def post(at: Place) -> None:
    """A form of a browser, as boto3 signs it."""
    fields = {"x-amz-meta-color": "red", "Content-Type": "video/mp4", "tagging": TAGS_OF_FORM}
    conditions = [{name: text} for name, text in fields.items()]
    form = at.s3.generate_presigned_post(at.bucket, at.key, Fields=fields, Conditions=conditions)
    content, kind = encode_multipart_formdata([*form["fields"].items(), ("file", ("name", ELEVEN))])
    check(urllib3.request("POST", form["url"], body=content, headers={"content-type": kind}))


def check(answer: urllib3.BaseHTTPResponse) -> None:
    assert answer.status in {200, 204}, answer.data


def delete(at: Place) -> Any:
    return at.s3.delete_object(**at.named)


def delete_version(made: Act) -> Act:
    """Remove for good the version that the act has made."""
    return lambda at: at.s3.delete_object(**at.named, VersionId=made(at)["VersionId"])


def delete_null(at: Place) -> None:
    at.s3.delete_object(**at.named, VersionId="null")


def versioning(status: str) -> Act:
    return lambda at: at.s3.put_bucket_versioning(
        Bucket=at.bucket, VersioningConfiguration={"Status": status}
    )


enabled, suspended = versioning("Enabled"), versioning("Suspended")
put_version = put(ELEVEN, **DESCRIPTION)


def copy(at: Place) -> None:
    at.s3.put_object(Bucket=at.bucket, Key="source", Body=ELEVEN, **DESCRIPTION)
    at.s3.copy_object(**at.named, CopySource={"Bucket": at.bucket, "Key": "source"})


def multipart(at: Place) -> None:
    upload = {**at.named, "UploadId": at.s3.create_multipart_upload(**at.named, **DESCRIPTION)["UploadId"]}
    etag = at.s3.upload_part(**upload, PartNumber=1, Body=ELEVEN)["ETag"]
    at.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})


def expire(**action: Any) -> Act:
    """Let the lifecycle do it, by a clock that is ahead."""

    def act(at: Place) -> None:
        rule = {"ID": "all", "Status": "Enabled", "Filter": {"Prefix": ""}, **action}
        at.s3.put_bucket_lifecycle_configuration(Bucket=at.bucket, LifecycleConfiguration={"Rules": [rule]})
        run_lifecycle(at.metabase, time.time_ns() + TWO_DAYS_NS)
        at.s3.delete_bucket_lifecycle(Bucket=at.bucket)

    return act


def one_after_the_other(*acts: Act) -> Act:
    def act(at: Place) -> Any:
        return [each(at) for each in acts][-1]

    return act


def put_tags(at: Place) -> None:
    at.s3.put_object_tagging(**at.named, Tagging=TAGS)


def delete_tags(at: Place) -> None:
    at.s3.delete_object_tagging(**at.named)


def put_acl(at: Place) -> None:
    at.s3.put_object_acl(**at.named, ACL="public-read")


def none(_: Place) -> None:
    """There is nothing to do."""


put_untagged = put(ELEVEN, **UNTAGGED)
put_and_mark = one_after_the_other(put_version, delete)
expire_current = expire(Expiration={"Days": 1})
expire_noncurrent = expire(NoncurrentVersionExpiration={"NoncurrentDays": 1})
expire_marker = expire(Expiration={"ExpiredObjectDeleteMarker": True})
null_marker = one_after_the_other(suspended, delete)
"""And nothing else is there."""
OBJECTS: dict[str, Act] = {
    "put": put(b"x" * 64908),
    "put-empty": put(b""),
    "put-odd-key": put(BARE),
    "put-control-key": put(BARE),
    "put-huge": put(BARE),
    "put-described": put_described,
}
IN_EVERY_BUCKET: dict[str, tuple[Act, ...]] = {
    "put": (put_version,),
    "overwrite": (put_described, put_version),
    "post": (post,),
    "copy": (copy,),
    "multipart": (multipart,),
    "acl-put": (put_version, put_acl),
    "tagging-put": (put_untagged, put_tags),
    "tagging-delete": (put_version, delete_tags),
    "delete-missing": (delete,),
}
UNVERSIONED: dict[str, tuple[Act, ...]] = {
    "delete": (put(BARE), delete),
    "delete-described": (put_described, delete),
    "expire": (put_described, expire_current),
}


def hidden(then: Act) -> dict[str, tuple[Act, ...]]:
    """What is there, before versioning is as the name of the case says, and then a marker hides it."""
    return {
        "versioned-{}": (enabled, put_version, then),
        "versioned-{}-hides-null": (put_described, enabled, then),
        "suspended-{}": (suspended, put_described, then),
        "suspended-{}-hides-version": (enabled, put_version, suspended, then),
        "suspended-{}-hides-version-replaces-null": (put_described, enabled, put_version, suspended, then),
        "suspended-{}-hides-version-replaces-marker": (null_marker, enabled, put_version, suspended, then),
    }


DELETES: dict[str, tuple[Act, ...]] = {
    **{name.format("delete"): acts for name, acts in hidden(delete).items()},
    "versioned-delete-hides-marker": (enabled, delete, delete),
    "versioned-delete-hides-null-marker": (null_marker, enabled, delete),
    "suspended-delete-bare": (suspended, put(BARE), delete),
    "suspended-delete-replaces-marker": (null_marker, delete),
    "suspended-delete-hides-marker": (enabled, delete, suspended, delete),
    "suspended-delete-hides-marker-replaces-null": (put_described, enabled, delete, suspended, delete),
}
EXPIRATIONS = {name.format("expire"): acts for name, acts in hidden(expire_current).items()}


def of_one_version(prefix: str, turn: Act) -> dict[str, tuple[Act, ...]]:
    """What removes one version, and nothing else, when versioning has become as the name says."""
    newer = one_after_the_other(enabled, put(b"newer"))
    return {
        f"{prefix}delete-version": (enabled, delete_version(kept(put_version, turn))),
        f"{prefix}delete-null": (put_described, turn, delete_null),
        f"{prefix}delete-marker": (enabled, delete_version(kept(put_and_mark, turn))),
        f"{prefix}delete-null-marker": (null_marker, turn, delete_null),
        f"{prefix}expire-noncurrent": (enabled, put_version, newer, turn, expire_noncurrent),
        f"{prefix}expire-noncurrent-null": (put_described, newer, turn, expire_noncurrent),
        f"{prefix}expire-marker": (enabled, delete, turn, expire_marker),
        f"{prefix}expire-null-marker": (null_marker, turn, expire_marker),
    }


def kept(made: Act, then: Act) -> Act:
    """Both, and the answer of the first."""
    return lambda at: (made(at), then(at))[0]


ACTS: dict[str, tuple[Act, ...]] = {
    **{
        prefix + name: (turn, *acts)
        for prefix, turn in zip(BUCKETS, (none, enabled, suspended), strict=True)
        for name, acts in IN_EVERY_BUCKET.items()
    },
    **{name: (act,) for name, act in OBJECTS.items()},
    **UNVERSIONED,
    **DELETES,
    **EXPIRATIONS,
    **of_one_version("versioned-", enabled),
    **of_one_version("suspended-", suspended),
}


def act_out(case: str, at: Place) -> None:
    """Send the requests of the case."""
    one_after_the_other(*ACTS[case.removesuffix(BEFORE_IMAGE)])(at)
