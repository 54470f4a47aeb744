"""S3: from a request to the operation it means, and back. Signature first, body last."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from bucketwire.access.credentials import KeyRing
from bucketwire.errors import CallError, InvalidRequest
from bucketwire.gateway import (
    s3_acl,
    s3_attributes,
    s3_bucket_documents,
    s3_buckets,
    s3_complete,
    s3_copy,
    s3_deletes,
    s3_explain,
    s3_lifecycle,
    s3_listing,
    s3_multipart,
    s3_notifications,
    s3_objects,
    s3_parts,
    s3_reads,
    s3_tagging,
    s3_versions,
)
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.auth import authenticate, needs_lookup, read_claim
from bucketwire.gateway.body import (
    LARGE_DOCUMENT_BYTES,
    LISTS,
    check_payload_name,
    is_large,
    place_among,
    receive_document,
    verify_document,
)
from bucketwire.gateway.protocol.address import locate, path_style
from bucketwire.gateway.protocol.faults import not_implemented, s3_fault, status_of
from bucketwire.gateway.protocol.model import load_service
from bucketwire.gateway.protocol.parse import RestPlan, rest_plan
from bucketwire.gateway.protocol.routing import Routes
from bucketwire.gateway.protocol.serialize import Output, OutputPlan, rest_output_plan
from bucketwire.gateway.request import Request
from bucketwire.gateway.s3_post import FORM_UPLOAD, post_object
from bucketwire.gateway.services import Call, Operation, Services
from bucketwire.metainfo.permission import Permission

_XML = ("content-type", "application/xml")
_SHORT_LIST = 50
_URL_ENCODED = ("x-amz-copy-source", "x-amz-tagging")
OPERATIONS: Mapping[str, Operation] = {
    **s3_acl.OPERATIONS,
    **s3_attributes.OPERATIONS,
    **s3_bucket_documents.OPERATIONS,
    **s3_buckets.OPERATIONS,
    **s3_complete.OPERATIONS,
    **s3_copy.OPERATIONS,
    **s3_deletes.OPERATIONS,
    **s3_explain.OPERATIONS,
    **s3_lifecycle.OPERATIONS,
    **s3_listing.OPERATIONS,
    **s3_multipart.OPERATIONS,
    **s3_notifications.OPERATIONS,
    **s3_objects.OPERATIONS,
    **s3_parts.OPERATIONS,
    **s3_reads.OPERATIONS,
    **s3_tagging.OPERATIONS,
    **s3_versions.OPERATIONS,
}


@dataclass(frozen=True, slots=True)
class _Built:
    """An operation with its plans."""

    operation: Operation
    input: RestPlan
    output: OutputPlan


class S3Front:
    """Answers requests in the S3 dialect."""

    def __init__(self, services: Services, keys: KeyRing, now: Callable[[], datetime]) -> None:
        self._services = services
        self._keys = keys
        self._now = now
        model = load_service("s3")
        self._routes = Routes(model)
        self._built = {name: _build(model, name) for name in OPERATIONS}

    async def answer(self, request: Request) -> Answer:
        """The answer; raises `CallError` for a call that is refused."""
        claim = read_claim(request)
        path = path_style(request.raw_path, request.headers.get("host", ""), self._services.settings.domain)
        check = partial(authenticate, request, claim, self._keys, self._now, path=path)
        caller = await self._services.run(check) if needs_lookup(claim, self._keys) else check()
        self._services.names.learn(caller.credentials)
        check_payload_name(caller.payload)
        address = locate(path)
        request.operation = self._routes.operation(
            request.method, address, request.parameters, request.headers
        )
        if request.operation == FORM_UPLOAD:
            bucket = address.bucket or ""
            return await post_object(self._services, request, caller, bucket, self._keys, self._now)
        built = self._built.get(request.operation)
        if built is None:
            raise not_implemented(request.operation)
        given = built.input.parse(request.headers, request.parameters)
        _refuse_unknown(built, given)
        _refuse_latin1(request, built.input)
        call = Call(self._services, request, caller, address.bucket or "", address.key or "", given)
        if not built.input.streaming:
            given.update(await self._read_document(built.input, call))
        elif caller.credentials is None:
            await self._services.run(call.permit, Permission.WRITE)  # before any of its bytes are taken
        try:
            reply = await built.operation.answer(call)
        finally:  # what is committed is delivered, also when the call fails behind it
            await call.push()
        return reply if isinstance(reply, Answer) else await self._write(built.output, reply)

    async def _read_document(self, plan: RestPlan, call: Call) -> dict[str, Any]:
        """What the body says."""
        document = await self._document(call)
        read = partial(_read, plan, call, document)
        return await self._services.run(read) if len(document) > LARGE_DOCUMENT_BYTES else read()

    async def _document(self, call: Call) -> bytes:
        """The body. A large one is taken only from who may write; without a signature, few are at once."""
        request, signed = call.request, call.caller.credentials is not None
        if is_large(request) and (request.operation in LISTS or not signed):
            await self._services.run(call.permit, Permission.WRITE)
        known = signed or not request.has_body
        async with nullcontext() if known else place_among(self._services.strangers):
            return await receive_document(request, call.caller.payload)

    async def _write(self, plan: OutputPlan, output: Output) -> Answer:
        write = partial(_answer, plan, output)
        return await self._services.run(write) if _is_long(output) else write()

    def fault(self, request: Request, error: CallError) -> Answer:
        """The answer that tells an error."""
        document = s3_fault(
            error.code,
            error.message,
            error.fields,
            resource=request.raw_path,
            request_id=request.id,
            host_id=self._services.host_id,
        )
        headers = [_XML, *error.headers.items()]
        return Answer(status_of(error), headers, b"" if request.method == "HEAD" else document)


def _build(model: Any, name: str) -> _Built:
    operation = model.operation_model(name)
    return _Built(OPERATIONS[name], rest_plan(operation), rest_output_plan(operation))


def _refuse_unknown(built: _Built, given: dict[str, Any]) -> None:
    """A parameter that would change the meaning of the call is never passed over."""
    takes = built.operation.takes
    for member, value in given.items():
        only = takes.get(member, frozenset())
        if only is not None and (not only or value not in only):
            raise not_implemented(built.input.wire_name(member))


def _refuse_latin1(request: Request, plan: RestPlan) -> None:
    """Text that is only kept is read as Latin-1 where it is no UTF-8; what names a key or a tag is not."""
    for name in _URL_ENCODED:
        if name in plan.headers and not request.is_utf8(name):
            raise InvalidRequest(
                f"{name} is not URL-encoded UTF-8",
                code="InvalidArgument",
                fields={"ArgumentName": name, "ArgumentValue": request.headers[name]},
            )


def _read(plan: RestPlan, call: Call, document: bytes) -> dict[str, Any]:
    verify_document(call.request, call.caller.payload, document)
    return plan.parse_document(document)


def _is_long(output: Output) -> bool:
    """Whether to write the answer takes so long that others would wait for it."""
    return sum(_listed(value) for _, value in output.items()) > _SHORT_LIST


def _listed(value: Any) -> int:
    """How many elements the lists have."""
    if isinstance(value, dict):
        return sum(map(_listed, value.values()))
    return len(value) if isinstance(value, list) else 0


def _answer(plan: OutputPlan, output: Output) -> Answer:
    headers, body = plan.header_list(output), plan.body(output)
    if body:
        headers.append(_XML)
    return Answer(plan.status, headers, body)
