"""A lease whose process is known to the GPU server of this host."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from conftest import START_SECONDS, Cluster, until

from headroom_client import ApiError, Client, ReservationOnly, Task

BEGIN = """
import json, os, sys, time
from headroom_client import Client
client = Client(os.environ["URL"], environment={})
def say(**what): print(json.dumps(what), flush=True)
"""


class Program:
    """A Python program that prints lines of JSON."""

    def __init__(self, cluster: Cluster, text: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN + textwrap.dedent(text)],
            env={**os.environ, "URL": cluster.url},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> Dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the program has ended"
        result: Dict[str, Any] = json.loads(line)
        return result

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @property
    def is_stopped(self) -> bool:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        return stat.rpartition(")")[2].split()[0] == "T"


def is_out(client: Client, task: Task) -> bool:
    """
    Asks for the swap-out of a task that is not out. The start of a program may count as use again after the
    task was measured as idle, which ends a swap-out that has begun.
    """
    if task.refresh().residency == "swapped_out":
        return True
    try:
        client._transport.json("POST", f"/tasks/{task.id}/swap-out")
    except ApiError as error:
        assert error.status == 409
    return False


@pytest.fixture
def programs(cluster: Cluster) -> Iterator[Any]:
    started: List[Program] = []

    def start(text: str) -> Program:
        started.append(Program(cluster, text))
        return started[-1]

    yield start
    for program in started:
        program.process.kill()
        program.process.send_signal(signal.SIGCONT)
        program.process.communicate()


HOLD = """
before = os.environ.get("CUDA_VISIBLE_DEVICES")
with client.lease(vram_mib=10_000, name="attached", attach=True, timeout=60) as lease:
    names = ("CUDA_VISIBLE_DEVICES", "HEADROOM_GPUS", "HEADROOM_TASK_ID", "HEADROOM_VRAM_MIB")
    say(id=lease.task.id, attached=lease.is_attached, reason=lease.reservation_reason,
        env={name: os.environ.get(name) for name in names})
    while True:
        line = sys.stdin.readline()
        if line == "busy\\n":
            lease.wants_gpu = True
        elif line == "idle\\n":
            lease.wants_gpu = False
        else:
            break
        say(busy=lease.wants_gpu)
say(after=os.environ.get("CUDA_VISIBLE_DEVICES") == before)
"""


def test_an_attached_lease_sets_the_environment_and_ends_without_harm(client: Client, programs: Any) -> None:
    program = programs(HOLD)
    begun = program.line()
    assert (begun["attached"], begun["reason"]) == (True, None)
    assert begun["env"] == {
        "CUDA_VISIBLE_DEVICES": "",
        "HEADROOM_GPUS": "0",
        "HEADROOM_TASK_ID": begun["id"],
        "HEADROOM_VRAM_MIB": "10000",
    }
    program.go_on()
    assert program.line() == {"after": True}
    assert program.process.wait(30) == 0
    until("the lease has ended", lambda: client.task(begun["id"]).is_final)


def test_the_process_is_stopped_while_its_lease_is_swapped_out(
    cluster: Cluster, client: Client, programs: Any
) -> None:
    program = programs(HOLD)
    task = client.task(program.line()["id"])
    until("it is swapped out", lambda: is_out(client, task), 2 * START_SECONDS)
    assert program.is_stopped
    # The lease is renewed by a process that is not stopped, and a new server continues with both.
    cluster.restart_server()
    until("its server is back", lambda: client.nodes()[0]["status"] == "up")
    assert task.refresh().residency == "swapped_out" and program.is_stopped
    client._transport.json("POST", f"/tasks/{task.id}/swap-in")
    until("it is back", lambda: task.refresh().residency == "resident" and not program.is_stopped)
    program.go_on()
    assert program.line() == {"after": True}
    assert program.process.wait(30) == 0


def test_the_end_of_the_lease_ends_its_process_and_the_end_of_the_process_the_lease(
    client: Client, programs: Any
) -> None:
    program = programs(HOLD)
    task = client.task(program.line()["id"]).cancel()
    assert program.process.wait(60) == -signal.SIGKILL
    until("the lease has ended", lambda: task.refresh().is_final)
    program = programs(HOLD)
    task = client.task(program.line()["id"])
    program.process.kill()
    until("the lease has ended", lambda: task.refresh().is_final)


def test_a_signal_replaces_the_measurement(client: Client, programs: Any) -> None:
    program = programs(HOLD)
    task = client.task(program.line()["id"])
    for word, wants in (("busy", True), ("idle", False)):
        program.process.stdin.write(f"{word}\n")
        program.process.stdin.flush()
        assert program.line() == {"busy": wants}
        until("it is reported", lambda w=wants: task.refresh().data["placement"]["wants_gpu"] is w)


def ask(path: str, line: bytes) -> Dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(path)
        connection.sendall(line + b"\n")
        answer: Dict[str, Any] = json.loads(connection.makefile("rb").readline())
        return answer


def test_a_token_is_good_for_one_process_and_requests_are_checked(client: Client, programs: Any) -> None:
    with client.lease(vram_mib=1, name="guarded", timeout=60) as lease:
        place = client._transport.json("POST", f"/tasks/{lease.task.id}/attachment")
        assert os.stat(place["socket"]).st_mode & 0o007 == 0
        for line in (b"", b"[]", b'{"attach": 1}', b'{"attach": "x", "busy": true}', b"x" * 2000):
            assert "error" in ask(place["socket"], line)
        assert ask(place["socket"], b'{"attach": "wrong"}') == {"error": "unknown or expired token"}
        for line in (b'{"detach": true}', b'{"busy": true}'):
            assert ask(place["socket"], line) == {"error": "this process belongs to no lease"}
        attach = json.dumps({"attach": place["token"]}).encode()
        assert ask(place["socket"], attach)["attached"] is True
        assert ask(place["socket"], attach) == {"error": "unknown or expired token"}
        with pytest.raises(ApiError, match="does not accept the process") as refusal:
            client._transport.json("POST", f"/tasks/{lease.task.id}/attachment")
        assert refusal.value.status == 409
        # Another process cannot speak for this one.
        script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        script += "s.sendall(b'{\"detach\": true}\\n'); print(s.makefile().readline())"
        other = subprocess.run(
            [sys.executable, "-c", script, place["socket"]], capture_output=True, text=True
        )
        assert json.loads(other.stdout) == {"error": "this process belongs to no lease"}
        assert ask(place["socket"], b'{"detach": true}') == {"detached": True}


def test_a_task_with_a_command_takes_no_process(client: Client) -> None:
    task = client.submit(["sleep", "600"], vram_mib=1)
    with pytest.raises(ApiError, match="runs a command"):
        client._transport.json("POST", f"/tasks/{task.id}/attachment")
    task.cancel(now=True)


def test_elsewhere_a_lease_says_that_it_is_a_reservation(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headroom_client import lease as module

    def elsewhere(path: str, token: str) -> Any:
        return real(f"{path}.elsewhere", token)

    real = module.Attachment.begin
    monkeypatch.setattr(module.Attachment, "begin", elsewhere)
    with pytest.warns(ReservationOnly, match="its GPUs are on another host"):
        with client.lease(vram_mib=1, attach=True, timeout=60) as lease:
            assert not lease.is_attached
            assert lease.reservation_reason == "its GPUs are on another host"
