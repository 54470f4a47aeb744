"""Runs the gateway on a socket until it is told to stop."""

import resource
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import uvicorn

from bucketwire.access.credentials import KeyRing
from bucketwire.blobs import Blobs
from bucketwire.config import GatewaySettings
from bucketwire.errors import ConfigError
from bucketwire.gateway.app import create_app
from bucketwire.gateway.connection import GatewayProtocol
from bucketwire.gateway.readiness import ReadyState
from bucketwire.metabase.base import Metabase

MAX_FILES = 65_536
"""Connections and blobs open at once, where the machine allows it."""
_BACKLOG = 1024
_STOP_SECONDS = 3
_KEEP_ALIVE_SECONDS = 60


def serve(
    settings: GatewaySettings,
    metabase: Metabase,
    keys: KeyRing,
    blobs: Blobs,
    ready: Callable[[], ReadyState],
    *,
    listening: Callable[[int], None] = lambda _port: None,
) -> None:
    """Serve until SIGTERM or SIGINT; requests under way get a few seconds to end.

    `listening` is told the port once connections are accepted: it differs from the settings' when that is 0.
    """
    _allow_files()
    check_tls(settings.tls_certificate, settings.tls_key)
    with listen(settings.host, settings.port) as bound:
        app = create_app(settings, metabase, keys, blobs, ready)
        server = uvicorn.Server(server_config(app, settings.tls_certificate, settings.tls_key))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _stop_quietly)
        listening(bound.getsockname()[1])
        server.run(sockets=[bound])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; `ConfigError` when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as problem:
        raise ConfigError(f"cannot listen on {host} port {port}: {problem.strerror}") from problem


def _allow_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(MAX_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def check_tls(certificate: Path | None, key: Path | None) -> None:
    """`ConfigError` unless there is a certificate with its key, or neither."""
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise ConfigError("give both --tls-certificate and --tls-key, or none")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, lambda: "")
    except (OSError, ValueError) as problem:
        raise ConfigError(
            f"--tls-certificate and --tls-key must be a certificate and its key without a password: {problem}"
        ) from problem


def server_config(app: object, certificate: Path | None = None, key: Path | None = None) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=GatewayProtocol,
        loop="uvloop",
        ws="none",
        lifespan="on",
        access_log=False,
        proxy_headers=False,
        log_config=None,
        server_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )


def _stop_quietly(_number: int, _frame: object) -> None:
    """Nothing is left to do: uvicorn has stopped, and repeats the signal for whoever had it before."""
