"""Faults between client and controller, through a server that answers as each test says."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import tracemalloc
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple
from urllib.parse import quote

import pytest
from conftest import until

from headroom_client import ApiError, Client, ConnectionFailed, UnexpectedAnswer
from headroom_client.address import _is_closed
from headroom_client.first_answer import patience_seconds

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: List[Tuple[str, str, Dict[str, str]]] = []
        self.answers: List[Answer] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        server: Any = self.server
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server.requests.append((self.command, self.path, dict(self.headers)))
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        answer(self)

    do_GET = do_POST = do_DELETE = handle_any

    def log_message(self, *_: Any) -> None:
        pass


def reply(
    status: int, body: Any, kind: str = "application/json", headers: Dict[str, str] | None = None
) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(raw)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)

    return answer


def problem(status: int, code: str, **headers: str) -> Answer:
    return reply(status, {"code": code, "detail": f"{code}."}, "application/problem+json", headers)


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


TASK = {"id": "t", "name": "t", "state": "pending", "finished_at": None}


def test_a_submission_whose_answer_is_lost_is_repeated_with_the_same_key(server: Server) -> None:
    server.answers = [hang_up, reply(201, TASK)]
    assert Client(server.url, environment={}).submit(["true"]).id == "t"
    keys = [headers["Idempotency-Key"] for _, _, headers in server.requests]
    assert len(keys) == 2 and keys[0] == keys[1]


def test_the_next_address_is_used_when_one_does_not_listen(server: Server) -> None:
    server.answers = [reply(201, TASK)]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with Client(f"{dead}, {server.url}/", attempts=1, environment={}) as client:
        assert client.submit(["true"]).id == "t"
        assert client.url == server.url
    assert len(server.requests) == 1


def test_the_next_address_is_used_when_no_controller_leads(server: Server) -> None:
    server.answers = [problem(503, "no_leader", **{"Retry-After": "0"}), reply(200, {"version": "1"})]
    same = server.url.replace("127.0.0.1", "localhost")
    with Client(f"{server.url},{same}", environment={}) as client:
        assert client.version() == {"version": "1"}
        assert client.url == same
    assert len(server.requests) == 2


@contextlib.contextmanager
def stopped_controller() -> Iterator[Tuple[str, socket.socket]]:
    """Its host accepts connections, and it never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", listening


def test_the_next_address_is_asked_when_one_accepts_and_never_answers(server: Server) -> None:
    server.answers = [reply(201, TASK)]
    with stopped_controller() as (stopped, listening):
        with Client(f"{stopped},{server.url}", timeout=20, attempts=1, environment={}) as client:
            assert client.submit(["true"]).id == "t"
            # It stays at the address that answers.
            assert client.url == server.url
            client.submit(["true"])
        accepted, _ = listening.accept()
        accepted.close()
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert len(server.requests) == 2


def test_a_stream_is_opened_at_the_next_address_when_one_never_answers(server: Server) -> None:
    event = b'event: end\ndata: {"why": "ended"}\n\n'
    server.answers = [reply(200, TASK), reply(200, event, "text/event-stream")]
    with stopped_controller() as (stopped, _):
        with Client(f"{stopped},{server.url}", timeout=20, attempts=1, environment={}) as client:
            task = client.task("t")
            client._transport._at = 0
            assert list(task.logs(follow=True)) == []


def test_a_late_answer_is_taken_when_the_next_address_never_answers(server: Server) -> None:
    with stopped_controller() as (stopped, listening):

        def answer_late(handler: BaseHTTPRequestHandler) -> None:
            # The client has asked the other address too.
            listening.accept()[0].recv(1)
            reply(200, {"version": "1"})(handler)

        server.answers = [answer_late]
        with Client(f"{server.url},{stopped}", timeout=20, attempts=1, environment={}) as client:
            assert client.version() == {"version": "1"}
            assert client.url == server.url


def test_a_request_that_could_act_twice_is_sent_to_one_address(server: Server) -> None:
    server.answers = [reply(200, TASK)]
    with stopped_controller() as (stopped, _):
        with Client(f"{server.url},{stopped}", timeout=2, attempts=1, environment={}) as client:
            task = client.task("t")
            client._transport._at = 1
            with pytest.raises(ConnectionFailed, match=f"{stopped}: no answer within 2 s"):
                task.cancel()
    assert [method for method, _, _ in server.requests] == ["GET"]


def test_a_request_that_must_not_overlap_is_repeated_after_the_first_has_ended(server: Server) -> None:
    server.answers = [reply(200, {"token": "t"})]
    with stopped_controller() as (stopped, _):
        with Client(f"{stopped},{server.url}", timeout=3, attempts=2, environment={}) as client:
            begin = time.monotonic()
            client._transport.json("POST", "/tasks/t/attachment", is_repeatable=True, may_overlap=False)
            assert time.monotonic() - begin >= 3
    assert len(server.requests) == 1


def test_a_request_that_waits_at_the_controller_or_carries_a_file_is_not_asked_for_twice() -> None:
    assert patience_seconds({}, None, True) == 1.5
    assert patience_seconds({"wait": None}, {"name": "t"}, True) == 1.5
    assert patience_seconds({"wait": "20s"}, None, True) is None
    assert patience_seconds({"forecast": True}, {}, True) is None
    assert patience_seconds({}, b"chunk", True) is None
    assert patience_seconds({}, None, False) is None


