"""Renews a lease in a process of its own: the process that uses the lease is stopped while it is swapped out.

`KeeperProcess` starts it; `main` is the process. It reads lines of JSON from its standard input:
first url, token and task_id, then `{"busy": …}` for what it reports from now on. `{"release":
true}` ends it. Otherwise the end of its input means that the process that uses the lease has ended:
it ends the lease.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Mapping, Optional

from .errors import HeadroomError
from .renewal import Renewal
from .settings import Connection
from .transport import Transport

TIMEOUT_SECONDS = 30.0
ATTEMPTS = 4
# The package need not be installed where the interpreter looks for it.
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from headroom_client.keeper import main; main()"


class KeeperProcess:
    """Renews the lease while this process lives, even while it is stopped."""

    def __init__(
        self, connection: Connection, task_id: str, on_failure: Callable[[HeadroomError], None]
    ) -> None:
        if not sys.executable:
            raise HeadroomError("sys.executable is not set, so no process can be started to renew the lease.")
        package = str(Path(__file__).parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for this process only.
            start_new_session=True,
        )
        self._send({"url": connection.url, "token": connection.token, "task_id": task_id})
        self._thread = threading.Thread(
            target=self._listen, args=(on_failure,), name="headroom lease", daemon=True
        )
        self._thread.start()

    def report(self, busy: Optional[bool]) -> None:
        """None: the GPU server measures whether the lease wants the GPU."""
        self._send({"busy": busy})

    def end(self) -> None:
        self._send({"release": True})
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        pipe = self._process.stdin
        if pipe is not None:
            try:
                pipe.write(json.dumps(message) + "\n")
                pipe.flush()
            except (OSError, ValueError):
                pass  # it has ended; `_listen` knows why

    def _listen(self, on_failure: Callable[[HeadroomError], None]) -> None:
        is_released = False
        for line in self._process.stdout or ():
            message = json.loads(line)
            is_released = is_released or bool(message.get("released"))
            if "failure" in message:
                on_failure(HeadroomError(message["failure"]))
        if not is_released:
            on_failure(HeadroomError("the process that renews it has ended"))


def main() -> None:
    start = json.loads(sys.stdin.readline())
    transport = Transport(
        Connection(start["url"], start["token"]), timeout=TIMEOUT_SECONDS, attempts=ATTEMPTS
    )
    renewal = Renewal(transport, start["task_id"])
    renewing = threading.Thread(target=renewal.run, args=(_print_failure,), daemon=True)
    renewing.start()
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("release"):
            renewal.end()
            print(json.dumps({"released": True}), flush=True)
            return
        renewal.report(message.get("busy"))
    renewal.end()
    renewal.release()


def _print_failure(error: HeadroomError) -> None:
    print(json.dumps({"failure": str(error)}), flush=True)
