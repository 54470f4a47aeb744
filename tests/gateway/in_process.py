"""The application called without a socket: for requests that no client library would send."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningCredentials

from bucketwire.access.credentials import Credentials, KeyRing
from bucketwire.blobs import Blobs
from bucketwire.config import GatewaySettings
from bucketwire.gateway.app import create_app
from bucketwire.gateway.readiness import ReadyState
from bucketwire.gateway.sweep import remove_dropped
from bucketwire.metabase import open_metabase
from gateway.running import OTHER, ROOT

HOST = "gateway.test"
Headers = list[tuple[str, str]]


@dataclass
class Answered:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str | None:
        """The code of the error, if it is one."""
        return self.field("Code")

    def field(self, name: str) -> str | None:
        """The text of an element of the document."""
        if not self.body.startswith(b"<?xml"):
            return None
        found = [each for each in ET.fromstring(self.body).iter() if each.tag.rpartition("}")[2] == name]
        return found[0].text if found else None


class InProcess:
    """A gateway over a folder, in the aws dialect and without test events unless told otherwise."""

    def __init__(
        self, folder: Path, dialect: str = "aws", ready: Any = ReadyState, **settings_given: Any
    ) -> None:
        self.metabase = open_metabase(f"sqlite:///{folder}/metabase.db")
        self.objects = folder / "objects"
        self.blobs = Blobs(f"file://{self.objects}")
        chosen = {"test_events": False, **settings_given}
        settings = GatewaySettings(HOST, 80, folder, "", dialect, "us-east-1", **chosen)
        self.app = create_app(settings, self.metabase, KeyRing([ROOT, OTHER]), self.blobs, ready)
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        self._loop.run_until_complete(self.app._services.sweeper.stop())
        self.app._services.trials.close()
        self.app._services.threads.shutdown()
        self.app._services.copy_threads.shutdown()
        self._loop.close()
        self.metabase.close()

    def sweep(self) -> None:
        """Remove the blobs that were dropped, now."""
        remove_dropped(self.metabase.objects, self.blobs, 100)

    def send(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | Sequence[bytes] = b"",
        *,
        disconnects: bool = False,
        peer: str = "192.0.2.7",
    ) -> Answered:
        """Send a request as it is. `disconnects`: the client goes away behind the last piece of the body."""
        path, _, query = target.partition("?")
        pieces = [body] if isinstance(body, bytes) else list(body)
        messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        if disconnects:
            messages.append({"type": "http.disconnect"})
        else:
            messages[-1]["more_body"] = False
        scope = {
            "type": "http",
            "method": method,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), text.encode("latin-1")) for name, text in headers],
            "client": (peer, 4711),
        }
        return self._loop.run_until_complete(self._answered(scope, messages))

    def signed(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        service: str = "s3",
        who: Credentials = ROOT,
    ) -> Answered:
        """Send a request that ROOT, or another one, has signed."""
        return self.send(
            method, target, signed_headers(method, target, body, headers, service, who=who), body
        )

    async def _answered(self, scope: dict[str, Any], messages: list[dict[str, Any]]) -> Answered:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        headers = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        return Answered(sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:]))


def signed_headers(
    method: str,
    target: str,
    body: bytes,
    headers: Iterable[tuple[str, str]] = (),
    service: str = "s3",
    payload: str | None = None,
    who: Credentials = ROOT,
) -> Headers:
    """The headers of a request that was signed by botocore; `payload` stands for the body if given."""
    request = AWSRequest(method, f"http://{HOST}{target}", data=body, headers=dict(headers))
    kind = S3SigV4Auth if service == "s3" else SigV4Auth
    signer = kind(SigningCredentials(who.access_key, who.secret_key), service, "eu-north-1")
    if payload is not None:
        signer.payload = lambda _request: payload
    signer.add_auth(request)
    result = [(name, str(text)) for name, text in request.headers.items()]
    return [*result, ("Host", HOST), ("Content-Length", str(len(body)))]
