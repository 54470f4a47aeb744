"""SNS: the query protocol. A form with `Action` names the operation; the answer is XML."""

from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from functools import partial

from bucketwire.access.credentials import KeyRing
from bucketwire.errors import CallError, InvalidRequest
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.auth import authenticate, needs_lookup, read_signed_claim
from bucketwire.gateway.body import is_large, place_among, receive_document, verify_document
from bucketwire.gateway.protocol.address import path_style
from bucketwire.gateway.protocol.faults import not_implemented, sns_fault, status_of
from bucketwire.gateway.protocol.model import load_service
from bucketwire.gateway.protocol.parse import parse_form, parse_query_input
from bucketwire.gateway.protocol.serialize import query_document
from bucketwire.gateway.request import Request
from bucketwire.gateway.services import Call, Services
from bucketwire.gateway.sns import OPERATIONS

_XML = ("content-type", "text/xml")
_NO_TOPICS = (
    "There are no topics here. The destinations are topics of Google Pub/Sub: name one in the bucket's"
    " notification configuration, as arn:gcp:pubsub::PROJECT:TOPIC"
)


def speaks_sns(request: Request, domain: str | None) -> bool:
    """Whether the request is for SNS. No operation of S3 posts to the service itself."""
    if request.raw_path != "/" or path_style("/", request.headers.get("host", ""), domain) != "/":
        return False
    return request.method == "POST" or "Action" in request.parameters


class SnsFront:
    """Answers requests in the SNS dialect."""

    def __init__(self, services: Services, keys: KeyRing, now: Callable[[], datetime]) -> None:
        self._services = services
        self._keys = keys
        self._now = now
        self._model = load_service("sns")
        self._namespace: str = self._model.metadata["xmlNamespace"]

    async def answer(self, request: Request) -> Answer:
        """The answer; raises `CallError` for a call that is refused."""
        claim = read_signed_claim(request)
        body = await self._body(request, claim.payload)
        verify_document(request, claim.payload, body)
        check = partial(authenticate, request, claim, self._keys, self._now, body)
        caller = await self._services.run(check) if needs_lookup(claim, self._keys) else check()
        if not self._services.dialect.topics_served:
            raise InvalidRequest(_NO_TOPICS, code="InvalidAction")
        form = {**request.parameters, **parse_form(body.decode("utf-8", "replace"))}
        action = form.get("Action", "")
        if action not in self._model.operation_names:
            raise InvalidRequest(f"Could not find operation {action or '(none)'}", code="InvalidAction")
        request.operation = action
        if action not in OPERATIONS:
            raise not_implemented(action)
        model, operation = self._model.operation_model(action), OPERATIONS[action]
        given = parse_query_input(model, form)
        for member in given.keys() - operation.takes.keys():
            raise not_implemented(member)
        call = Call(self._services, request, caller, "", "", given)
        output = await operation.answer(call)
        if isinstance(output, Answer):
            return output
        return Answer(200, [_XML], query_document(model, self._namespace, output, request.id))

    async def _body(self, request: Request, payload: str | None) -> bytes:
        """The form. Its signature is of all of it, so that who sends it is known behind it only."""
        async with place_among(self._services.strangers) if is_large(request) else nullcontext():
            return await receive_document(request, payload)

    def fault(self, request: Request, error: CallError) -> Answer:
        """The answer that tells an error."""
        status = status_of(error)
        document = sns_fault(
            error.code, error.message, status, namespace=self._namespace, request_id=request.id
        )
        return Answer(status, [_XML], b"" if request.method == "HEAD" else document)
