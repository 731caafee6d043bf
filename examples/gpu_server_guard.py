"""The guard: one process per attempt, which outlives the server and keeps the deadlines without it (R4).

Guard and server talk through files in the folder of the attempt. The server writes spec.json and order.json,
and one lease.json for the node. The guard writes `started`, `frozen` while the task is suspended, and
exit.json. It holds a lock on `lock` for as long as it lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Optional

Json = Dict[str, Any]
POLL_SECONDS = 0.025


def now_ms() -> int:
    """Returns the clock of `sent_mono`: it counts while the host sleeps, and all processes share it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def write_json(path: Path, value: Any) -> None:
    """Replaces the file. The new content is durable when this returns."""
    draft = path.with_name(path.name + ".new")
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def read_json(path: Path) -> Json:
    """Returns the content of the file, or {} if there is no such file."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return {}


def processes_by_tag() -> dict[str, list[int]]:
    """Returns the processes of each attempt: they inherit HEADROOM_ATTEMPT. In production, use a cgroup."""
    found: dict[str, list[int]] = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for variable in Path("/proc", process, "environ").read_bytes().split(b"\0"):
                if variable.startswith(b"HEADROOM_ATTEMPT="):
                    found.setdefault(variable[17:].decode("utf-8", "replace"), []).append(int(process))
    return found


def signal_all(tag: str, number: int) -> None:
    """Signals every process of the attempt, and those that are forked meanwhile."""
    done: set[int] = set()
    while new := set(processes_by_tag().get(tag, [])) - done:
        for process in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        done |= new


def launch(folder: Path, spec: Json) -> subprocess.Popen[bytes]:
    """Starts the command of the attempt; its output goes to files for read_log."""
    environment = {**os.environ, "HEADROOM_ATTEMPT": spec["tag"], "CUDA_VISIBLE_DEVICES": spec["gpus"]}
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        return subprocess.Popen(
            spec["command"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
        )


def guard(folder: Path) -> None:
    """Runs one attempt to its end. Obeys order.json and the node's lease.json, and leaves exit.json."""
    spec = read_json(folder / "spec.json")
    child: Optional[subprocess.Popen[bytes]] = None  # a lease has no command
    try:
        child = launch(folder, spec) if spec["command"] is not None else None
    except OSError as error:
        cause = "command_not_found" if isinstance(error, FileNotFoundError) else "command_not_executable"
        refused = {"cause": "task", "code": cause}
        end = {"outcome": "failed", "exit_code": None, "detail": str(error)[:500], "start_refused": refused}
        return write_json(folder / "exit.json", end)
    (folder / "started").touch()
    is_frozen = was_told = False
    ended_by = ""
    while not ended_by and (child is None or child.poll() is None):
        order, lease = read_json(folder / "order.json"), read_json(folder.parent.parent / "lease.json")
        if not order or not lease:  # the state of the node was deleted
            break
        is_lease_over = order["is_leased"] and now_ms() >= lease["ends"]
        if order["kill_at"] is not None and not was_told:
            signal_all(spec["tag"], signal.SIGTERM)
            was_told = True
        if was_told and (child is None or now_ms() >= order["kill_at"]):
            ended_by = "stopped"
        elif is_lease_over and now_ms() >= lease["ends"] + lease["length"]:
            ended_by = "lease_ended"
        elif is_frozen != (order["is_frozen"] or is_lease_over):
            is_frozen = not is_frozen
            signal_all(spec["tag"], signal.SIGSTOP if is_frozen else signal.SIGCONT)
            (folder / "frozen").touch() if is_frozen else (folder / "frozen").unlink()
        time.sleep(POLL_SECONDS)
    signal_all(spec["tag"], signal.SIGKILL)
    code = child.wait() if child is not None else None
    outcome = ended_by or ("stopped" if was_told else "completed" if code == 0 else "failed")
    by_signal = code is not None and code < 0
    detail = f"Ended by signal {-code}." if code is not None and by_signal else None
    exit_code = 128 - code if code is not None and by_signal else code
    write_json(folder / "exit.json", {"outcome": outcome, "exit_code": exit_code, "detail": detail})


# What the server calls.


def start_guard(folder: Path, spec: Json) -> subprocess.Popen[bytes]:
    """Starts a guard in a folder that holds order.json. It inherits the locked file."""
    write_json(folder / "spec.json", {**spec, "tag": folder.name})
    command = [sys.executable, os.path.abspath(__file__), str(folder)]
    with open(folder / "lock", "wb") as lock, open(folder / "guard.log", "wb") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.Popen(
            command, pass_fds=[lock.fileno()], stdin=subprocess.DEVNULL, stderr=log, start_new_session=True
        )


def find_end(folder: Path) -> Optional[Json]:
    """Returns how the attempt ended, once nothing of it is left; None while its guard lives."""
    with open(folder / "lock", "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
    signal_all(folder.name, signal.SIGKILL)
    lost = {"outcome": "lost", "exit_code": None, "detail": "The guard of the attempt died."}
    return read_json(folder / "exit.json") or lost


def cpu_ms_by_tag() -> dict[str, int]:
    """Returns the CPU time that the processes of each attempt have used."""
    return {tag: sum(map(cpu_ms_of, processes)) for tag, processes in processes_by_tag().items()}


def cpu_ms_of(process: int) -> int:
    try:
        columns = Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(columns[11]) + int(columns[12])) * 1000 // os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
