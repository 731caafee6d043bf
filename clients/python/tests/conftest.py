"""A real cluster for the tests: broker, controller and one GPU server with a declared GPU, as processes."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import pytest

from headroom_client import Client

ROOT = Path(__file__).parents[3]
START_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(what: str, is_true: callable, seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


class Cluster:
    """`controller` can be killed and started again; its address stays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nats_port, self.port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._processes: List[subprocess.Popen] = []
        self._controller: Optional[subprocess.Popen] = None
        self._server: Optional[subprocess.Popen] = None

    def start(self) -> None:
        self._start("broker", ["nats-server", "-a", "127.0.0.1", "-p", str(self.nats_port)], {})
        self.start_controller()
        inventory = self.folder / "gpus.yaml"
        inventory.write_text("gpus: [{ vram_mib: 16Gi }]\n", encoding="utf-8")
        self.start_server()
        with Client(self.url, environment={}) as client:
            until("the node is up", lambda: any(node["status"] == "up" for node in client.nodes()))

    def start_controller(self) -> None:
        self._controller = self._start(
            "controller",
            self._headroom("serve"),
            {
                "CONTROLLER_DATA_DIR": str(self.folder / "controller"),
                "CONTROLLER_HTTP_HOST": "127.0.0.1",
                "CONTROLLER_HTTP_PORT": str(self.port),
                "CONTROLLER_STORE_KIND": "trial",
            },
        )
        until("the controller is ready", self._is_ready)

    def start_server(self) -> None:
        identity = ["--task-user", "root"] if os.getuid() == 0 else ["--tasks-as-me"]
        self._server = self._start(
            "server",
            [
                *self._headroom("gpu-server", "--device", "process"),
                *("--inventory", str(self.folder / "gpus.yaml"), "--idle-after", "1s"),
                *("--allow-exec", "--allow-attach"),
                *identity,
            ],
            {"NODE_NAME": "alpha", "NODE_STATE_DIR": str(self.folder / "server")},
        )

    def restart_server(self) -> None:
        assert self._server is not None
        self._server.kill()
        self._server.wait()
        self.start_server()

    def kill_controller(self) -> None:
        assert self._controller is not None
        self._controller.kill()
        self._controller.wait()

    def end(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()

    def _headroom(self, *args: str) -> List[str]:
        given = os.environ.get("HEADROOM_COMMAND")
        if given:
            return [*shlex.split(given), *args]
        guard = ROOT / "cli/require-node.mjs"
        return ["node", "--import", str(guard), str(ROOT / "cli/main.ts"), *args]

    def _start(self, name: str, command: List[str], env: Dict[str, str]) -> subprocess.Popen:
        log = (self.folder / f"{name}.log").open("ab")
        path = f"{ROOT / 'node_modules/.bin'}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/sbin"
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith(("CONTROLLER_", "NODE_", "HEADROOM_"))
        }
        variables = {
            **clean,
            "PATH": path,
            "CONTROLLER_NATS_URL": f"nats://127.0.0.1:{self.nats_port}",
            **env,
        }
        process = subprocess.Popen(command, stdout=log, stderr=log, env=variables)
        self._processes.append(process)
        return process

    def _is_ready(self) -> bool:
        assert self._controller is not None
        if self._controller.poll() is not None:
            pytest.fail((self.folder / "controller.log").read_text(encoding="utf-8")[-2000:])
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if shutil.which("nats-server", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin") is None:
        pytest.skip("nats-server is not installed")
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.start()
        yield running
    finally:
        running.end()


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.url, environment={}) as client:
        yield client
