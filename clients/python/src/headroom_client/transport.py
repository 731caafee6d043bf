"""HTTP to the controllers of one cluster: kept-alive connections, time limits, typed errors, retries
where they are safe.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple
from urllib.parse import quote, urlencode

from .address import API, Address
from .errors import ApiError, ConnectionFailed, HeadroomError, UnexpectedAnswer
from .first_answer import Answer, Request, first_answer, patience_seconds
from .settings import Connection

MAX_HEAD_BYTES = 16 * 1024
MAX_ANSWER_BYTES = 64 * 1024 * 1024
# Python 3.9 allocates as many bytes as a read may return.
PIECE_BYTES = 64 * 1024
MAX_PAUSE_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.2
MAX_SEQ_DIGITS = 15

Query = Mapping[str, Any]


class Transport:
    """Sends requests; thread-safe."""

    def __init__(self, connection: Connection, *, timeout: float, attempts: int) -> None:
        self.connection = connection
        self._addresses = [Address(url, timeout) for url in connection.urls]
        self._at = 0  # the address that answered last
        self._token = connection.token
        self._attempts = attempts
        self._lock = threading.Lock()
        # The newest event of any answer: no later answer is of an older state.
        self._event_seq = 0

    @property
    def url(self) -> str:
        """The address that answered last."""
        return self._addresses[self._at].url

    def _use(self, address: Address) -> None:
        with self._lock:
            self._at = self._addresses.index(address)

    def _leave(self, address: Address) -> None:
        """Switches to the next address, unless another thread already has."""
        with self._lock:
            if self._addresses[self._at] is not address:
                return
            self._at = (self._at + 1) % len(self._addresses)
        address.close()

    def json(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Query] = None,
        body: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        is_repeatable: Optional[bool] = None,
        may_overlap: bool = True,
    ) -> Any:
        """Returns the JSON body of the response, or None without a body. Bytes are sent unchanged.

        Without `may_overlap` a repetition begins after the request before it has ended.

        Retries after 429 or if the request was never sent; repeatable requests (by default GET)
        also after a broken connection or 503. Raises ApiError, ConnectionFailed or
        UnexpectedAnswer.
        """
        repeatable = method == "GET" if is_repeatable is None else is_repeatable
        for attempt in range(1, self._attempts + 1):
            try:
                patience = patience_seconds(query or {}, body, repeatable and may_overlap)
                return self._once(method, f"{path}{_query_text(query or {})}", body, headers or {}, patience)
            except HeadroomError as error:
                if attempt == self._attempts or not _may_repeat(error, repeatable):
                    self._told(error)
                    raise
                time.sleep(_pause_seconds(error, attempt))
        raise AssertionError("unreachable")

    def events(self, path: str, query: Query) -> Iterator[Tuple[str, Any]]:
        """Yields name and JSON data of each event of a text/event-stream until the controller ends it.

        Never retries. Raises as `json` does; a stream that breaks raises ConnectionFailed.
        """
        headers = {**self._headers(), "Accept": "text/event-stream"}
        request = Request("GET", f"{API}{path}{_query_text(query)}", None, headers)
        address, connection, answer = self._ask(request, patience_seconds(query, None, True))
        try:
            try:
                if answer.status != 200:
                    self._refused(address, answer)
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
                raise address.broken(error, is_unsent=False) from error
        finally:
            connection.close()

    def upgrade(self, path: str, protocol: str) -> Tuple[socket.socket, bytes]:
        """Connects to a path of the API; returns the connection and the bytes received after the response.

        Raises ConnectionFailed or UnexpectedAnswer.
        """
        address = self._addresses[self._at]
        connection = address.new_connection()
        try:
            sock = connection.sock
            target = f"{address.base}{path}"
            upgrade = f"Connection: Upgrade\r\nUpgrade: {protocol}\r\n"
            head = f"GET {target} HTTP/1.1\r\nHost: {address.host}\r\n{upgrade}\r\n"
            sock.sendall(head.encode("ascii"))
            answer = b""
            while b"\r\n\r\n" not in answer and len(answer) <= MAX_HEAD_BYTES:
                piece = sock.recv(PIECE_BYTES)
                if not piece:
                    break
                answer += piece
        except OSError as error:
            connection.close()
            raise address.broken(error, is_unsent=False) from error
        begin, end, rest = answer.partition(b"\r\n\r\n")
        if not begin.startswith(b"HTTP/1.1 101 ") or not end:
            connection.close()
            raise UnexpectedAnswer(
                f"{address.url} does not pass HTTP Upgrade. A proxy in front of the controller must allow it."
            )
        return sock, rest

    def close(self) -> None:
        """Closes the idle connections."""
        for address in self._addresses:
            address.close()

    def _once(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], patience: Optional[float]
    ) -> Any:
        sent = {**self._headers(), **headers}
        data = None
        if isinstance(body, bytes):
            data = body
            sent["Content-Type"] = "application/octet-stream"
        elif body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        address, connection, answer = self._ask(Request(method, f"{API}{path}", data, sent), patience)
        try:
            try:
                raw = _body_of(answer)
            except (OSError, http.client.HTTPException) as error:
                self._leave(address)
                raise address.broken(error, is_unsent=False) from error
            if len(raw) > MAX_ANSWER_BYTES:
                raise UnexpectedAnswer(
                    f"The answer of {address.url} is larger than {MAX_ANSWER_BYTES} bytes."
                )
            result = _result_of(address, answer, raw)
        except BaseException as error:
            if isinstance(error, ApiError) and not answer.will_close:
                address.keep(connection)
            else:
                connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            address.keep(connection)
        return result

    def _ask(self, request: Request, patience: Optional[float]) -> Answer:
        """Asks the addresses in turn, from the one that answered last."""
        at = self._at
        in_turn = self._addresses[at:] + self._addresses[:at]
        try:
            answer = first_answer(in_turn, patience, request)
        except ConnectionFailed:
            self._leave(in_turn[0])
            raise
        self._use(answer.address)
        if answer.response.status == 503:
            self._leave(answer.address)
        self._note(answer.response)
        return answer

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

    def _refused(self, address: Address, answer: http.client.HTTPResponse) -> None:
        try:
            _result_of(address, answer, _body_of(answer))
        except ApiError as error:
            self._told(error)
            raise


def _result_of(address: Address, answer: http.client.HTTPResponse, raw: bytes) -> Any:
    if 200 <= answer.status < 300 and not raw:
        return None
    kind = answer.headers.get("Content-Type", "")
    if 200 <= answer.status < 300 or kind.startswith("application/problem+json"):
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise UnexpectedAnswer(
                f"{address.url} answered {answer.status} with a body that is not JSON. "
                "Is this the address of a controller?"
            ) from error
        if answer.status < 300:
            return body
        raise _api_error(answer, body)
    raise UnexpectedAnswer(
        f"{address.url} answered {answer.status} without a reason. Is this the address of a controller?"
    )


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
