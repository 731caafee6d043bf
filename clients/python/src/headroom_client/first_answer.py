"""Which of several addresses answers a request: a controller that is stopped accepts connections
and never answers, so another one is asked in time.
"""

from __future__ import annotations

import contextlib
import http.client
import queue
import socket
import threading
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Union

from .address import Address
from .errors import ConnectionFailed

# Shorter than the default lease, so that the next address has the request when a controller takes over.
PATIENCE_SECONDS = 1.5
# Parameters that make the controller wait before it answers.
WAITING = ("wait", "forecast")


class Request(NamedTuple):
    """What is sent to each address."""

    method: str
    path: str
    """With the query, below the path of the address."""
    body: Optional[bytes]
    headers: Mapping[str, str]


class Answer(NamedTuple):
    """The head of an answer, and the connection from which its body is read."""

    address: Address
    connection: http.client.HTTPConnection
    response: http.client.HTTPResponse


def patience_seconds(query: Mapping[str, Any], body: Any, is_repeatable: bool) -> Optional[float]:
    """Returns how long one address may be silent before the next one gets the same request. None:
    only after it has certainly not received the request.

    1. A request that may act twice is in one place only.
    2. A request that waits at the controller is answered late.
    3. A chunk of a file takes long on a slow network, and would take longer twice.
    """
    if not is_repeatable or any(query.get(name) is not None for name in WAITING) or isinstance(body, bytes):
        return None
    return PATIENCE_SECONDS


def first_answer(addresses: Sequence[Address], patience: Optional[float], request: Request) -> Answer:
    """Returns the first answer, and abandons the other requests.

    Asks the next address when one has certainly not received the request, or has been silent for
    `patience` seconds; a silent one may still answer. Raises the last error once all have failed.
    """
    if len(addresses) == 1 or patience is None:
        return _first_received(addresses, request)
    ended: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()
    asked: List[_Exchange] = []
    failures = 0
    answer: Optional[Answer] = None
    try:
        while answer is None:
            asked.append(_Exchange(addresses[len(asked)], request, ended))
            may_ask_next = len(asked) < len(addresses)
            while answer is None:
                try:
                    outcome = ended.get(timeout=patience if may_ask_next else None)
                except queue.Empty:
                    break
                if isinstance(outcome, Answer):
                    answer = outcome
                    break
                failures += 1
                if may_ask_next and isinstance(outcome, ConnectionFailed) and outcome.is_unsent:
                    break
                if failures == len(asked):
                    raise outcome
        return answer
    finally:
        for each in asked:
            if answer is None or each.address is not answer.address:
                each.abandon()


def _first_received(addresses: Sequence[Address], request: Request) -> Answer:
    for address in addresses[:-1]:
        try:
            return _sent(address, address.connect(), request)
        except ConnectionFailed as error:
            if not error.is_unsent:
                raise
    return _sent(addresses[-1], addresses[-1].connect(), request)


def _sent(address: Address, connection: http.client.HTTPConnection, request: Request) -> Answer:
    try:
        path = f"{address.base}{request.path}"
        connection.request(request.method, path, request.body, dict(request.headers))
        return Answer(address, connection, connection.getresponse())
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise address.broken(error, is_unsent=False) from error
    except BaseException:
        connection.close()
        raise


_Outcome = Union[Answer, BaseException]


class _Exchange:
    """One request whose answer is awaited in a thread of its own."""

    def __init__(
        self,
        address: Address,
        request: Request,
        ended: queue.SimpleQueue[_Outcome],
    ) -> None:
        self.address = address
        self._request = request
        self._ended = ended
        self._lock = threading.Lock()
        self._is_abandoned = False
        self._connection: Optional[http.client.HTTPConnection] = None
        threading.Thread(target=self._run, name="headroom request", daemon=True).start()

    def abandon(self) -> None:
        """Ends the request; its connection cannot be used again."""
        with self._lock:
            self._is_abandoned = True
            if self._connection is not None:
                _cut(self._connection)

    def _run(self) -> None:
        try:
            connection = self.address.connect()
            with self._lock:
                self._connection = connection
                if self._is_abandoned:
                    _cut(connection)
            answer = _sent(self.address, connection, self._request)
        except BaseException as error:
            self._ended.put(error)
            return
        with self._lock:
            if self._is_abandoned:
                connection.close()
        self._ended.put(answer)


def _cut(connection: http.client.HTTPConnection) -> None:
    """Wakes the thread that reads from the connection, which closes it."""
    sock = connection.sock
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
