"""Channels into a running task: an additional command, or a connection to one of its ports."""

from __future__ import annotations

import selectors
import socket
import ssl
import struct
import time
from typing import Any, BinaryIO, Iterator, List, NamedTuple, Optional, Tuple

from .errors import ChannelCut, HeadroomError
from .transport import Transport

DATA, ERRORS, END, ENDED = 0, 1, 2, 4
HEAD = struct.Struct(">BI")
MAX_CONTENT = 64 * 1024
PIECE_BYTES = 64 * 1024
SIGNAL_EXIT = 128
# Of output that is kept in memory.
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
PROTOCOL = "headroom-channel"


class ExecResult(NamedTuple):
    """How a command in a task ended."""

    exit_code: int
    """Exit code of the command; 128 + n for a signal, 125 to 127 if it did not run (docs/exec.md).
    """
    stdout: str
    stderr: str


class Channel:
    """A non-blocking connection that exchanges frames; for one thread."""

    def __init__(self, sock: socket.socket, rest: bytes) -> None:
        self.sock = sock
        self._received = bytearray(rest)
        self._unsent = bytearray()
        sock.setblocking(False)

    @property
    def has_unsent(self) -> bool:
        return len(self._unsent) > 0

    def send(self, content: bytes) -> None:
        for at in range(0, len(content), MAX_CONTENT):
            piece = content[at : at + MAX_CONTENT]
            self._unsent += HEAD.pack(DATA, len(piece)) + piece

    def send_end(self) -> None:
        self._unsent += HEAD.pack(END, 0)

    def flush(self) -> None:
        """Sends as much as the connection accepts without blocking."""
        while self._unsent:
            try:
                del self._unsent[: self.sock.send(self._unsent[:PIECE_BYTES])]
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            except OSError as error:
                # What the task said before is still read.
                self._unsent.clear()
                if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
                    raise lost() from error

    def frames(self) -> Iterator[Tuple[int, bytes]]:
        """Yields the frames received so far; raises ChannelCut when the connection has ended."""
        is_open = True
        while is_open:
            yield from self._whole()
            try:
                piece = self.sock.recv(PIECE_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError as error:
                raise lost() from error
            is_open = piece != b""
            self._received += piece
        raise lost()

    def _whole(self) -> Iterator[Tuple[int, bytes]]:
        while len(self._received) >= HEAD.size:
            kind, size = HEAD.unpack_from(self._received)
            if size > MAX_CONTENT:
                raise ChannelCut(f"A frame of {size} bytes is too long.")
            if len(self._received) < HEAD.size + size:
                return
            content = bytes(self._received[HEAD.size : HEAD.size + size])
            del self._received[: HEAD.size + size]
            yield kind, content

    def close(self) -> None:
        """Closes the channel; the server ends its command."""
        self.sock.close()


def open_channel(transport: Transport, path: str, request: Any) -> Channel:
    """Raises ApiError if the task, its server or its node refuses."""
    opened = transport.json("POST", f"{path}/channels", body=request)
    sock, rest = transport.upgrade(opened["path"], PROTOCOL)
    return Channel(sock, rest)


def run_command(
    channel: Channel,
    given: BinaryIO,
    timeout: Optional[float],
    stdout: Optional[BinaryIO],
    stderr: Optional[BinaryIO],
) -> ExecResult:
    """Forwards input and output until the command has ended."""
    deadline = None if timeout is None else time.monotonic() + timeout
    outputs = _Output(stdout), _Output(stderr)
    is_given = True
    try:
        while True:
            while is_given and not channel.has_unsent:
                piece = given.read(PIECE_BYTES)
                is_given = len(piece) > 0
                if is_given:
                    channel.send(piece)
                else:
                    channel.send_end()
                channel.flush()
            for kind, content in channel.frames():
                if kind in (DATA, ERRORS):
                    outputs[kind].write(content)
                elif kind == ENDED:
                    return ExecResult(_exit_code_in(content), outputs[DATA].text(), outputs[ERRORS].text())
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"The command did not end within {timeout:g} s and was killed.")
            _wait([(channel.sock, True, channel.has_unsent)], left)
            channel.flush()
    finally:
        channel.close()


def pass_connection(channel: Channel, local: socket.socket) -> None:
    """Forwards the bytes of a connection to a port of the task until one side closes it."""
    local.setblocking(False)
    waiting = bytearray()  # for the local side
    is_reading, is_writing, has_ended = True, True, False
    try:
        while not has_ended or waiting:
            if is_reading and not channel.has_unsent:
                piece = _read(local)
                if piece:
                    channel.send(piece)
                elif piece is not None:
                    is_reading = False
                    channel.send_end()
            channel.flush()
            while not waiting and not has_ended:
                frame = next(channel.frames(), None)
                if frame is None:
                    break
                kind, content = frame
                if kind == DATA:
                    waiting += content
                elif kind == END and is_writing:
                    is_writing = False
                    local.shutdown(socket.SHUT_WR)
                elif kind == ENDED:
                    has_ended = True
                    _require_closed(content)
            _write(local, waiting)
            if waiting or not has_ended:
                ours = (channel.sock, not waiting and not has_ended, channel.has_unsent)
                _wait([ours, (local, is_reading and not channel.has_unsent, len(waiting) > 0)], None)
    finally:
        channel.close()
        local.close()


def lost() -> ChannelCut:
    return ChannelCut("The connection to the controller was lost.")


def _exit_code_in(content: bytes) -> int:
    word, rest = _end_in(content)
    if word == "signal":
        return SIGNAL_EXIT + int(rest)
    if word not in ("code", "closed"):
        raise ChannelCut(f"The command was ended: {rest}")
    return int(rest or "0")


def _require_closed(content: bytes) -> None:
    word, rest = _end_in(content)
    if word == "error":
        raise ChannelCut(f"The connection was ended: {rest}")


def _end_in(content: bytes) -> Tuple[str, str]:
    """Reads `code 3`, `signal 9`, `closed` or `error TEXT`."""
    word, _, rest = content.decode("utf-8", "replace").partition(" ")
    is_known = word == "closed" or (word in ("code", "signal") and rest.isdecimal())
    return (word, rest) if is_known else ("error", rest or word)


class _Output:
    """One stream of a command: collected, or forwarded."""

    def __init__(self, to: Optional[BinaryIO]) -> None:
        self._to = to
        self._kept = bytearray()

    def write(self, content: bytes) -> None:
        if self._to is not None:
            self._to.write(content)
            return
        self._kept += content
        if len(self._kept) > MAX_OUTPUT_BYTES:
            raise HeadroomError(
                f"The output of the command exceeds {MAX_OUTPUT_BYTES} bytes. "
                "Pass files as stdout and stderr."
            )

    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


def _read(local: socket.socket) -> Optional[bytes]:
    """Returns the data received so far; None while nothing has arrived."""
    try:
        return local.recv(PIECE_BYTES)
    except BlockingIOError:
        return None


def _write(local: socket.socket, waiting: bytearray) -> None:
    if not waiting:
        return
    try:
        del waiting[: local.send(waiting)]
    except BlockingIOError:
        return


def _wait(sockets: List[Tuple[socket.socket, bool, bool]], seconds: Optional[float]) -> None:
    """Waits until one of the given sockets can be read or written."""
    with selectors.DefaultSelector() as selector:
        for sock, can_read, can_write in sockets:
            events = (selectors.EVENT_READ if can_read else 0) | (selectors.EVENT_WRITE if can_write else 0)
            if events:
                selector.register(sock, events)
        selector.select(seconds)
