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
from golden.cases import CHANGES, DESCRIBED, VERSIONED
from golden.pinned import Pin

SEVEN = b"7 bytes"
DESCRIPTION = {"Metadata": VERSIONED.metadata, "Tagging": "team=blue"}
TAGS = {"TagSet": [{"Key": "team", "Value": "blue"}]}
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
    headers |= {"content-type": "image/jpg", "x-amz-tagging": "team=blue&env=test"}
    sent = {name: text.encode().decode("latin-1") for name, text in headers.items()}
    url = f"{at.url}/{at.bucket}/{quote(at.key)}"
    check(urllib3.request("PUT", url, body=SEVEN, headers=sent))


def post(at: Place) -> None:
    """A form of a browser, as boto3 signs it."""
    form = at.s3.generate_presigned_post(at.bucket, at.key)
    content, kind = encode_multipart_formdata([*form["fields"].items(), ("file", ("name", b"hello"))])
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
put_version = put(SEVEN, **DESCRIPTION)


def copy(at: Place) -> None:
    at.s3.put_object(Bucket=at.bucket, Key="source", Body=SEVEN, **DESCRIPTION)
    at.s3.copy_object(**at.named, CopySource={"Bucket": at.bucket, "Key": "source"})


def multipart(at: Place) -> None:
    upload = {**at.named, "UploadId": at.s3.create_multipart_upload(**at.named, **DESCRIPTION)["UploadId"]}
    etag = at.s3.upload_part(**upload, PartNumber=1, Body=SEVEN)["ETag"]
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


put_and_mark = one_after_the_other(put_version, delete)
expire_current = expire(Expiration={"Days": 1})
hide_a_version = (put_described, enabled, put_version, suspended, delete)
ACTS: dict[str, tuple[Act, ...]] = {
    "put": (put(b"x" * 64908),),
    "put-empty": (put(b""),),
    "put-odd-key": (put(b"hello"),),
    "put-control-key": (put(b"hello"),),
    "put-huge": (put(b"hello"),),
    "put-described": (put_described,),
    "post": (post,),
    "delete": (put(SEVEN), delete),
    "delete-described": (put_described, delete),
    "delete-before-image": (put_described, delete),
    "delete-missing": (delete,),
    "versioned-put": (enabled, put_version),
    "versioned-copy": (enabled, copy),
    "versioned-multipart": (enabled, multipart),
    "versioned-delete-marker": (enabled, put_and_mark),
    "versioned-delete-marker-before-image": (enabled, put_and_mark),
    "versioned-delete-version": (enabled, delete_version(put_version)),
    "versioned-delete-null": (put_described, enabled, delete_null),
    "versioned-delete-the-marker": (enabled, delete_version(put_and_mark)),
    "suspended-put": (suspended, put_described),
    "suspended-delete-of-null": (suspended, put(SEVEN), delete),
    "suspended-delete-of-null-described": (suspended, put_described, delete),
    "suspended-delete-of-null-marker": (suspended, put(SEVEN), delete, delete),
    "suspended-delete-without-null": (enabled, put_version, suspended, delete),
    "suspended-delete-hides-a-version": hide_a_version,
    "suspended-delete-hides-a-version-before-image": hide_a_version,
    "suspended-delete-of-null-marker-before-image": (suspended, put(SEVEN), delete, delete),
    "suspended-delete-version": (
        enabled,
        delete_version(lambda at: (put_version(at), suspended(at))[0]),
    ),
    "suspended-delete-the-null": (suspended, put_described, delete_null),
    "acl-put": (enabled, put_version, put_acl),
    "tagging-put": (enabled, put_version, put_tags),
    "tagging-delete": (enabled, put_version, delete_tags),
    "expire-unversioned": (put(SEVEN), expire_current),
    "expire-current": (enabled, put_version, expire_current),
    "expire-noncurrent": (
        enabled,
        put_version,
        put(b"newer"),
        expire(NoncurrentVersionExpiration={"NoncurrentDays": 1}),
    ),
    "expire-marker": (
        enabled,
        delete,
        expire(Expiration={"ExpiredObjectDeleteMarker": True}),
    ),
}


def act_out(case: str, at: Place) -> None:
    """Send the requests of the case."""
    assert ACTS.keys() == CHANGES.keys()
    one_after_the_other(*ACTS[case])(at)
