"""Registers this process for a lease at the GPU server of this host."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any, Dict, Mapping, Optional

from .errors import HeadroomError

TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 65_536
# A process that is about to be stopped for a swap is told to try again; it does so after its return.
DETACH_ATTEMPTS = 600
DETACH_PAUSE_SECONDS = 0.1


class NotAttached(HeadroomError):
    """This process cannot become the process of the lease; the message has the reason."""


class Attachment:
    """Makes this process the process of a lease, from `begin` to `end`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._pid = os.getpid()
        self._before: Dict[str, Optional[str]] = {}

    @classmethod
    def begin(cls, path: str, token: str) -> Attachment:
        """Registers the calling process and sets its environment. Raises NotAttached."""
        attachment = cls(path)
        environment = attachment._ask({"attach": token}).get("environment")
        attachment._set(environment if isinstance(environment, dict) else {})
        return attachment

    def signal(self, is_busy: bool) -> None:
        """Reports whether the process wants the GPU. Afterwards its use is no longer measured."""
        if os.getpid() == self._pid:
            self._ask({"busy": is_busy})

    def end(self) -> None:
        """Detaches the process from the lease. A fork of the process was never attached."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
        if os.getpid() != self._pid:
            return
        for _ in range(DETACH_ATTEMPTS):
            try:
                self._ask({"detach": True})
                return
            except NotAttached as error:
                if "try again" not in str(error):
                    return
            time.sleep(DETACH_PAUSE_SECONDS)

    def _set(self, environment: Mapping[str, Any]) -> None:
        for name, value in environment.items():
            if isinstance(name, str) and isinstance(value, str):
                self._before[name] = os.environ.get(name)
                os.environ[name] = value

    def _ask(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        """Sends one line and returns the answer. Raises NotAttached."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(TIMEOUT_SECONDS)
                connection.connect(self._path)
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("rb") as answers:
                    answer = json.loads(answers.readline(MAX_ANSWER_BYTES) or b"{}")
        except FileNotFoundError as error:
            raise NotAttached("its GPUs are on another host") from error
        except PermissionError as error:
            raise NotAttached(f"{self._path}: permission denied. Are you in the group headroom?") from error
        except (OSError, ValueError) as error:
            raise NotAttached(f"{self._path}: {error}") from error
        if not isinstance(answer, dict) or "error" in answer or not answer:
            why = answer.get("error") if isinstance(answer, dict) else None
            raise NotAttached(f"the GPU server refuses: {why or 'no answer'}")
        return answer


def has_loaded_cuda() -> bool:
    """CUDA reads CUDA_VISIBLE_DEVICES once, when a program first uses it."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return any("libcuda.so" in line for line in maps)
    except OSError:
        return False
