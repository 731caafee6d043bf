"""Commands in running tasks, and connections to their ports, on a real cluster."""

from __future__ import annotations

import io
import select
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Callable, Iterator, List

import pytest
from conftest import Cluster, free_port, until

from headroom_client import ApiError, ChannelCut, Client, HeadroomError, Task, TaskFailed

# Listens after a second, and sends back what it gets, in capitals, once its client has finished.
ECHO = """
import socket, sys, time
time.sleep(1)
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        one, _ = listener.accept()
        with one:
            data = b""
            while True:
                piece = one.recv(65536)
                if not piece:
                    break
                data += piece
            one.sendall(data.upper())
"""


def running(client: Client, command: List[str], **more: object) -> Task:
    task = client.submit(command, vram_mib=100, **more)  # type: ignore[arg-type]
    until("the task runs", lambda: task.refresh().state == "running")
    return task


@pytest.fixture
def task(client: Client) -> Iterator[Task]:
    task = running(client, ["sleep", "600"], env={"GREETING": "good day"})
    yield task
    task.cancel(now=True)


def test_a_command_runs_in_a_task_with_its_variables(task: Task) -> None:
    result = task.exec(["sh", "-c", "echo $GREETING $HEADROOM_TASK_ID; echo wrong >&2; exit 3"])
    assert result == (3, f"good day {task.id}\n", "wrong\n")
    assert task.exec("printf '%s|' 'two words' end").stdout == "two words|end|"


def test_a_failed_command_raises_with_check(task: Task) -> None:
    with pytest.raises(TaskFailed, match="ended with exit code 2: second") as failure:
        task.exec(["sh", "-c", "printf 'first\nsecond\n' >&2; exit 2"], check=True)
    assert failure.value.exit_code == 2
    assert task.exec(["sh", "-c", "kill -9 $$"]).exit_code == 137
    assert task.exec(["no-such-program"]).exit_code == 127


def test_megabytes_pass_in_both_directions_at_once(task: Task) -> None:
    content = bytes(range(256)) * 40_000
    stdout = io.BytesIO()
    assert task.exec(["cat"], input=content, stdout=stdout) == (0, "", "")
    assert stdout.getvalue() == content
    assert task.exec(["cat"], input=io.BytesIO(content[:100]), stdout=io.BytesIO()).exit_code == 0
    assert task.exec(["cat"], input="text, é").stdout == "text, é"
    # A command that does not read all of its input.
    assert task.exec(["head", "-c", "3"], input=content[65:] * 2).stdout == "ABC"


def test_a_command_ends_at_its_timeout_and_nothing_of_it_is_left(task: Task) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"did not end within 0\.5 s"):
        task.exec(["sleep", "604"], timeout=0.5)
    assert time.monotonic() - began < 10
    is_left = ["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 60[4]'"]
    until("the command has ended", lambda: task.exec(is_left).stdout == "0\n")


def test_a_command_is_cut_off_when_its_task_ends(client: Client) -> None:
    task = running(client, ["sleep", "600"])
    threading.Timer(1, lambda: task.cancel(now=True)).start()
    with pytest.raises(ChannelCut, match="ended"):
        task.exec(["sleep", "600"], timeout=60)


def test_a_task_that_does_not_run_refuses_a_command(client: Client) -> None:
    task = client.submit(["true"], vram_mib=1, name="over")
    task.wait(60)
    with pytest.raises(ApiError, match="completed"):
        task.exec(["true"])


def test_a_local_port_leads_to_a_port_of_the_task(client: Client) -> None:
    port = free_port()
    task = running(client, [sys.executable, "-c", ECHO, str(port)])
    content = b"abc" * 700_000
    with task.port_forward(port, timeout=60) as forwarded:
        assert forwarded.address == f"127.0.0.1:{forwarded.port}"
        answers = []

        def ask() -> None:
            with socket.create_connection((forwarded.host, forwarded.port), timeout=60) as sock:
                sock.sendall(content)
                sock.shutdown(socket.SHUT_WR)
                answers.append(sock.makefile("rb").read())

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert answers == [content.upper()] * 3
        assert forwarded.last_error is None
        local = forwarded.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", local))
    task.cancel(now=True)


