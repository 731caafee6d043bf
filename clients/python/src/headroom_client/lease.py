"""A lease: a place on a GPU for as long as a program here needs it."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Type

from . import models
from .errors import ApiError, ConnectionFailed, HeadroomError, TaskFailed
from .task import MAX_POLL_SECONDS, POLL_SECONDS, Task, _is_temporary

if TYPE_CHECKING:
    from .client import Client

# A lease lasts a minute unless the controller says otherwise; renewal at a third tolerates two failures.
KEEPALIVE_SECONDS = 15.0
MIN_KEEPALIVE_SECONDS = 0.5


class Lease:
    """A context manager that reserves a place, waits until it is in VRAM, and keeps it alive until the end.

    A lease is a reservation: the controller does not see the program that uses it.
    """

    def __init__(self, client: Client, request: Mapping[str, Any], timeout: Optional[float]) -> None:
        self._client = client
        self._request = request
        self._timeout = timeout
        self._task: Optional[Task] = None
        self._wants_gpu = True
        self._changed = threading.Event()
        self._is_over = False
        self._failure: Optional[Exception] = None
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> Lease:
        self._task = self._client._submit(self._request)
        self._thread = threading.Thread(target=self._keep, name="headroom lease", daemon=True)
        self._thread.start()
        try:
            self._wait_for_place(self._task)
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._release()
        if kind is None:
            self.check()

    @property
    def task(self) -> Task:
        """The task of the lease."""
        if self._task is None:
            raise HeadroomError("The lease has not begun: use it in a with statement.")
        return self._task

    @property
    def node_name(self) -> str:
        """Name of the node with its place."""
        return self._placement()["node_name"]

    @property
    def gpus(self) -> List[int]:
        """Indexes of its GPUs on that node."""
        return self._placement()["gpus"]

    @property
    def wants_gpu(self) -> bool:
        """True: it wants the GPU. Set it to False in a pause: the lease may then be swapped out."""
        return self._wants_gpu

    @wants_gpu.setter
    def wants_gpu(self, value: bool) -> None:
        self._wants_gpu = value
        self._changed.set()

    def check(self) -> None:
        """Raises TaskFailed if the lease has ended, for example because it could not be renewed in time."""
        if self._failure is not None:
            raise self._failure

    def _placement(self) -> models.TaskPlacement:
        placement = self.task.placement
        if placement is None:
            raise TaskFailed(f"Lease {self.task.id} has no place: it is {self.task.state}.", None)
        return placement

    def _wait_for_place(self, task: Task) -> None:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        pause = POLL_SECONDS
        while True:
            self.check()
            try:
                task.refresh()
            except (ApiError, ConnectionFailed) as error:
                if not _is_temporary(error):
                    raise
            if task.state == "running" and task.residency == "resident":
                return
            if task.is_final:
                raise TaskFailed(f"The lease is {task.state}: {task.end_reason or task.end_code}", None)
            if deadline is not None and time.monotonic() >= deadline:
                why = "" if task.wait_reason is None else f" {task.wait_reason}"
                raise TimeoutError(f"Lease {task.id} has no place after {self._timeout:g} s.{why}")
            time.sleep(pause)
            pause = min(MAX_POLL_SECONDS, pause * 1.25)

    def _keep(self) -> None:
        """Renews the lease until it is released or over."""
        path = f"{self.task._path()}/keepalive"
        while not self._is_over:
            self._changed.clear()
            pause = MIN_KEEPALIVE_SECONDS
            try:
                kept = self._client._transport.json(
                    "POST", path, body={"busy": self._wants_gpu}, is_repeatable=True
                )
                pause = _keepalive_seconds(kept)
            except (ApiError, ConnectionFailed) as error:
                if not _is_temporary(error):
                    if not self._is_over:
                        self._failure = TaskFailed(f"The lease is over: {error}", None)
                    return
            except HeadroomError as error:
                self._failure = error
                return
            self._changed.wait(pause)

    def _release(self) -> None:
        """Ends the lease; if the controller cannot be reached, it ends by itself when its time is over."""
        self._is_over = True
        self._changed.set()
        try:
            self.task.cancel()
        except HeadroomError:
            pass
        if self._thread is not None:
            self._thread.join()


def _keepalive_seconds(kept: models.KeptLease) -> float:
    ends = kept["expires_at"]
    if ends is None:
        return KEEPALIVE_SECONDS
    left = (_instant(ends) - _instant(kept["at"])).total_seconds()
    return max(MIN_KEEPALIVE_SECONDS, min(KEEPALIVE_SECONDS, left / 3))


def _instant(text: str) -> datetime:
    # Python 3.10 and older do not read the Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
