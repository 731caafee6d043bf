"""A task that moves its data itself, with a stand-in for the server at its control socket."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from headroom_client.swap import SwapHooks

WITHIN = 20.0


class Server:
    """Listens as a GPU server does, and gives orders to the task."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(WITHIN)
        self._connection, _ = self._listener.accept()
        self._connection.settimeout(WITHIN)
        self._lines = self._connection.makefile("r", encoding="utf-8")

    def order(self, name: str) -> None:
        self._connection.sendall(json.dumps({name: {"deadline_ms": 1000}}).encode() + b"\n")

    def hears(self) -> Dict[str, Any]:
        said: Dict[str, Any] = json.loads(self._lines.readline())
        return said

    def close(self) -> None:
        self._lines.close()
        self._connection.close()
        self._listener.close()


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "s"


def test_moves_when_told_and_says_what_stays(path: Path) -> None:
    moves: List[str] = []

    def suspend() -> int:
        moves.append("out")
        return 512

    hooks = SwapHooks(suspend, lambda: moves.append("in"), path=str(path))
    server = Server(path)
    assert server.hears() == {"swaps": True}
    assert server.hears() == {"busy": False}
    server.order("suspend")
    assert server.hears() == {"suspended": {"resident_mib": 512}}
    assert not hooks.is_resident
    server.order("suspend")
    assert server.hears() == {"suspended": {}}
    server.order("resume")
    assert server.hears() == {"resumed": True}
    assert hooks.is_resident
    assert moves == ["out", "in"]
    hooks.close()
    server.close()


def test_waits_for_the_data_and_keeps_it_while_it_is_used(path: Path) -> None:
    hooks = SwapHooks(lambda: None, lambda: None, path=str(path))
    server = Server(path)
    assert [server.hears(), server.hears()] == [{"swaps": True}, {"busy": False}]
    server.order("suspend")
    assert server.hears() == {"suspended": {}}
    began, end = threading.Event(), threading.Event()

    def use() -> None:
        with hooks.using_gpu(WITHIN):
            began.set()
            end.wait(WITHIN)

    user = threading.Thread(target=use)
    user.start()
    assert server.hears() == {"want": True}
    assert not began.is_set()
    server.order("resume")
    assert server.hears() == {"resumed": True}
    assert server.hears() == {"busy": True}
    assert began.wait(WITHIN)
    server.order("suspend")
    end.set()
    user.join(WITHIN)
    assert [server.hears(), server.hears()] == [{"busy": False}, {"suspended": {}}]
    with pytest.raises(TimeoutError):
        with hooks.using_gpu(0.05):
            pass
    hooks.close()
    server.close()


def test_finds_the_next_server(path: Path) -> None:
    hooks = SwapHooks(lambda: None, lambda: None, path=str(path))
    first = Server(path)
    assert first.hears() == {"swaps": True}
    first.close()
    path.unlink()
    second = Server(path)
    assert second.hears() == {"swaps": True}
    hooks.close()
    second.close()


def test_a_suspend_that_fails_is_not_answered(path: Path) -> None:
    def fail() -> None:
        raise RuntimeError("no host memory")

    hooks = SwapHooks(fail, lambda: None, path=str(path))
    server = Server(path)
    assert [server.hears(), server.hears()] == [{"swaps": True}, {"busy": False}]
    server.order("suspend")
    server.order("resume")
    assert server.hears() == {"resumed": True}
    assert hooks.is_resident
    hooks.close()
    server.close()
