"""A task of the controller."""

from __future__ import annotations

import base64
import codecs
import io
import shlex
import time
from typing import TYPE_CHECKING, Any, BinaryIO, Iterator, Literal, Optional, Sequence, Union, cast

from . import models
from .channel import ExecResult, open_channel, run_command
from .errors import ApiError, ConnectionFailed, HeadroomError, TaskFailed
from .forwarding import Forwarding
from .transport import backoff_seconds, segment

if TYPE_CHECKING:
    from .client import Client

Stream = Literal["stdout", "stderr"]
POLL_SECONDS = 0.25
MAX_POLL_SECONDS = 2.0
MAX_LOG_BYTES = 131_072


class Task(models.TaskFields):
    """A task. Its fields are those of the REST API, as the controller last returned them."""

    def __init__(self, client: Client, data: models.Task) -> None:
        self._client = client
        self.data = data

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.name!r}: {self.state}>"

    @property
    def is_final(self) -> bool:
        """Whether the task is completed, failed, cancelled or lost."""
        return self.finished_at is not None

    def refresh(self) -> Task:
        """Reloads the fields of the task, and returns the task."""
        self.data = self._client._transport.json("GET", self._path())
        return self

    def wait(self, timeout: Optional[float] = None, *, check: bool = False) -> Task:
        """Waits until the task has ended, and returns it; survives restarts of the controller.

        Raises TimeoutError after `timeout` seconds, and with `check` TaskFailed unless the task
        completed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = POLL_SECONDS
        while not self._refreshed_is_final(deadline):
            if deadline is not None and time.monotonic() >= deadline:
                why = "" if self.wait_reason is None else f" {self.wait_reason}"
                raise TimeoutError(f"Task {self.id} is still {self.state} after {timeout:g} s.{why}")
            left = pause if deadline is None else max(0.0, deadline - time.monotonic())
            time.sleep(min(pause, left))
            pause = min(MAX_POLL_SECONDS, pause * 1.25)
        if check and self.state != "completed":
            reason = self.end_reason or self.end_code or "unknown reason"
            raise TaskFailed(f"Task {self.id} is {self.state}: {reason}", self.exit_code)
        return self

    @property
    def wait_reason(self) -> Optional[str]:
        """Why the task waits, as a sentence with numbers; None while it does not wait."""
        wait = self.data["wait"]
        return None if wait is None else wait["sentence"]

    def logs(self, *, follow: bool = False, stream: Stream = "stdout") -> Iterator[str]:
        """Yields the output of the latest attempt as text, in chunks that may end within a line.

        With `follow` it waits for more output until the attempt has ended, and continues with any
        attempt that replaces it. Bytes that are not UTF-8 are replaced.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for piece in self.log_bytes(follow=follow, stream=stream):
            text = decoder.decode(piece)
            if text:
                yield text
        rest = decoder.decode(b"", True)
        if rest:
            yield rest

    def log_bytes(self, *, follow: bool = False, stream: Stream = "stdout") -> Iterator[bytes]:
        """Yields the output of the latest attempt as bytes; see `logs`."""
        if follow:
            yield from self._followed(stream)
            return
        offset = 0
        while True:
            log = self._read_log(stream, offset)
            if log is None or log["data"] == "":
                return
            offset = log["next_offset"]
            yield base64.b64decode(log["data"])

    def _read_log(self, stream: Stream, offset: int) -> Optional[models.Log]:
        """Returns part of the output; None if no attempt has started."""
        query = {"stream": stream, "offset": offset, "max_bytes": MAX_LOG_BYTES}
        try:
            return cast(models.Log, self._client._transport.json("GET", f"{self._path()}/logs", query=query))
        except ApiError as error:
            if error.status in (404, 409) and not self.refresh().is_final:
                return None
            raise

    def _followed(self, stream: Stream) -> Iterator[bytes]:
        """Yields the output until the last attempt ends; resumes after a broken connection."""
        offset, failures = 0, 0
        while True:
            query = {"stream": stream, "offset": offset, "follow": True}
            try:
                for name, data in self._client._transport.events(f"{self._path()}/logs", query):
                    failures = 0
                    if name == "end" and data["why"] != "superseded":
                        return
                    if name == "end":
                        offset = 0
                    if name == "output":
                        offset = data["next_offset"]
                        yield base64.b64decode(data["data"])
            except (ApiError, ConnectionFailed) as error:
                if not _is_temporary(error):
                    raise
            failures += 1
            time.sleep(backoff_seconds(failures, MAX_POLL_SECONDS))

    def files(self, path: str = "") -> Iterator[models.WorkFilesItemsItem]:
        """Yields the files in the work folder of the task, or below a path in it; also while the
        task runs.
        """
        after = ""
        while True:
            query = {"path": path, "after": after}
            page: models.WorkFiles = self._client._transport.json("GET", f"{self._path()}/files", query=query)
            yield from page["items"]
            if page["is_complete"] or not page["items"]:
                return
            after = page["items"][-1]["path"]

    def read_file(self, path: str) -> bytes:
        """Returns the content of a file in the work folder; use `file_bytes` for files that do not
        fit in memory.
        """
        return b"".join(self.file_bytes(path))

    def file_bytes(self, path: str) -> Iterator[bytes]:
        """Yields the content of a file in the work folder in chunks; raises HeadroomError if the
        file is replaced meanwhile.
        """
        offset, inode = 0, None
        while True:
            query = {"path": path, "offset": offset}
            piece: models.FilePiece = self._client._transport.json(
                "GET", f"{self._path()}/files/content", query=query
            )
            if inode not in (None, piece["inode"]):
                raise HeadroomError(f"{path} was replaced while it was being read; try again.")
            inode = piece["inode"]
            if piece["data"]:
                yield base64.b64decode(piece["data"])
            offset = piece["next_offset"]
            if not piece["data"] or offset >= piece["bytes"]:
                return

    def cancel(self, *, now: bool = False) -> Task:
        """Cancels the task, and returns it. A pending task ends at once.

        A running task gets SIGTERM, and SIGKILL after its stop grace, or at once with `now`.
        """
        query = {"now": True} if now else None
        self.data = self._client._transport.json("DELETE", self._path(), query=query)
        return self

    def exec(
        self,
        command: Union[str, Sequence[str]],
        *,
        input: Union[None, str, bytes, BinaryIO] = None,
        stdout: Optional[BinaryIO] = None,
        stderr: Optional[BinaryIO] = None,
        timeout: Optional[float] = None,
        check: bool = False,
    ) -> ExecResult:
        """Runs a command in the running task until it ends. The GPU server must allow it (--allow-attach).

        A string is split into words as a shell would. `stdout` and `stderr` are files that receive
        the output as it arrives; it is then not in the result. After `timeout` seconds the command
        is killed.

        Raises TimeoutError after the timeout, ChannelCut if the channel is cut, ApiError if it is
        refused, and with `check` TaskFailed unless the exit code is 0.
        """
        words = shlex.split(command) if isinstance(command, str) else list(command)
        given = input.encode() if isinstance(input, str) else input or b""
        channel = open_channel(self._client._transport, self._path(), {"command": words})
        ended = run_command(
            channel, io.BytesIO(given) if isinstance(given, bytes) else given, timeout, stdout, stderr
        )
        if check and ended.exit_code != 0:
            last = ended.stderr.strip().rpartition("\n")[2]
            raise TaskFailed(f"{words[0]} ended with exit code {ended.exit_code}: {last}", ended.exit_code)
        return ended

    def port_forward(self, port: int, *, local_port: int = 0, timeout: Optional[float] = None) -> Forwarding:
        """Returns a context manager that forwards a port of this machine to `port` of the task.

        `local_port` 0 picks a free port. With `timeout` it first waits until the task accepts
        connections, or raises TimeoutError. Only programs on this machine can connect.
        """
        return Forwarding(self._client._transport, self._path(), port, local_port, timeout)

    def update(self, **fields: Any) -> Task:
        """Changes fields of the task (see `models.TaskPatch`), and returns it."""
        self.data = self._client._transport.json("PATCH", self._path(), body=fields)
        return self

    def explain(self) -> models.Explanation:
        """Returns why the task waits or where it is placed, and which changes would let it start."""
        return cast(models.Explanation, self._client._transport.json("GET", f"{self._path()}/explain"))

    def _refreshed_is_final(self, deadline: Optional[float]) -> bool:
        if self.is_final:
            return True
        try:
            return self.refresh().is_final
        except (ApiError, ConnectionFailed) as error:
            if not _is_temporary(error) or (deadline is not None and time.monotonic() >= deadline):
                raise
            return False

    def _path(self) -> str:
        return f"/tasks/{segment(self.id)}"


def _is_temporary(error: Exception) -> bool:
    return isinstance(error, ConnectionFailed) or (isinstance(error, ApiError) and error.status in (429, 503))
