"""Connections to one HTTP(S) peer, and the requests in flight on them: libcurl's multi, with handles that are
used again. It serves one thread at a time.

    request = client.start(url, headers, body)
    client.ended()            those that have ended, each with libcurl's error, 0 if there is none
    client.release(request)   after its answer was read; before, it closes the request's connection

Where private networks are forbidden, the address of each connection is checked as its socket is made, after
the name was looked up, so a name that changes its mind gains nothing.
"""

import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pycurl

from bucketwire import __version__
from bucketwire.publish.guard import forbidden
from bucketwire.publish.http_request import Peer
from bucketwire.publish.pem_files import trust

USER_AGENT = f"bucketwire/{__version__}"
IN_FLIGHT = 64
"""Requests, and so connections, open at once."""
ANSWER_LIMIT_BYTES = 64 * 1024
"""An answer's body is thrown away; one longer than this is not even read."""
CONNECT_SECONDS = 4.0
"""For the look-up of the name, the connection and the TLS handshake together; less than a retry may take."""

_BLIND_WAIT_SECONDS = 0.001
_CLOSE_SECONDS = 0.5
_CA_CACHE_TIMEOUT = 321
"""CURLOPT_CA_CACHE_TIMEOUT, for which pycurl has no name."""


class HttpClient:
    """Up to `IN_FLIGHT` requests at once to `peer`. `UnusableFile` if its authorities are in one."""

    def __init__(
        self, peer: Peer, connect_seconds: float = CONNECT_SECONDS, *, private_allowed: bool = True
    ) -> None:
        if peer.ca_location is not None:  # libcurl would find out only after it has called the peer
            trust(peer.ca_location)
        self.refused = False
        """Whether a connection was not made because the peer is in a private network."""
        self._peer = peer
        self._connect_seconds = connect_seconds
        self._private_allowed = private_allowed
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, IN_FLIGHT)
        self._idle: list[pycurl.Curl] = []
        self._closed = False

    def start(self, url: str, headers: Sequence[str], body: bytes) -> pycurl.Curl:
        """Post; `url` and `headers` replace all that an earlier request on the same handle had."""
        request = self._idle.pop() if self._idle else self._new_request()
        request.setopt(pycurl.URL, url)
        request.setopt(pycurl.HTTPHEADER, headers)
        request.setopt(pycurl.POSTFIELDS, body)
        self._multi.add_handle(request)
        return request

    def ended(self) -> Iterator[tuple[pycurl.Curl, int]]:
        """Read and write what can be, then give the requests that are at their end."""
        self._multi.perform()
        _, answered, failed = self._multi.info_read(IN_FLIGHT)
        for request in answered:
            yield request, pycurl.E_OK
        for request, error, _ in failed:
            yield request, error

    def release(self, request: pycurl.Curl) -> None:
        """Keep the handle for another request, without the body that it holds."""
        self._multi.remove_handle(request)
        request.setopt(pycurl.POSTFIELDS, b"")
        self._idle.append(request)

    def wait(self, in_flight: int, seconds: float) -> None:
        """Block until a socket is ready, libcurl wants its turn, or the time is over.

        select() cannot see a socket numbered 1024 or above, nor a name that is being looked up: while there
        is a request of this kind, look again soon instead.
        """
        readable, writable, _ = self._multi.fdset()
        if len({*readable, *writable}) < in_flight:
            time.sleep(min(seconds, _BLIND_WAIT_SECONDS))
            return
        turn_ms = self._multi.timeout()
        self._multi.select(seconds if turn_ms < 0 else min(seconds, turn_ms / 1000))

    def close(self) -> None:
        """Close the connections, without waiting, as libcurl would, for a host name still being looked up."""
        if self._closed:
            return
        self._closed = True
        for request in self._idle:
            request.close()
        self._idle.clear()
        closing = threading.Thread(target=self._multi.close, name="http-client-close", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)

    def _new_request(self) -> pycurl.Curl:
        """A handle with all that is the same for each request."""
        request = pycurl.Curl()
        request.setopt(pycurl.PATH_AS_IS, 1)
        request.setopt(pycurl.POST, 1)
        request.setopt(pycurl.NOSIGNAL, 1)
        request.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        request.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        request.setopt(pycurl.PROXY, "")
        request.setopt(pycurl.FOLLOWLOCATION, 0)
        request.setopt(pycurl.USERAGENT, USER_AGENT)
        request.setopt(pycurl.WRITEFUNCTION, _throw_away)
        request.setopt(pycurl.MAXFILESIZE, ANSWER_LIMIT_BYTES)
        request.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(self._connect_seconds * 1000)))
        if not self._private_allowed:
            request.setopt(pycurl.OPENSOCKETFUNCTION, self._open_public_socket)
            request.setopt(pycurl.SOCKOPTFUNCTION, _keep_to_this_program)
        _trust(request, self._peer)
        return request

    def _open_public_socket(self, _: int, address: Any) -> socket.socket | int:
        family, kind, protocol, place = address
        if forbidden(place[0]):
            self.refused = True
            return int(pycurl.SOCKET_BAD)
        return _Socket(family, kind, protocol)


class _Socket(socket.socket):
    """pycurl takes a duplicate and drops this one, which Python would complain of as not closed."""

    def __del__(self) -> None:
        self.close()


def _keep_to_this_program(descriptor: int, _: int) -> int:
    """The duplicate that pycurl took would stay open in a program that this one starts."""
    os.set_inheritable(descriptor, False)
    return int(pycurl.SOCKOPT_OK)


def _trust(request: pycurl.Curl, peer: Peer) -> None:
    """Trust the topic's authorities, else Python's: libcurl may look where this machine has none."""
    if not peer.verifies:
        request.setopt(pycurl.SSL_VERIFYPEER, 0)
        request.setopt(pycurl.SSL_VERIFYHOST, 0)
        return
    if peer.ca_location is not None:
        request.setopt(pycurl.CAINFO, os.fsencode(peer.ca_location))  # as a text it may only have ASCII
        request.unsetopt(pycurl.CAPATH)
        request.setopt(_CA_CACHE_TIMEOUT, 0)  # a file that was mended counts for the next connection
        return
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        request.setopt(pycurl.CAINFO, os.fsencode(paths.cafile))
    if paths.capath:
        request.setopt(pycurl.CAPATH, os.fsencode(paths.capath))


def _throw_away(_: bytes) -> None:
    """The body of an answer is of no interest."""
