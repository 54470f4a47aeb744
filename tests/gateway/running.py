"""A gateway in this process, on a free port, with a SQLite metabase; and boto3 clients that talk to it."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import uvicorn
from botocore.config import Config

from bucketwire.access.credentials import Credentials, KeyRing
from bucketwire.blobs import Blobs
from bucketwire.config import GatewaySettings
from bucketwire.event.change import decode_change
from bucketwire.gateway.app import create_app
from bucketwire.gateway.readiness import ReadyState
from bucketwire.gateway.serve import listen, server_config
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.users import lookup_in

ROOT = Credentials("AKROOT", "root-secret-key", "root-id", "root")
OTHER = Credentials("AKOTHER", "other-secret-key", "other-id", "other")


@dataclass
class RunningGateway:
    """What a test may look at."""

    port: int
    metabase: Metabase
    blobs: Blobs
    objects: Path
    unready: list[str]
    """Reasons not to be ready; none of them: ready."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, service: str, credentials: Credentials = ROOT, **config: Any) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=credentials.access_key,
            aws_secret_access_key=credentials.secret_key,
            config=Config(
                retries={"total_max_attempts": 1},
                signature_version="s3v4" if service == "s3" else "v4",
                **config,
            ),
        )

    def changes(self) -> int:
        """How many changes were committed."""
        return sum(1 for _ in self._read_changes())

    def operations(self, bucket: str) -> list[str]:
        """What the changes in a bucket were, in order."""
        return [
            each.operation for each in map(decode_change, self._read_changes()) if each.bucket.name == bucket
        ]

    def _read_changes(self) -> Iterator[bytes]:
        stream = self.metabase.changes
        start = stream.start()
        for part in stream.split(start, stream.head(start, 1_000_000), 1):
            yield from stream.read(part)


def run_gateway(folder: Path, dialect: str, **settings_given: Any) -> Iterator[RunningGateway]:
    metabase = open_metabase(f"sqlite:///{folder}/metabase.db")
    blobs = Blobs(f"file://{folder}/objects")
    chosen = {"test_events": False, **settings_given}
    settings = GatewaySettings("127.0.0.1", 0, folder, "", dialect, "us-east-1", **chosen)
    unready: list[str] = []
    app = create_app(
        settings,
        metabase,
        KeyRing([ROOT, OTHER], lookup_in(metabase.users)),
        blobs,
        lambda: ReadyState(unready[0] if unready else None),
    )
    with listen("127.0.0.1", 0) as bound:
        server = uvicorn.Server(server_config(app, settings.tls_certificate, settings.tls_key))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        yield RunningGateway(bound.getsockname()[1], metabase, blobs, folder / "objects", unready)
        server.should_exit = True
        thread.join()
    metabase.close()