def test_no_answer_is_of_an_older_state_than_the_one_before(server: Server) -> None:
    behind = problem(503, "state_behind", **{"Retry-After": "0"})
    server.answers = [
        reply(201, TASK, headers={"Headroom-Event-Seq": "7"}),
        behind,
        reply(200, {"version": "1"}, headers={"Headroom-Event-Seq": "5"}),
        behind,
        reply(200, {"version": "2"}),
    ]
    with Client(server.url, attempts=2, environment={}) as client:
        client.submit(["true"])
        assert client.version() == {"version": "1"}
        server.answers.insert(0, behind)
        # The store was restored: the caller learns it once, and then reads what is there.
        with pytest.raises(ApiError) as refused:
            client.version()
        assert refused.value.code == "state_behind"
        assert client.version() == {"version": "2"}
    sent = [headers.get("Headroom-Min-Event-Seq") for _, _, headers in server.requests]
    assert sent == [None, "7", "7", "7", "7", None]


def test_requests_and_problems_pass_over_a_unix_socket(server: Server, tmp_path: Path) -> None:
    server.answers = [reply(201, TASK), reply(200, TASK), problem(409, "conflict")]
    # The same server, behind a socket in the file system.
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "a b.sock"))
        listening.listen()
        threading.Thread(target=accept_all, args=(listening, server), daemon=True).start()
        with Client(f"unix://{quote(str(tmp_path))}/a%20b.sock", environment={}) as client:
            task = client.submit(["true"])
            assert task.id == "t"
            with pytest.raises(ApiError):
                client.task("t").cancel()
    assert [path for _, path, _ in server.requests][:2] == ["/api/v1/tasks", "/api/v1/tasks/t"]
    with pytest.raises(ConnectionFailed, match="the socket does not exist"):
        Client(f"unix://{tmp_path}/none", attempts=1, environment={}).version()


def accept_all(listening: socket.socket, server: Server) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        server.process_request(connection, ("unix", 0))


def test_two_submissions_have_two_keys(server: Server) -> None:
    server.answers = [reply(201, TASK)]
    client = Client(server.url, environment={})
    client.submit(["true"])
    client.submit(["true"])
    assert len({headers["Idempotency-Key"] for _, _, headers in server.requests}) == 2


def test_a_request_that_could_act_twice_is_not_repeated(server: Server) -> None:
    server.answers = [reply(200, TASK), hang_up]
    task = Client(server.url, environment={}).task("t")
    with pytest.raises(ConnectionFailed) as failure:
        task.cancel()
    assert not failure.value.is_unsent
    assert [method for method, _, _ in server.requests] == ["GET", "DELETE"]


def test_a_busy_controller_is_asked_again_after_the_requested_time(server: Server) -> None:
    server.answers = [problem(429, "rate_limited", **{"Retry-After": "0"}), reply(200, {"version": "1"})]
    assert Client(server.url, environment={}).version() == {"version": "1"}
    server.answers = [problem(503, "store_full", **{"Retry-After": "0"})]
    with pytest.raises(ApiError) as refusal:
        Client(server.url, attempts=2, environment={}).version()
    assert (refusal.value.code, refusal.value.status, refusal.value.retry_after_seconds) == (
        "store_full",
        503,
        0,
    )
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "answer", [reply(200, b"<html>", "text/html"), reply(404, b"<html>", "text/html"), reply(302, b"", "")]
)
def test_another_server_is_recognised(server: Server, answer: Answer) -> None:
    server.answers = [answer]
    with pytest.raises(UnexpectedAnswer, match="Is this the address of a controller"):
        Client(server.url, environment={}).version()


def test_no_answer_in_time_is_an_error(server: Server) -> None:
    gate = threading.Event()
    server.answers = [lambda handler: (gate.wait(20), hang_up(handler))[1]]
    with pytest.raises(ConnectionFailed, match="no answer within 0.2 s"):
        Client(server.url, timeout=0.2, attempts=1, environment={}).version()
    gate.set()


def test_requests_share_a_connection_and_send_the_token(server: Server) -> None:
    ports = set()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        ports.add(handler.client_address[1])
        reply(200, {"version": "1"})(handler)

    server.answers = [answer]
    client = Client(server.url, "secret", environment={})
    for _ in range(5):
        client.version()
    assert len(ports) == 1
    assert {headers["Authorization"] for _, _, headers in server.requests} == {"Bearer secret"}


def test_an_idle_connection_that_the_controller_closed_is_replaced(server: Server) -> None:
    def answer_and_close(handler: BaseHTTPRequestHandler) -> None:
        reply(201, TASK)(handler)
        handler.close_connection = True

    server.answers = [answer_and_close]
    client = Client(server.url, attempts=1, environment={})
    for _ in range(3):
        client.submit(["true"])
        until("the connection is closed", lambda: all(map(_is_closed, client._transport._addresses[0]._idle)))


def test_a_short_answer_takes_little_memory(server: Server) -> None:
    server.answers = [reply(200, {"version": "1"})]
    client = Client(server.url, environment={})
    client.version()
    tracemalloc.start()
    try:
        client.version()
        assert tracemalloc.get_traced_memory()[1] < 2 * 1024 * 1024
    finally:
        tracemalloc.stop()
