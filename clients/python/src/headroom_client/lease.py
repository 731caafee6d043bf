"""A lease: VRAM that is reserved as long as a program on this machine needs it."""

from __future__ import annotations

import threading
import time
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Type, Union

from . import models
from .attachment import Attachment, NotAttached, has_loaded_cuda
from .errors import ApiError, ConnectionFailed, HeadroomError, TaskFailed
from .keeper import KeeperProcess
from .renewal import Renewal
from .task import MAX_POLL_SECONDS, POLL_SECONDS, Task, _is_temporary

if TYPE_CHECKING:
    from .client import Client


class ReservationOnly(UserWarning):
    """`attach=True` had no effect: this process is not registered at the GPU server."""


class Lease:
    """A context manager: reserves VRAM, waits until the lease is resident, renews it until the block ends.

    Without `attach`, or where this process cannot be attached, a lease is a reservation: the
    controller does not see the program that uses it.
    """

    def __init__(
        self, client: Client, request: Mapping[str, Any], timeout: Optional[float], attach: bool = False
    ) -> None:
        self._client = client
        self._request = request
        self._timeout = timeout
        self._task: Optional[Task] = None
        self._wants_gpu = True
        self._wants_attachment = attach
        self._attachment: Optional[Attachment] = None
        self._renewal: Union[Renewal, KeeperProcess, None] = None
        self._failure: Optional[Exception] = None
        self._thread: Optional[threading.Thread] = None
        self.reservation_reason: Optional[str] = (
            "attach=True was not given" if not attach else "it has no place yet"
        )
        """Why the lease is only a reservation; None while this process is attached."""

    def __enter__(self) -> Lease:
        self._task = self._client._submit(self._request)
        try:
            self._keep(self._task)
            self._wait_for_place(self._task)
            if self._wants_attachment:
                self._attach()
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
            raise HeadroomError("The lease has not started: use it in a with statement.")
        return self._task

    @property
    def node_name(self) -> str:
        """Name of the node where the lease is placed."""
        return self._placement()["node_name"]

    @property
    def gpus(self) -> List[int]:
        """Indexes of its GPUs on that node."""
        return self._placement()["gpus"]

    @property
    def wants_gpu(self) -> bool:
        """Whether the lease wants the GPU. Set it to False in a pause, so that the lease may be swapped out.

        For an attached process the GPU server measures this until it is set for the first time.
        """
        return self._wants_gpu

    @wants_gpu.setter
    def wants_gpu(self, value: bool) -> None:
        self._wants_gpu = value
        if self._attachment is not None:
            self._attachment.signal(value)
        else:
            self._report(value)

    @property
    def is_attached(self) -> bool:
        """Whether this process is the process of the lease: its VRAM counts, and it is stopped
        while swapped out.
        """
        return self._attachment is not None

    def check(self) -> None:
        """Raises TaskFailed if the lease has ended, for example because it could not be renewed in
        time.
        """
        if self._failure is not None:
            raise self._failure

    def _placement(self) -> models.TaskPlacement:
        placement = self.task.placement
        if placement is None:
            raise TaskFailed(f"Lease {self.task.id} is not placed: it is {self.task.state}.", None)
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
                raise TimeoutError(f"Lease {task.id} was not placed within {self._timeout:g} s.{why}")
            time.sleep(pause)
            pause = min(MAX_POLL_SECONDS, pause * 1.25)

    def _keep(self, task: Task) -> None:
        """Starts a process that renews the lease, because a stopped process cannot renew it."""
        transport = self._client._transport
        if self._wants_attachment:
            self._renewal = KeeperProcess(transport.connection, task.id, self._failed)
            return
        renewal = Renewal(transport, task.id)
        self._thread = threading.Thread(
            target=renewal.run, args=(self._failed,), name="headroom lease", daemon=True
        )
        self._thread.start()
        self._renewal = renewal

    def _attach(self) -> None:
        """Makes this process the process of the lease, or warns that the lease is only a
        reservation.
        """
        try:
            # A new token replaces the one before.
            place = self._client._transport.json(
                "POST", f"{self.task._path()}/attachment", is_repeatable=True, may_overlap=False
            )
            self._report(None)
            self._attachment = Attachment.begin(place["socket"], place["token"])
        except (ApiError, NotAttached) as error:
            self._report(self._wants_gpu)
            self.reservation_reason = str(error)
            warnings.warn(f"the lease is only a reservation: {error}", ReservationOnly, stacklevel=3)
            return
        self.reservation_reason = None
        if has_loaded_cuda():
            warnings.warn(
                "this process has loaded CUDA already, so it may not use the GPUs of the lease", stacklevel=3
            )

    def _report(self, busy: Optional[bool]) -> None:
        if self._renewal is not None:
            self._renewal.report(busy)

    def _failed(self, error: HeadroomError) -> None:
        self._failure = TaskFailed(f"The lease is over: {error}", None)

    def _release(self) -> None:
        """Ends the lease; if the controller cannot be reached, the lease expires by itself."""
        if self._attachment is not None:
            self._attachment.end()
            self._attachment = None
        if self._renewal is not None:
            self._renewal.end()
        try:
            self.task.cancel()
        except HeadroomError:
            pass
        if self._thread is not None:
            self._thread.join()
