"""A task that moves its data out of VRAM itself (swap_method="hooks"), which is faster than the driver's
method where the task keeps pinned buffers.

from headroom_client.swap import PinnedTensors, SwapHooks

tensors = PinnedTensors(model.parameters())
hooks = SwapHooks(suspend=tensors.suspend, resume=tensors.resume)
...
with hooks.using_gpu():
    answer(request)

The server tells the task over its control socket when to move its data. The task keeps running
meanwhile, so it must use the data only inside `using_gpu`.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

_RETRY_SECONDS = 0.5


class SwapHooks:
    """Handles the swap commands of the GPU server on its own thread.

    suspend() moves the data out of VRAM and returns the MiB per GPU that stay, or None; resume()
    moves it back. Neither is called while a block of `using_gpu` runs. If suspend raises an
    exception, the server falls back to the driver's method.
    """

    def __init__(
        self,
        suspend: Callable[[], Optional[int]],
        resume: Callable[[], None],
        *,
        path: Optional[str] = None,
    ) -> None:
        """path: path of the control socket, by default HEADROOM_SOCKET; without one the task is
        never suspended.
        """
        self._suspend = suspend
        self._resume = resume
        self._path = path or os.environ.get("HEADROOM_SOCKET")
        self._changed = threading.Condition()
        self._users = 0
        self._is_resident = True
        self._wants = False
        self._socket: Optional[socket.socket] = None
        self._is_closed = False
        if self._path:
            threading.Thread(target=self._serve, name="headroom-swap", daemon=True).start()

    @property
    def is_resident(self) -> bool:
        """False while the data is out of VRAM."""
        return self._is_resident

    @contextmanager
    def using_gpu(self, timeout: Optional[float] = None) -> Iterator[None]:
        """Waits until the data is in VRAM, and keeps it there inside the block.

        Raises TimeoutError.
        """
        with self._changed:
            if not self._is_resident:
                self._say({"want": True})
                self._wants = True
            if not self._changed.wait_for(lambda: self._is_resident, timeout):
                raise TimeoutError("the data did not return to VRAM in time")
            self._wants = False
            if self._users == 0:
                self._say({"busy": True})
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                if self._users == 0:
                    self._say({"busy": False})
                self._changed.notify_all()

    def close(self) -> None:
        """Stops handling swap commands."""
        self._is_closed = True
        if self._socket is not None:
            self._socket.close()

    def _serve(self) -> None:
        while not self._is_closed:
            try:
                self._talk()
            except OSError:
                pass
            # The server is away, or is being replaced: orders come again after its return.
            time.sleep(_RETRY_SECONDS)

    def _talk(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(self._path))
            with self._changed:
                self._socket = connection
                self._say({"swaps": True})
                self._say({"busy": self._users > 0 or self._wants})
            for line in connection.makefile("r", encoding="utf-8"):
                order: Mapping[str, Any] = json.loads(line)
                if "suspend" in order:
                    self._obey_suspend()
                elif "resume" in order:
                    self._obey_resume()

    def _obey_suspend(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._users == 0)
            kept: Optional[int] = None
            if self._is_resident:
                try:
                    kept = self._suspend()
                except Exception:
                    # Unanswered: the server takes the driver's method.
                    logging.getLogger(__name__).exception("the data was not moved out of VRAM")
                    return
                self._is_resident = False
            self._say({"suspended": {} if kept is None else {"resident_mib": kept}})

    def _obey_resume(self) -> None:
        with self._changed:
            if not self._is_resident:
                self._resume()
                self._is_resident = True
            self._say({"resumed": True})
            self._changed.notify_all()

    def _say(self, message: Mapping[str, Any]) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass


class PinnedTensors:
    """Moves PyTorch tensors between VRAM and pinned host memory, which is kept for the next swap.

    The tensors stay valid objects: their storage is emptied and filled again, so parameters of a
    module need no change. Host memory of the same size stays pinned for as long as this object
    lives. Device copies run at the speed of the link; the first suspend also pays for pinning.
    """

    def __init__(self, tensors: Iterable[Any]) -> None:
        """tensors: CUDA tensors of any shape and type; those that share a storage are moved once."""
        storages: Dict[int, Any] = {}
        for tensor in tensors:
            storage = tensor.untyped_storage()
            if storage.device.type == "cuda" and storage.nbytes() > 0:
                storages.setdefault(storage.data_ptr(), storage)
        self._moved: List[Tuple[Any, Any, int]] = [
            (storage, None, storage.nbytes()) for storage in storages.values()
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of VRAM that leave."""
        return sum(size for _, _, size in self._moved)

    def suspend(self) -> None:
        """Copies the tensors to host memory and frees their VRAM."""
        import torch  # type: ignore[import-not-found,unused-ignore]

        moved: List[Tuple[Any, Any, int]] = []
        for storage, host, size in self._moved:
            if host is None:
                host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            host.copy_(_bytes_of(torch, storage), non_blocking=True)
            moved.append((storage, host, size))
        torch.cuda.synchronize()
        self._moved = moved
        for storage, _, _ in moved:
            storage.resize_(0)
        torch.cuda.empty_cache()

    def resume(self) -> None:
        """Copies the tensors back to VRAM."""
        import torch

        for storage, host, size in self._moved:
            storage.resize_(size)
            _bytes_of(torch, storage).copy_(host, non_blocking=True)
        torch.cuda.synchronize()


def _bytes_of(torch: Any, storage: Any) -> Any:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
