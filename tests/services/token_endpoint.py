"""An OAuth token endpoint on a free loopback port: unsigned tokens for one client id and secret."""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

CLIENT, SECRET = "bucketwire", "client: 100%/secret"


class TokenEndpoint:
    """Serves between `__enter__` and `__exit__`."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/token"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        given = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic "))
        if given == f"{CLIENT}:{SECRET}".encode():
            self._answer(200, {"access_token": _token(), "token_type": "Bearer", "expires_in": 3600})
        else:
            self._answer(401, {"error": "invalid_client"})

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self, status: int, document: dict[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _token() -> str:
    now = int(time.time())
    claims = {"sub": CLIENT, "iat": now, "exp": now + 3600, "scope": "bucketwire"}
    return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{_encoded(claims)}."


def _encoded(document: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")
