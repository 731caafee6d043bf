"""HTTP to one controller: kept-alive connections, time limits, typed errors, retries where they are
safe.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import threading
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from .errors import ApiError, ConnectionFailed, HeadroomError, UnexpectedAnswer
from .settings import Connection

API = "/api/v1"
MAX_HEAD_BYTES = 16 * 1024
MAX_ANSWER_BYTES = 64 * 1024 * 1024
# Python 3.9 allocates as many bytes as a read may return.
PIECE_BYTES = 64 * 1024
MAX_PAUSE_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.2
MAX_IDLE_CONNECTIONS = 8
MAX_SEQ_DIGITS = 15

Query = Mapping[str, Any]


class Transport:
    """Sends requests; thread-safe."""

    def __init__(self, connection: Connection, *, timeout: float, attempts: int) -> None:
        self.connection = connection
        self._urls = connection.urls
        self._use(self._urls[0])
        self._token = connection.token
        self._timeout = timeout
        self._attempts = attempts
        self._idle: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        # The newest event of any answer: no later answer is of an older state.
        self._event_seq = 0

    def _use(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url
        self._host = parts.hostname or ""
        self._port = parts.port
        self._is_tls = parts.scheme == "https"
        self._socket_path = unquote(parts.path) if parts.scheme == "unix" else None
        self._base = API if self._socket_path else f"{parts.path}{API}"

    def _leave(self, url: str) -> None:
        """Switches to the next address, unless another thread already has."""
        with self._lock:
            if self.url != url or len(self._urls) == 1:
                return
            self._use(self._urls[(self._urls.index(url) + 1) % len(self._urls)])
            connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()

    def json(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Query] = None,
        body: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        is_repeatable: Optional[bool] = None,
    ) -> Any:
        """Returns the JSON body of the response, or None without a body. Bytes are sent unchanged.

        Retries after 429 or if the request was never sent; repeatable requests (by default GET)
        also after a broken connection or 503. Raises ApiError, ConnectionFailed or
        UnexpectedAnswer.
        """
        repeatable = method == "GET" if is_repeatable is None else is_repeatable
        for attempt in range(1, self._attempts + 1):
            url = self.url
            try:
                return self._once(method, path, query or {}, body, headers or {})
            except HeadroomError as error:
                if isinstance(error, ConnectionFailed) or getattr(error, "status", None) == 503:
                    self._leave(url)
                if attempt == self._attempts or not _may_repeat(error, repeatable):
                    self._told(error)
                    raise
                time.sleep(_pause_seconds(error, attempt))
        raise AssertionError("unreachable")

    def events(self, path: str, query: Query) -> Iterator[Tuple[str, Any]]:
        """Yields name and JSON data of each event of a text/event-stream until the controller ends it.

        Never retries. Raises as `json` does; a stream that breaks raises ConnectionFailed.
        """
        connection = self._connect()
        try:
            headers = {**self._headers(), "Accept": "text/event-stream"}
            try:
                connection.request("GET", f"{self._base}{path}{_query_text(query)}", None, headers)
                answer = connection.getresponse()
                self._note(answer)
                if answer.status != 200:
                    self._refused(answer)
                name, data = "", ""
                for line in iter(answer.readline, b""):
                    field, _, value = line.decode("utf-8").rstrip("\r\n").partition(": ")
                    if field == "event":
                        name = value
                    elif field == "data":
                        data += value
                    elif field == "" and data:
                        yield name, json.loads(data)
                        name, data = "", ""
            except (OSError, http.client.HTTPException) as error:
                raise self._broken(error, is_unsent=False) from error
        finally:
            connection.close()

    def upgrade(self, path: str, protocol: str) -> Tuple[socket.socket, bytes]:
        """Connects to a path of the API; returns the connection and the bytes received after the response.

        Raises ConnectionFailed or UnexpectedAnswer.
        """
        connection = self._new_connection()
        try:
            connection.connect()
            sock = connection.sock
            host = (
                "localhost" if self._socket_path is not None else urlsplit(self.url).netloc.rpartition("@")[2]
            )
            target = f"{self._base[: -len(API)]}{path}"
            head = (
                f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
            )
            sock.sendall(head.encode("ascii"))
            answer = b""
            while b"\r\n\r\n" not in answer and len(answer) <= MAX_HEAD_BYTES:
                piece = sock.recv(PIECE_BYTES)
                if not piece:
                    break
                answer += piece
        except OSError as error:
            connection.close()
            raise self._broken(error, is_unsent=False) from error
        begin, end, rest = answer.partition(b"\r\n\r\n")
        if not begin.startswith(b"HTTP/1.1 101 ") or not end:
            connection.close()
            raise UnexpectedAnswer(
                f"{self.url} does not pass HTTP Upgrade. A proxy in front of the controller must allow it."
            )
        return sock, rest

    def close(self) -> None:
        """Closes the idle connections."""
        with self._lock:
            connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()

    def _once(self, method: str, path: str, query: Query, body: Any, headers: Mapping[str, str]) -> Any:
        target = f"{self._base}{path}{_query_text(query)}"
        sent = {**self._headers(), **headers}
        data = None
        if isinstance(body, bytes):
            data = body
            sent["Content-Type"] = "application/octet-stream"
        elif body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        connection = self._connect()
        try:
            try:
                connection.request(method, target, data, sent)
                answer = connection.getresponse()
                self._note(answer)
                raw = _body_of(answer)
            except (OSError, http.client.HTTPException) as error:
                raise self._broken(error, is_unsent=False) from error
            if len(raw) > MAX_ANSWER_BYTES:
                raise UnexpectedAnswer(f"The answer of {self.url} is larger than {MAX_ANSWER_BYTES} bytes.")
            result = self._result_of(answer, raw)
        except BaseException as error:
            if isinstance(error, ApiError) and not answer.will_close:
                self._keep(connection)
            else:
                connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._keep(connection)
        return result

    def _headers(self) -> Dict[str, str]:
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._event_seq > 0:
            headers["Headroom-Min-Event-Seq"] = str(self._event_seq)
        return headers

    def _note(self, answer: http.client.HTTPResponse) -> None:
        seq = answer.headers.get("Headroom-Event-Seq", "")
        if seq.isascii() and seq.isdigit() and len(seq) <= MAX_SEQ_DIGITS:
            with self._lock:
                self._event_seq = max(self._event_seq, int(seq))

    def _told(self, error: HeadroomError) -> None:
        """Notices that the store went back (a restore), so that the next requests accept its state."""
        if isinstance(error, ApiError) and error.code == "state_behind":
            with self._lock:
                self._event_seq = 0

    def _refused(self, answer: http.client.HTTPResponse) -> None:
        try:
            self._result_of(answer, _body_of(answer))
        except ApiError as error:
            self._told(error)
            raise

    def _connect(self) -> http.client.HTTPConnection:
        """Returns an idle connection that the controller has not closed, or a new one."""
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                return self._connect_anew()
            if not _is_closed(idle):
                return idle
            idle.close()

    def _connect_anew(self) -> http.client.HTTPConnection:
        """Tries each address once, starting with the current one."""
        for left in reversed(range(len(self._urls))):
            url = self.url
            connection = self._new_connection()
            try:
                connection.connect()
            except OSError as error:
                failed = self._broken(error, is_unsent=True)
                self._leave(url)
                if left == 0:
                    raise failed from error
                continue
            if self._socket_path is None:
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        raise AssertionError("unreachable")

    def _new_connection(self) -> http.client.HTTPConnection:
        if self._socket_path is not None:
            return _SocketConnection(self._socket_path, timeout=self._timeout)
        if not self._is_tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _broken(self, error: Exception, *, is_unsent: bool) -> ConnectionFailed:
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

    def _result_of(self, answer: http.client.HTTPResponse, raw: bytes) -> Any:
        if 200 <= answer.status < 300 and not raw:
            return None
        kind = answer.headers.get("Content-Type", "")
        if 200 <= answer.status < 300 or kind.startswith("application/problem+json"):
            try:
                body = json.loads(raw)
            except ValueError as error:
                raise UnexpectedAnswer(
                    f"{self.url} answered {answer.status} with a body that is not JSON. "
                    "Is this the address of a controller?"
                ) from error
            if answer.status < 300:
                return body
            raise _api_error(answer, body)
        raise UnexpectedAnswer(
            f"{self.url} answered {answer.status} without a reason. Is this the address of a controller?"
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


def _body_of(answer: http.client.HTTPResponse) -> bytes:
    """Returns the body, truncated shortly after the limit."""
    body = bytearray()
    while len(body) <= MAX_ANSWER_BYTES:
        piece = answer.read(PIECE_BYTES)
        if not piece:
            break
        body += piece
    return bytes(body)


def segment(text: str) -> str:
    """Encodes a segment of a path: an id may contain any character."""
    # One or two dots would be a relative path.
    return text.replace(".", "%252E") if text in (".", "..") else quote(text, safe="")


def backoff_seconds(attempt: int, most: float = MAX_PAUSE_SECONDS) -> float:
    """Doubles with every attempt, with jitter so that clients do not retry at the same time."""
    return min(most, FIRST_PAUSE_SECONDS * 2.0 ** min(attempt - 1, 16)) * (0.5 + random.random() / 2)


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


def _may_repeat(error: HeadroomError, is_repeatable: bool) -> bool:
    if isinstance(error, ConnectionFailed):
        return error.is_unsent or is_repeatable
    if isinstance(error, ApiError):
        if error.status == 429 or error.code == "state_behind":
            return True
        return is_repeatable and error.status == 503
    return False


def _pause_seconds(error: HeadroomError, attempt: int) -> float:
    requested = error.retry_after_seconds if isinstance(error, ApiError) else None
    return backoff_seconds(attempt) if requested is None else min(MAX_PAUSE_SECONDS, requested)


def _query_text(query: Query) -> str:
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""


def _api_error(answer: http.client.HTTPResponse, body: Any) -> ApiError:
    problem: Dict[str, Any] = body if isinstance(body, dict) else {}

    def text(name: str) -> Optional[str]:
        value = problem.get(name)
        return value if isinstance(value, str) else None

    try:
        retry_after: Optional[float] = max(0.0, float(answer.headers.get("Retry-After", "")))
    except ValueError:
        retry_after = None
    errors = problem.get("errors")
    return ApiError(
        answer.status,
        text("code") or "unknown",
        text("detail") or text("title") or f"status {answer.status}",
        errors if isinstance(errors, list) else [],
        text("request_id"),
        retry_after,
    )
