"""Ports for servers that are ended and started again in a test."""

import socket
from contextlib import closing, suppress
from pathlib import Path
from random import SystemRandom

_GIVEN_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST = 10_240
_TRIES = 1_000


def lasting_port() -> int:
    """A port of this machine that nobody listens on, and that the system gives to nobody by itself.

    One of those that it gives out may be another program's when a server that was ended wants it again.
    """
    for _ in range(_TRIES):
        port = SystemRandom().randrange(_FIRST, _first_given_out())
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def _first_given_out() -> int:
    try:
        return int(_GIVEN_OUT.read_text().split()[0])
    except (OSError, ValueError):
        return 32_768
