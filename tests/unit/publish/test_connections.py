"""How connections are lent, shared and closed. The clients here only count; forks run in a process apart."""

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bucketwire.publish.connections import Connections


class Client:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def connections(clock: Clock) -> Connections:
    return Connections(idle_seconds=60, clock=clock)


def test_a_shared_client_is_the_same_for_all(connections: Connections) -> None:
    with connections.shared("a", Client) as first, connections.shared("a", Client) as second:
        assert first is second
    with connections.shared("b", Client) as other, connections.shared("a", Client) as again:
        assert other is not first
        assert again is first
    assert len(connections) == 2


def test_a_client_lent_alone_is_lent_to_one_at_a_time_and_then_again(connections: Connections) -> None:
    with connections.alone("a", Client) as first, connections.alone("a", Client) as second:
        assert first is not second
    with connections.alone("a", Client) as again:
        assert again in {first, second}
    assert len(connections) == 2


def test_a_client_that_an_exception_leaves_is_closed(connections: Connections) -> None:
    with pytest.raises(KeyError), connections.alone("a", Client) as client:
        raise KeyError
    assert client.closed == 1
    assert len(connections) == 0


def test_a_shared_client_outlives_the_exception_of_one_user(connections: Connections) -> None:
    with pytest.raises(KeyError), connections.shared("a", Client) as client:
        raise KeyError
    assert client.closed == 0
    assert len(connections) == 1


@pytest.mark.parametrize("way", ["shared", "alone"])
def test_a_client_that_cannot_be_opened_leaves_nothing_behind(connections: Connections, way: str) -> None:
    def fail() -> Client:
        raise OSError

    with pytest.raises(OSError), getattr(connections, way)("a", fail):  # noqa: PT011 - ours, above
        pass
    assert len(connections) == 0
    with getattr(connections, way)("a", Client) as client:
        assert client.closed == 0


def test_what_is_idle_for_long_is_closed_and_nothing_else(connections: Connections, clock: Clock) -> None:
    with connections.alone("old", Client) as old:
        pass
    clock.now = 30
    with connections.alone("young", Client) as young:
        pass
    with connections.alone("used", Client) as used, connections.shared("shared", Client) as shared:
        clock.now = 60
        close_idle(connections)
        assert (old.closed, young.closed, used.closed, shared.closed) == (1, 0, 0, 0)
        clock.now = 1000
        close_idle(connections)
        assert (young.closed, used.closed, shared.closed) == (1, 0, 0)
    close_idle(connections)
    assert (used.closed, shared.closed) == (0, 0)
    clock.now = 1060
    close_idle(connections)
    assert (used.closed, shared.closed) == (1, 1)
    assert len(connections) == 0


def close_idle(connections: Connections) -> None:
    connections.close_idle()
    for thread in threading.enumerate():
        if thread.name == "close-idle":
            thread.join()


def test_nobody_waits_until_idle_clients_are_closed_but_who_closes_everything(
    connections: Connections, clock: Clock
) -> None:
    asked, answered = threading.Event(), threading.Event()

    class Slow(Client):
        def close(self) -> None:
            asked.set()
            self.closed += answered.wait(5)

    with connections.alone("a", Slow) as first, connections.alone("a", Slow) as second:
        pass
    clock.now = 60
    connections.close_idle()
    assert asked.wait(30)
    assert (len(connections), first.closed, second.closed) == (0, 0, 0)
    threading.Timer(0.05, answered.set).start()
    connections.close()
    assert (first.closed, second.closed) == (1, 1)


def test_closing_waits_for_what_is_lent(connections: Connections) -> None:
    with connections.alone("idle", Client) as idle:
        pass
    with connections.alone("a", Client) as lent, connections.shared("b", Client) as shared:
        connections.close()
        assert (idle.closed, lent.closed, shared.closed) == (1, 0, 0)
        with connections.shared("b", Client) as new:
            assert new is not shared
    assert (lent.closed, shared.closed, new.closed) == (1, 1, 0)
    connections.close()
    connections.close()
    assert (idle.closed, lent.closed, shared.closed, new.closed) == (1, 1, 1, 1)


def test_each_client_is_closed_once_and_never_while_it_is_used(connections: Connections) -> None:
    opened: list[Client] = []
    closed_in_use = []

    def open_client() -> Client:
        opened.append(Client())
        return opened[-1]

    def work(number: int) -> None:
        for turn in range(200):
            way = connections.shared if number % 2 else connections.alone
            with way(("shared" if number % 2 else "alone", turn % 3), open_client) as client:
                closed_in_use.append(client.closed)
            if turn % 10 == number:
                connections.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    connections.close()
    assert not any(closed_in_use)
    assert {client.closed for client in opened} == {1}


def test_no_more_are_opened_than_are_used_at_once(connections: Connections) -> None:
    barrier = threading.Barrier(4)

    def work() -> None:
        with connections.alone("a", Client):
            barrier.wait(30)

    for _ in range(5):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(connections) == 4


def test_private_networks_are_allowed_unless_it_is_said_otherwise() -> None:
    assert Connections().private_allowed
    assert not Connections(private_allowed=False).private_allowed


def test_a_forked_process_starts_with_none_and_touches_none_of_its_parent() -> None:
    run_forking("""
    with connections.alone("a", Client) as client, connections.shared("b", Client) as client:
        pass
    del client
    child = os.fork()
    if child == 0:
        assert len(connections) == 0
        with connections.alone("a", Client) as new, connections.shared("b", Client) as other:
            pass
        connections.close()
        gc.collect()
        os._exit(0 if Client.closed == [new, other] and Client.deleted == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(connections) == 2 and not Client.closed
    """)


def test_a_forked_process_does_not_touch_what_its_parent_is_closing() -> None:
    run_forking("""
    connections = Connections(idle_seconds=0)
    asked, answered = threading.Event(), threading.Event()
    class Slow(Client):
        def close(self):
            asked.set()
            answered.wait(20)
            super().close()
    with connections.alone("a", Slow) as client:
        pass
    del client
    connections.close_idle()
    assert asked.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        connections.close()
        gc.collect()
        os._exit(0 if not Client.closed and Client.deleted == 0 else 1)
    answered.set()
    assert os.waitpid(child, 0)[1] == 0
    connections.close()
    assert len(Client.closed) == 1
    """)


def test_a_fork_while_another_thread_is_opening_a_client_does_not_hang_the_child() -> None:
    run_forking("""
    opening, forked = threading.Event(), threading.Event()
    def open_slowly():
        opening.set()
        forked.wait(20)
        return Client()
    def work():
        with connections.shared("a", open_slowly):
            pass
    thread = threading.Thread(target=work)
    thread.start()
    assert opening.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        with connections.shared("a", Client):
            os._exit(0)
    forked.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    """)


def run_forking(body: str) -> None:
    script = FORKING + textwrap.dedent(body)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


FORKING = """
import gc, os, signal, threading
from bucketwire.publish.connections import Connections

class Client:
    closed, deleted = [], 0
    def close(self):
        Client.closed.append(self)
    def __del__(self):
        Client.deleted += 1

connections = Connections()
"""
