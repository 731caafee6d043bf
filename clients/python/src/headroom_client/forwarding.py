"""Forwards a port of this machine to a port of a running task."""

from __future__ import annotations

import socket
import threading
import time
from types import TracebackType
from typing import Optional, Set, Type

from .channel import open_channel, pass_connection
from .errors import ApiError, HeadroomError
from .transport import Transport, backoff_seconds

HOST = "127.0.0.1"
MAX_PAUSE_SECONDS = 1.0


class Forwarding:
    """Listens on this machine within a `with` block; see `Task.port_forward`."""

    def __init__(
        self, transport: Transport, path: str, port: int, local_port: int, timeout: Optional[float]
    ) -> None:
        self._transport = transport
        self._path = path
        self._target = port
        self._local_port = local_port
        self._timeout = timeout
        self._listener: Optional[socket.socket] = None
        self._sockets: Set[socket.socket] = set()
        self._threads: Set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self.host = HOST
        self.last_error: Optional[HeadroomError] = None
        """Error of the last failed connection."""

    @property
    def port(self) -> int:
        """On this machine."""
        if self._listener is None:
            raise HeadroomError("The port is not forwarded now: use it inside a with block.")
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT` of this machine."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The local address as an HTTP URL."""
        return f"http://{self.address}"

    def __enter__(self) -> Forwarding:
        self._wait_until_open()
        self._listener = socket.create_server((HOST, self._local_port))
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Ends all connections."""
        with self._lock:
            self._is_closed = True
            sockets = list(self._sockets)
        for each in [self._listener, *sockets]:
            if each is not None:
                _shut(each)
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(5)
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _wait_until_open(self) -> None:
        """Waits until the task accepts a connection; without a timeout it does not wait."""
        if self._timeout is None:
            return
        deadline = time.monotonic() + self._timeout
        attempt = 1
        while True:
            try:
                return open_channel(self._transport, self._path, {"port": self._target}).close()
            except ApiError as error:
                if error.status not in (409, 429, 503):
                    raise
                if time.monotonic() >= deadline:
                    raise TimeoutError(
                        f"Port {self._target} was not reachable within {self._timeout:g} s: {error}"
                    ) from error
            left = max(0.0, deadline - time.monotonic())
            time.sleep(min(backoff_seconds(attempt, MAX_PAUSE_SECONDS), left))
            attempt += 1

    def _accept(self) -> None:
        listener = self._listener
        while listener is not None:
            try:
                local, _ = listener.accept()
            except OSError:
                return
            if not self._hold(local):
                return local.close()
            self._start(self._pass, local)

    def _pass(self, local: socket.socket) -> None:
        remote: Optional[socket.socket] = None
        try:
            channel = open_channel(self._transport, self._path, {"port": self._target})
            remote = channel.sock
            if self._hold(remote):
                pass_connection(channel, local)
            else:
                channel.close()
        except HeadroomError as error:
            if not self._is_closed:
                self.last_error = error
        except OSError:
            pass  # The local side has gone.
        finally:
            local.close()
            with self._lock:
                self._sockets.discard(local)
                if remote is not None:
                    self._sockets.discard(remote)
                self._threads.discard(threading.current_thread())

    def _start(self, what: object, *args: object) -> None:
        thread = threading.Thread(target=what, args=args, daemon=True)  # type: ignore[arg-type]
        with self._lock:  # The end of the block joins only threads that have been started.
            thread.start()
            self._threads.add(thread)

    def _hold(self, sock: socket.socket) -> bool:
        """Returns False once the block has ended."""
        with self._lock:
            if self._is_closed:
                return False
            self._sockets.add(sock)
            return True


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # It has ended.
