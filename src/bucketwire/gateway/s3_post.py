"""The upload of a browser's form: POST to the bucket. The form itself says who sends it, and what is allowed.

fields -> caller by the signature of the policy -> policy -> file, as it streams in -> commit
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote, urlencode

from bucketwire.access.credentials import KeyRing
from bucketwire.blobs import BlobWriter
from bucketwire.errors import InvalidRequest
from bucketwire.event.change import Origin, Versioning
from bucketwire.event.name import Operation as Mutation
from bucketwire.gateway import auth_v2, auth_v4
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.blob_writes import removed_if_refused
from bucketwire.gateway.body import MAX_OBJECT_BYTES, Verified, place_among
from bucketwire.gateway.caller import UNSIGNED, Caller, does_not_match, find_credentials, same
from bucketwire.gateway.checksums import PREFIX, BodyDigests, Expected, read_expected
from bucketwire.gateway.described import Description, check_value, read_description
from bucketwire.gateway.form import Form
from bucketwire.gateway.post_policy import Policy, read_policy
from bucketwire.gateway.protocol.address import check_key
from bucketwire.gateway.protocol.faults import not_implemented
from bucketwire.gateway.protocol.serialize import DECLARATION
from bucketwire.gateway.protocol.xml import Element, escape_xml, malformed_xml, parse_xml
from bucketwire.gateway.request import Request
from bucketwire.gateway.s3_objects import new_object
from bucketwire.gateway.s3_tagging import object_tags
from bucketwire.gateway.services import Call, Services
from bucketwire.gateway.transport import url_of
from bucketwire.metabase.values import NewObject, StoredObject
from bucketwire.metainfo.permission import Permission

FORM_UPLOAD = "PostObject"
_METADATA = "x-amz-meta-"
_KNOWN = frozenset(
    {
        "x-amz-algorithm",
        "x-amz-credential",
        "x-amz-date",
        "x-amz-signature",
        "x-amz-storage-class",
        "x-amz-website-redirect-location",
        "x-amz-sdk-checksum-algorithm",
        "x-amz-acl",
    }
)
_PIECE_BYTES = 512 * 1024


async def post_object(
    services: Services,
    request: Request,
    sender: Caller,
    bucket: str,
    keys: KeyRing,
    now: Callable[[], datetime],
) -> Answer:
    """Store the file of the form as an object. `sender` counts where the form itself has no policy."""
    if sender.payload != UNSIGNED:
        raise not_implemented(f"x-amz-content-sha256 {sender.payload} for a form")
    form = Form(request)
    async with place_among(services.strangers):
        await form.read_fields()
    key = _key(form)
    fields = {**form.fields, "key": key, "bucket": bucket}
    signer, policy = await services.run(_authenticate, fields, keys, now)
    caller = signer or sender
    _refuse_unknown(fields)
    check_value("success_action_redirect", _redirect(fields))
    described, expected = _described(fields), read_expected(fields, (), None)
    call = Call(services, request, caller, bucket, key, {"ACL": described.acl})
    upload = _FileUpload(call, described, policy, expected)
    await services.run(call.admit)
    try:
        stored, version_id = await upload.receive(form)
        services.sweeper.wake()
    finally:  # what is committed is delivered, also when the call fails behind it
        await call.push()
    return _answer(call, fields, stored, version_id)


@dataclass(slots=True)
class _FileUpload:
    """A file on its way in: in memory while it is small, else into a blob."""

    call: Call
    described: Description
    policy: Policy | None
    expected: Expected
    size_bytes: int = 0
    writer: BlobWriter | None = None

    async def receive(self, form: Form) -> tuple[StoredObject, str | None]:
        """The object, and the version that the answer tells."""
        services, digests, pending = self.call.services, BodyDigests(self.expected), bytearray()
        try:
            async for piece in form.pieces():
                self._count(piece)
                pending += piece
                if self.size_bytes > services.settings.inline_limit_bytes and len(pending) >= _PIECE_BYTES:
                    await services.run(self._write, digests, bytes(pending))
                    pending.clear()
            if self.policy is not None:
                self.policy.check_size(self.size_bytes)
            return await services.run(self._commit, digests, bytes(pending))
        except BaseException:
            if self.writer is not None:
                await asyncio.shield(services.run(self.writer.abort))
            raise

    def _count(self, piece: bytes) -> None:
        self.size_bytes += len(piece)
        if self.policy is not None:
            self.policy.check_room(self.size_bytes)
        if self.size_bytes > MAX_OBJECT_BYTES:
            raise InvalidRequest(
                "Your proposed upload exceeds the maximum allowed size", code="EntityTooLarge"
            )

    def _write(self, digests: BodyDigests, piece: bytes) -> None:
        if self.writer is None:
            self.writer = self.call.services.blobs.writer()
        digests.update(piece)
        self.writer.write(piece)

    def _commit(self, digests: BodyDigests, rest: bytes) -> tuple[StoredObject, str | None]:
        call = self.call
        if self.writer is None and self.size_bytes <= call.services.settings.inline_limit_bytes:
            digests.update(rest)
        else:
            self._write(digests, rest)
        verified = Verified(self.size_bytes, *digests.verified(self.expected))
        bucket, origin = call.permit(Permission.WRITE), call.origin()
        if self.writer is None:
            stored = self._put(origin, new_object(call, self.described, verified, inline=rest))
        else:
            blob = self.writer.commit()
            with removed_if_refused(call.services.blobs, blob):
                stored = self._put(origin, new_object(call, self.described, verified, blob=blob))
        return stored, stored.version_id if bucket.versioning is Versioning.ENABLED else None

    def _put(self, origin: Origin, new: NewObject) -> StoredObject:
        call, objects = self.call, self.call.services.metabase.objects
        return call.committed(objects.put(call.bucket, new, call.created(Mutation.POST), origin))


def _key(form: Form) -> str:
    key = form.fields.get("key", "").replace("${filename}", form.filename)
    if not key:
        raise InvalidRequest(
            "Bucket POST must contain a field named 'key'. If it is specified, please check the order of the"
            " fields.",
            code="InvalidArgument",
            fields={"ArgumentName": "key"},
        )
    if "\0" in key:
        raise InvalidRequest("The key has a character that it may not have.", code="InvalidArgument")
    check_key(key)
    return key


def _authenticate(
    fields: Mapping[str, str], keys: KeyRing, now: Callable[[], datetime]
) -> tuple[Caller | None, Policy | None]:
    """Who signed the policy, and the policy, if the form has one."""
    if "policy" not in fields:
        if "signature" in fields or "x-amz-signature" in fields:
            raise _missing_field("policy")
        return None, None
    newer = "x-amz-signature" in fields or "x-amz-algorithm" in fields
    caller = _signed_v4(fields, keys) if newer else _signed_v2(fields, keys)
    policy = read_policy(fields["policy"])
    policy.check_fields(fields, now())
    return caller, policy


def _signed_v4(fields: Mapping[str, str], keys: KeyRing) -> Caller:
    for name in ("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"):
        if name not in fields:
            raise _missing_field(name)
    if fields["x-amz-algorithm"] != auth_v4.ALGORITHM:
        raise InvalidRequest(f"x-amz-algorithm only supports {auth_v4.ALGORITHM}", code="InvalidArgument")
    scope = auth_v4.read_scope(fields["x-amz-credential"], auth_v4.malformed_header())
    credentials = find_credentials(keys, scope.access_key)
    signature = auth_v4.sign_policy(credentials, scope, fields["policy"])
    if not same(signature, fields["x-amz-signature"]):
        raise does_not_match(scope.access_key)
    return Caller(credentials, UNSIGNED)


def _signed_v2(fields: Mapping[str, str], keys: KeyRing) -> Caller:
    for name in ("awsaccesskeyid", "signature"):
        if name not in fields:
            raise _missing_field(name)
    credentials = find_credentials(keys, fields["awsaccesskeyid"])
    if not same(auth_v2.sign_policy(credentials, fields["policy"]), fields["signature"]):
        raise does_not_match(credentials.access_key)
    return Caller(credentials, UNSIGNED)


def _refuse_unknown(fields: Mapping[str, str]) -> None:
    """A field that would change the meaning of the upload is never passed over."""
    for name in fields:
        if name.startswith("x-amz-") and name not in _KNOWN and not name.startswith((_METADATA, PREFIX)):
            raise not_implemented(name)


def _described(fields: Mapping[str, str]) -> Description:
    given: dict[str, object] = {
        "Metadata": {
            name.removeprefix(_METADATA): text for name, text in fields.items() if name.startswith(_METADATA)
        }
    }
    if "acl" in fields or "x-amz-acl" in fields:
        given["ACL"] = fields.get("acl", fields.get("x-amz-acl"))
    if "x-amz-storage-class" in fields:
        given["StorageClass"] = fields["x-amz-storage-class"]
    described = read_description(fields, given)
    return replace(described, tags=_tags(fields["tagging"])) if "tagging" in fields else described


def _tags(document: str) -> dict[str, str]:
    """The tags of a Tagging document."""
    root = parse_xml(document.encode())
    if root.name != "Tagging" or [each.name for each in root.children] != ["TagSet"]:
        raise malformed_xml()
    return object_tags({"TagSet": [_tag(each) for each in root.children[0].children]})


def _tag(element: Element) -> dict[str, str]:
    tag = {each.name: each.text for each in element.children}
    if element.name != "Tag" or tag.keys() != {"Key", "Value"}:
        raise malformed_xml()
    return tag


def _answer(call: Call, fields: Mapping[str, str], stored: StoredObject, version_id: str | None) -> Answer:
    etag = f'"{stored.etag}"'
    where = url_of(call.request, call.services.settings.trusted_proxies).removesuffix("/")
    location = f"{where}/{quote(call.key)}"
    headers = [("etag", etag)]
    if version_id is not None:
        headers.append(("x-amz-version-id", version_id))
    if redirect := _redirect(fields):
        told = urlencode({"bucket": call.bucket, "key": call.key, "etag": etag}, quote_via=quote)
        return Answer(303, [*headers, ("location", f"{redirect}{'&' if '?' in redirect else '?'}{told}")])
    headers.append(("location", location))
    status = fields.get("success_action_status")
    if status != "201":
        return Answer(200 if status == "200" else 204, headers)
    members = {"Location": location, "Bucket": call.bucket, "Key": call.key, "ETag": etag}
    inner = "".join(f"<{name}>{escape_xml(text)}</{name}>" for name, text in members.items())
    document = f"{DECLARATION}<PostResponse>{inner}</PostResponse>".encode()
    return Answer(201, [*headers, ("content-type", "application/xml")], document)


def _redirect(fields: Mapping[str, str]) -> str:
    """Where the answer sends the browser; empty if it does not."""
    url = fields.get("success_action_redirect", fields.get("redirect", ""))
    return url if url.startswith(("http://", "https://")) else ""


def _missing_field(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"Bucket POST must contain a field named '{name}'. If it is specified, please check the order of the"
        " fields.",
        code="InvalidArgument",
        fields={"ArgumentName": name},
    )
