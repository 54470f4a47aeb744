"""What the headers of a request say of the object to be made, beside its bytes.

It comes back as headers, so it must be fit for that: a form, or a URL signed in advance, could have anything.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.s3_tagging import parse_tagging_header
from bucketwire.metainfo.acl import checked_acl
from bucketwire.metainfo.permission import PRIVATE

MAX_METADATA_BYTES = 2048
_STANDARD = "STANDARD"
_CONTENT_HEADERS = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-amz-website-redirect-location",
)
"""Headers that are kept as they are and given back by GET."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]*")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""What no value of a header may have: RFC 9110, section 5.5."""

TAKEN = (
    "Metadata",
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "WebsiteRedirectLocation",
    "Tagging",
    "ACL",
    "StorageClass",
)
"""The parameters that are read here."""


@dataclass(frozen=True, slots=True)
class Description:
    """What is kept of an object beside its bytes."""

    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    acl: str = PRIVATE


def read_description(headers: Mapping[str, str], given: Mapping[str, Any]) -> Description:
    """The description in the head of a request; `InvalidRequest` when it cannot be meant."""
    check_storage_class(given)
    _check_metadata(given["Metadata"])
    content_type, kept = headers.get("content-type"), _content_headers(headers)
    for name, text in {**kept, "content-type": content_type or ""}.items():
        check_value(name, text)
    return Description(
        content_type=content_type,
        headers=kept,
        metadata=given["Metadata"],
        tags=parse_tagging_header(given["Tagging"]) if "Tagging" in given else {},
        acl=checked_acl(given.get("ACL", PRIVATE)),
    )


def check_storage_class(given: Mapping[str, Any]) -> None:
    """There is one storage class."""
    if given.get("StorageClass", _STANDARD) != _STANDARD:
        raise InvalidRequest("The storage class you specified is not valid", code="InvalidStorageClass")


def check_value(name: str, text: str) -> None:
    """Raises when no header can have this value."""
    if _CONTROL.search(text) is not None:
        raise InvalidRequest(
            "The value of a header has a control character.",
            code="InvalidArgument",
            fields={"ArgumentName": name},
        )


def _content_headers(headers: Mapping[str, str]) -> dict[str, str]:
    kept = {name: headers[name] for name in _CONTENT_HEADERS if name in headers}
    if encoding := _stored_encoding(kept.pop("content-encoding", "")):
        kept["content-encoding"] = encoding
    return kept


def _stored_encoding(sent: str) -> str:
    """The codings of the object: as they were sent, but for the one that frames the body on its way."""
    codings = [coding.strip() for coding in sent.split(",")]
    stored = [coding for coding in codings if coding.lower() != "aws-chunked"]
    return sent if len(stored) == len(codings) else ", ".join(coding for coding in stored if coding)


def _check_metadata(metadata: Mapping[str, str]) -> None:
    for name, text in metadata.items():
        if _TOKEN.fullmatch(name) is None:
            raise InvalidRequest(
                "The name of a metadata header has a character that it may not have.", code="InvalidArgument"
            )
        check_value(f"x-amz-meta-{name}", text)
    size_bytes = sum(len(name) + len(text.encode()) for name, text in metadata.items())
    if size_bytes > MAX_METADATA_BYTES:
        raise InvalidRequest(
            "Your metadata headers exceed the maximum allowed metadata size",
            code="MetadataTooLarge",
            fields={"Size": str(size_bytes), "MaxSizeAllowed": str(MAX_METADATA_BYTES)},
        )
