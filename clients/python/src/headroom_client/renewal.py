"""Renews a lease until it ends."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Callable, Optional

from . import models
from .errors import ApiError, ConnectionFailed, HeadroomError
from .task import _is_temporary
from .transport import Transport, segment

# A lease lasts a minute unless the controller says otherwise; renewal at a third tolerates two failures.
KEEPALIVE_SECONDS = 15.0
MIN_KEEPALIVE_SECONDS = 0.5


class Renewal:
    """Set `busy` to report whether the lease wants the GPU; None: the GPU server measures it."""

    def __init__(self, transport: Transport, task_id: str) -> None:
        self._transport = transport
        self._path = f"/tasks/{segment(task_id)}"
        self._busy: Optional[bool] = True
        self._changed = threading.Event()
        self._is_over = False

    def report(self, busy: Optional[bool]) -> None:
        self._busy = busy
        self._changed.set()

    def end(self) -> None:
        self._is_over = True
        self._changed.set()

    def run(self, on_failure: Callable[[HeadroomError], None]) -> None:
        """Returns when the lease has ended or can no longer be renewed."""
        while not self._is_over:
            self._changed.clear()
            pause = MIN_KEEPALIVE_SECONDS
            try:
                body = {} if self._busy is None else {"busy": self._busy}
                kept = self._transport.json("POST", f"{self._path}/keepalive", body=body, is_repeatable=True)
                pause = _keepalive_seconds(kept)
            except HeadroomError as error:
                is_transient = isinstance(error, (ApiError, ConnectionFailed)) and _is_temporary(error)
                if not is_transient:
                    if not self._is_over:
                        on_failure(error)
                    return
            self._changed.wait(pause)

    def release(self) -> None:
        """Ends the lease; if the controller cannot be reached, the lease expires by itself."""
        try:
            self._transport.json("DELETE", self._path, is_repeatable=True)
        except HeadroomError:
            pass


def _keepalive_seconds(kept: models.KeptLease) -> float:
    ends = kept["expires_at"]
    if ends is None:
        return KEEPALIVE_SECONDS
    left = (_instant(ends) - _instant(kept["at"])).total_seconds()
    return max(MIN_KEEPALIVE_SECONDS, min(KEEPALIVE_SECONDS, left / 3))


def _instant(text: str) -> datetime:
    # Python 3.10 and older do not read the Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
