"""The ASGI application: S3 and SNS on one port, and the gateway's own pages below `/-/`.

    scope -> Request -> S3Front or SnsFront -> Answer -> send, one log line, one count

Nothing here blocks: what does runs in the gateway's own threads.
"""

import asyncio
import os
import random
import time
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import UTC, datetime
from typing import cast

import msgspec

from bucketwire.access.credentials import KeyRing
from bucketwire.blobs import Blobs
from bucketwire.config import GatewaySettings
from bucketwire.errors import CallError, Unavailable
from bucketwire.event.dialect import dialect_named
from bucketwire.event.installation import Installation
from bucketwire.gateway.answer import Answer
from bucketwire.gateway.backpressure import Backpressure
from bucketwire.gateway.metrics import CONTENT_TYPE, metrics_page, observe_request
from bucketwire.gateway.metrics_access import METRICS_REFUSED, may_see_metrics
from bucketwire.gateway.protocol.address import path_style
from bucketwire.gateway.protocol.faults import INTERNAL_CODE, INTERNAL_MESSAGE, slow_down
from bucketwire.gateway.push import Pushes, SynchronousTopics
from bucketwire.gateway.readiness import ReadyState
from bucketwire.gateway.request import Receive, Request, Scope, Send
from bucketwire.gateway.s3 import S3Front
from bucketwire.gateway.services import Services
from bucketwire.gateway.sns_front import SnsFront, speaks_sns
from bucketwire.gateway.sweep import BlobSweeper
from bucketwire.gateway.user_names import UserNames
from bucketwire.log import get_logger
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.queue_limit import QueueLimits
from bucketwire.metainfo.routing import Router
from bucketwire.metainfo.test_event import Trials
from bucketwire.publish import open_publisher
from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers

THREADS = 32
COPY_THREADS = 8
STRANGERS = 64
"""Documents and forms that are received at once without a signature."""
_OWN_PAGES = "/-/"
_SMALL_REST_BYTES = 64 * 1024