def test_http_of_a_task_is_read_here(client: Client) -> None:
    port = free_port()
    task = running(client, [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)])
    with task.port_forward(port, timeout=60) as forwarded:
        with urllib.request.urlopen(forwarded.url, timeout=30) as answer:
            assert answer.status == 200
    task.cancel(now=True)


def test_a_port_on_which_the_task_does_not_listen_is_refused_with_the_reason(task: Task) -> None:
    port = free_port()
    with pytest.raises(TimeoutError, match=f"Port {port} was not reachable within 0.5 s: No process of task"):
        task.port_forward(port, timeout=0.5).__enter__()
    with task.port_forward(port) as forwarded:
        with socket.create_connection((forwarded.host, forwarded.port), timeout=30) as sock:
            assert sock.recv(1) == b""
        assert "listens on TCP port" in str(forwarded.last_error)


def test_connections_end_with_the_block(client: Client) -> None:
    port = free_port()
    task = running(client, [sys.executable, "-c", ECHO, str(port)])
    with task.port_forward(port, timeout=60) as forwarded:
        sock = socket.create_connection((forwarded.host, forwarded.port), timeout=30)
        sock.sendall(b"half")
    try:
        assert sock.recv(1) == b""
    except ConnectionResetError:
        pass  # The connection had bytes that the task did not get.
    sock.close()
    with pytest.raises(HeadroomError, match="with block"):
        print(forwarded.port)
    task.cancel(now=True)


class TlsRelay:
    """Passes one connection; OpenSSL allows one thread at a time."""

    def __init__(self, near: ssl.SSLSocket, far: socket.socket) -> None:
        self.near, self.far = near, far
        self.lock = threading.Lock()
        near.setblocking(False)
        for way in (self.to_far, self.to_near):
            threading.Thread(target=self.run, args=[way], daemon=True).start()

    def run(self, way: Callable[[], None]) -> None:
        try:
            way()
        except OSError:
            pass
        finally:
            for each in (self.near, self.far):
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # It has ended.

    def to_far(self) -> None:
        while True:
            try:
                with self.lock:
                    piece = self.near.recv(65536)
            except ssl.SSLWantReadError:
                select.select([self.near], [], [], 0.1)
                continue
            if not piece:
                return
            self.far.sendall(piece)

    def to_near(self) -> None:
        for piece in iter(lambda: self.far.recv(65536), b""):
            while piece:
                try:
                    with self.lock:
                        piece = piece[self.near.send(piece) :]
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    select.select([], [self.near], [], 0.1)


@pytest.fixture
def tls_url(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A proxy with TLS in front of the controller."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    request = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *request, *names, *files], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
                near = context.wrap_socket(plain, server_side=True)
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", cluster.port))
            TlsRelay(near, far)

    threading.Thread(target=serve, daemon=True).start()
    yield f"https://localhost:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_a_command_and_a_port_are_reached_over_tls(task: Task, client: Client, tls_url: str) -> None:
    content = bytes(range(256)) * 8_000
    port = free_port()
    echo = running(client, [sys.executable, "-c", ECHO, str(port)])
    with Client(tls_url, environment={}) as secure:
        stdout = io.BytesIO()
        assert secure.task(task.id).exec(["cat"], input=content, stdout=stdout).exit_code == 0
        assert stdout.getvalue() == content
        with secure.task(echo.id).port_forward(port, timeout=60) as forwarded:
            with socket.create_connection((forwarded.host, forwarded.port), timeout=60) as sock:
                sock.sendall(b"abc" * 100_000)
                sock.shutdown(socket.SHUT_WR)
                assert sock.makefile("rb").read() == b"ABC" * 100_000
    echo.cancel(now=True)
