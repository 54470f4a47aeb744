"""A TCP proxy on a free loopback port, between a client and a real server, that can be made to fail.

with Proxy(server_port) as proxy:
... connect to 127.0.0.1:proxy.port ...
proxy.condition = Condition.HANGS      # bytes stop, connections stay
proxy.condition = Condition.DOWN       # connections are cut, new ones refused
proxy.condition = Condition.WORKS
proxy.cut()                            # connections are cut now, new ones are welcome
"""

import asyncio
import threading
from contextlib import suppress
from enum import StrEnum
from typing import Any, Self


class Condition(StrEnum):
    """How the way to the server is."""

    WORKS = "works"
    SLOW = "slow"
    """Each piece of data is `delay_seconds` late."""
    HANGS = "hangs"
    DOWN = "down"


class Proxy:
    """Forwards every connection to `target_port` on loopback. Set `condition` from any thread, any time."""

    def __init__(self, target_port: int, port: int = 0) -> None:
        self.target_port = target_port
        self.port = port
        self.delay_seconds = 0.02
        self.connections = 0
        """How many were accepted so far."""
        self._condition = Condition.WORKS
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._moving: asyncio.Event | None = None
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    def start(self) -> Self:
        """Listen."""
        self._thread.start()
        self._run(self._begin())
        return self

    def stop(self) -> None:
        """Cut everything."""
        self._run(self._go_down())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def condition(self) -> Condition:
        """How it is now."""
        return self._condition

    @condition.setter
    def condition(self, condition: Condition) -> None:
        self._condition = condition
        self._run(self._become(condition))

    def cut(self) -> None:
        """Close the connections that are open now."""
        self._run(self._cut())

    @property
    def open_connections(self) -> int:
        """How many are open now."""
        return len(self._open)

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _begin(self) -> None:
        self._moving = asyncio.Event()
        self._moving.set()
        await self._listen()

    async def _become(self, condition: Condition) -> None:
        assert self._moving is not None
        if condition is Condition.HANGS:
            self._moving.clear()
        else:
            self._moving.set()
        await (self._go_down() if condition is Condition.DOWN else self._listen())

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _go_down(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut()

    async def _cut(self) -> None:
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            self._open.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        try:
            ways = [
                asyncio.ensure_future(self._copy(reader, server_writer)),
                asyncio.ensure_future(self._copy(server_reader, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            server_writer.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._moving is not None
        with suppress(OSError):
            while piece := await reader.read(1 << 16):
                await self._moving.wait()
                if self._condition is Condition.SLOW:
                    await asyncio.sleep(self.delay_seconds)
                writer.write(piece)
                await writer.drain()