def create_app(
    settings: GatewaySettings,
    metabase: Metabase,
    keys: KeyRing,
    blobs: Blobs,
    ready: Callable[[], ReadyState],
) -> "GatewayApp":
    """The application. `ready` tells whether writes should come here now."""
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gateway")
    dialect = dialect_named(settings.dialect)
    installation = Installation(dialect, settings.system_uuid or metabase.identity(), settings.system_name)
    connections = Connections(private_allowed=not settings.forbid_private_endpoints)
    services = Services(
        settings=settings,
        dialect=dialect,
        metabase=metabase,
        blobs=blobs,
        sweeper=BlobSweeper(metabase.objects, blobs, threads),
        threads=threads,
        copy_threads=ThreadPoolExecutor(COPY_THREADS, thread_name_prefix="copy"),
        lanes=asyncio.Semaphore(THREADS // 2),
        strangers=asyncio.Semaphore(STRANGERS),
        names=UserNames(metabase.users),
        synchronous=SynchronousTopics(metabase.topics, dialect),
        pushes=Pushes(
            Router(metabase, installation),
            Publishers(open_publisher, connections),
            settings.push_deadline_seconds,
        ),
        trials=Trials(connections),
        backpressure=Backpressure(
            metabase, dialect, QueueLimits(settings.queue_limit_bytes, settings.queue_policy)
        ),
        host_id=b64encode(os.urandom(48)).decode(),
    )
    for root in keys.fixed:
        services.names.learn(root)
    return GatewayApp(services, keys, ready)


MAX_UNDER_WAY = 512
"""Requests answered at once: each may hold a piece of a body in memory."""


class GatewayApp:
    """The ASGI callable."""

    def __init__(self, services: Services, keys: KeyRing, ready: Callable[[], ReadyState]) -> None:
        self._services = services
        self._ready = ready
        self._under_way = 0
        self._one_metrics_page = asyncio.Lock()
        self._s3 = S3Front(services, keys, _now)
        self._sns = SnsFront(services, keys, _now)
        self._log = get_logger("gateway").bind()
        self._random = random.Random(os.urandom(16))  # noqa: S311 - it names requests, and guards nothing
        self._common_headers = [(b"x-amz-id-2", services.host_id.encode()), (b"server", b"Bucketwire")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(Request(scope, receive, self._new_request_id()), send)

    def _new_request_id(self) -> str:
        return f"{self._random.getrandbits(64):016X}"

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._services.sweeper.wake()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._services.sweeper.stop()
        self._services.pushes.close()
        self._services.trials.close()
        self._services.threads.shutdown(wait=False)
        self._services.copy_threads.shutdown(wait=False)
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, request: Request, send: Send) -> None:
        started = time.perf_counter()
        if request.raw_path.startswith(_OWN_PAGES) and not self._names_bucket(request):
            await self._send(request, await self._own_page(request), send)
            return
        self._under_way += 1
        try:
            answer, problem = await self._answer(request)
            await self._send(request, answer, send)
        finally:
            self._under_way -= 1
        seconds = time.perf_counter() - started
        observe_request(request.operation, answer.status, seconds)
        self._log_request(request, answer, seconds, problem)

    def _names_bucket(self, request: Request) -> bool:
        """Whether a bucket stands in the host, so that the path is a key."""
        path, host = request.raw_path, request.headers.get("host", "")
        return path_style(path, host, self._services.settings.domain) != path

    def _log_request(
        self, request: Request, answer: Answer, seconds: float, problem: Exception | None
    ) -> None:
        fields = {
            "method": request.method,
            "operation": request.operation,
            "status": answer.status,
            "milliseconds": round(seconds * 1000, 2),
            "request_id": request.id,
        }
        if problem is None:
            self._log.info("request", **fields)
        else:
            self._log.error("request", exc_info=problem, **fields)

    def _refuse_too_many(self) -> None:
        if self._under_way > MAX_UNDER_WAY:
            raise slow_down()

    async def _answer(self, request: Request) -> tuple[Answer, Exception | None]:
        """The answer, and the exception behind it if it was not foreseen."""
        front: S3Front | SnsFront = self._s3
        try:
            self._refuse_too_many()
            front = self._sns if speaks_sns(request, self._services.settings.domain) else self._s3
            return await front.answer(request), None
        except CallError as error:
            return _with_retry(front.fault(request, error), error), None
        except Exception as problem:  # noqa: BLE001 - the client is told nothing, the log all
            return front.fault(request, CallError(INTERNAL_MESSAGE, code=INTERNAL_CODE)), problem

    async def _send(self, request: Request, answer: Answer, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": self._headers(request, answer),
            }
        )
        if answer.stream is None:
            await send({"type": "http.response.body", "body": answer.body})
        else:
            await _send_stream(request, answer.stream, send)

    def _headers(self, request: Request, answer: Answer) -> list[tuple[bytes, bytes]]:
        headers = [(name.encode(), text.encode()) for name, text in answer.headers]
        headers.append((b"x-amz-request-id", request.id.encode()))
        headers += self._common_headers
        if answer.stream is None and request.method != "HEAD" and not _has_length(answer):
            headers.append((b"content-length", str(len(answer.body)).encode()))
        if _leaves_a_rest(request):
            headers.append((b"connection", b"close"))
        return headers

    async def _own_page(self, request: Request) -> Answer:
        match request.raw_path.removeprefix(_OWN_PAGES):
            case "live":
                return Answer(200, [("content-type", "application/json")], b'{"live":true}')
            case "ready":
                return await self._ready_page()
            case "metrics":
                return await self._metrics_page(request)
            case _:
                return Answer(404, [("content-type", "application/json")], b'{"error":"no such page"}')

    async def _metrics_page(self, request: Request) -> Answer:
        """Names of topics and tenants stand there, so it is not for the clients of the store."""
        if not may_see_metrics(request, self._services.settings.metrics_token):
            return Answer(403, [("content-type", "text/plain")], METRICS_REFUSED)
        self._under_way += 1
        try:
            self._refuse_too_many()
            async with self._one_metrics_page:
                page = await asyncio.to_thread(metrics_page, self._services.metabase)
        except Unavailable as error:
            return _with_retry(Answer(503, [("content-type", "text/plain")], f"{error}\n".encode()), error)
        finally:
            self._under_way -= 1
        return Answer(200, [("content-type", CONTENT_TYPE)], page)

    async def _ready_page(self) -> Answer:
        # Not in the threads of requests, which may wait for the metabase.
        state = await asyncio.to_thread(self._ready)
        status = 200 if state.reason is None else 503
        return Answer(status, [("content-type", "application/json")], msgspec.json.encode(state.page()))


async def _send_stream(request: Request, stream: AsyncIterator[bytes], send: Send) -> None:
    """Send piece after piece, until the end or until the client has gone."""
    gone = asyncio.ensure_future(_client_gone(request))
    try:
        async with aclosing(cast("AsyncGenerator[bytes, None]", stream)) as pieces:
            async for piece in pieces:
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()


async def _client_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _has_length(answer: Answer) -> bool:
    return answer.status in {204, 304} or any(name == "content-length" for name, _ in answer.headers)


def _leaves_a_rest(request: Request) -> bool:
    """Whether the connection must end, since bytes of the body may still come, or never will."""
    if not request.has_body or request.body_finished:
        return False
    waits = "expect" in request.headers and not request.body_touched
    return waits or (request.content_length or _SMALL_REST_BYTES + 1) > _SMALL_REST_BYTES


def _with_retry(answer: Answer, error: CallError) -> Answer:
    if isinstance(error, Unavailable) and error.retry_after_seconds is not None:
        answer.headers.append(("retry-after", str(max(1, round(error.retry_after_seconds)))))
    return answer


def _now() -> datetime:
    return datetime.now(UTC)
