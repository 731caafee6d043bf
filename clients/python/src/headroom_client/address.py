"""One address of a controller, with its connections."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from typing import List
from urllib.parse import unquote, urlsplit

from .errors import ConnectionFailed

API = "/api/v1"
MAX_IDLE_CONNECTIONS = 8


class Address:
    """Connects to one address, and keeps idle connections; thread-safe."""

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        self.url = url
        self.host = parts.netloc.rpartition("@")[2] or "localhost"
        self._host_name = parts.hostname or ""
        self._port = parts.port
        self._is_tls = parts.scheme == "https"
        self._socket_path = unquote(parts.path) if parts.scheme == "unix" else None
        self.base = "" if self._socket_path is not None else parts.path
        self._timeout = timeout
        self._idle: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def connect(self) -> http.client.HTTPConnection:
        """Returns an idle connection that the controller has not closed, or a new one. Raises
        ConnectionFailed.
        """
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                return self.new_connection()
            if not _is_closed(idle):
                return idle
            idle.close()

    def new_connection(self) -> http.client.HTTPConnection:
        """Raises ConnectionFailed."""
        connection = self._connection()
        try:
            connection.connect()
        except OSError as error:
            raise self.broken(error, is_unsent=True) from error
        if self._socket_path is None:
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def keep(self, connection: http.client.HTTPConnection) -> None:
        """Keeps an idle connection for a later request."""
        with self._lock:
            if len(self._idle) < MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Closes the idle connections."""
        with self._lock:
            connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()

    def broken(self, error: Exception, *, is_unsent: bool) -> ConnectionFailed:
        """Converts a failure below HTTP to an error of one line."""
        if isinstance(error, ConnectionRefusedError):
            reason = "connection refused. Is the controller running?"
        elif isinstance(error, FileNotFoundError):
            reason = "the socket does not exist. Is the server running?"
        elif isinstance(error, PermissionError):
            reason = "permission denied. Are you in the group headroom?"
        elif isinstance(error, socket.timeout):
            reason = f"no answer within {self._timeout:g} s"
        elif isinstance(error, socket.gaierror):
            reason = "host name not found"
        elif isinstance(error, ssl.SSLError):
            reason = str(error)
        elif isinstance(error, (ConnectionError, http.client.HTTPException)):
            reason = "the connection broke"
        else:
            reason = str(error)
        return ConnectionFailed(f"Cannot reach the controller at {self.url}: {reason}", is_unsent=is_unsent)

    def _connection(self) -> http.client.HTTPConnection:
        if self._socket_path is not None:
            return _SocketConnection(self._socket_path, timeout=self._timeout)
        if not self._is_tls:
            return http.client.HTTPConnection(self._host_name, self._port, timeout=self._timeout)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(
            self._host_name, self._port, timeout=self._timeout, context=context
        )


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _is_closed(connection: http.client.HTTPConnection) -> bool:
    """Returns True if the other side has closed an idle connection, so that a request on it would
    fail.
    """
    sock = connection.sock
    if sock is None:
        return True
    timeout = sock.gettimeout()
    try:
        sock.settimeout(0)
        # A TLS socket refuses MSG_PEEK; bytes that arrive without a request are of no use either.
        return len(sock.recv(1)) >= 0
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    finally:
        sock.settimeout(timeout)
