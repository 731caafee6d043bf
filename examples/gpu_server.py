"""A GPU server for Headroom, written from docs/protocol.md and docs/asyncapi.yaml.

A starting point for a server of your own: tasks are real processes, GPUs are simulated. VRAM is a ledger, use
of the CPU counts as use of the GPU, and a task that is swapped out is suspended. Linux, Python 3.9 or newer.

    pip install -r examples/requirements.txt
    python3 examples/gpu_server.py --nats nats://127.0.0.1:4222 --name my-node --state-dir my-node-state

R1 to R12 are the rules of docs/protocol.md. gpu_server_messages.py checks what arrives, gpu_server_journal.py
keeps what a restart must find, and gpu_server_guard.py runs one attempt, also while this server is dead.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import importlib
import json
import os
import random
import secrets
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, Callable, Optional

import nats
import nats.errors

from gpu_server_guard import cpu_ms_by_tag, find_end, now_ms, read_json, start_guard, write_json
from gpu_server_journal import Attempt, Journal
from gpu_server_messages import ANSWERS, COMMANDS, READS, Json, parse

NODE_NAMESPACE = uuid.UUID("b5de09d5-af0a-4767-aef9-4a0f8a6d0ac4")
MAX_ATTEMPTS = 64  # that live, or whose end is not acknowledged; hello says so (R11)
ANSWER_SECONDS, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2, 0.25, 10
WATCH_SECONDS = 0.05
COPY_MS = 100  # the duration of a simulated swap
USE_SAMPLE_MS, BUSY_CPU_SHARE, IDLE_AFTER_MS = 500, 0.05, 5000
MARK = ("epoch", "controller", "event_seq")
OUTSIDE = ("swapping_out", "swapped_out", "swapping_in")  # needs host memory, and is suspended


class Refused(Exception):
    """A command is not obeyed; the text is the `reason` of the result."""


class Server:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.node_id = options.node_id or str(uuid.uuid5(NODE_NAMESPACE, options.name))
        self.subject = f"{options.prefix}.node.{self.node_id}"
        self.folder = Path(options.state_dir).absolute()
        (self.folder / "attempts").mkdir(parents=True, exist_ok=True)
        self.journal = Journal(self.folder / "journal.sqlite")
        self.mark: Json = self.journal.fact("mark", {"epoch": 0})
        self.live = {attempt.key: attempt for attempt in self.journal.live()}
        self.guards: list[subprocess.Popen[bytes]] = []
        self.heartbeat_ms, self.reserve_mib = 5000, 0
        self.lease_sent = self.lease_ends = 0  # of this boot: no start before a welcome
        self.sampled_at = now_ms()
        self.cpu_ms: dict[str, int] = {}
        self.asked: dict[str, tuple[Json, asyncio.Future[str]]] = {}  # by the subject of the answer
        self.arrived: asyncio.Queue[Any] = asyncio.Queue(10_000)
        self.is_welcome, self.has_events, self.beat_soon = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.begin_boot(0)

    async def run(self) -> None:
        """Adopts the attempts that live, then serves until the process is ended. Tasks continue without it."""
        self.watch()
        self.bus = await connect(self.options)
        self.inbox = self.bus.new_inbox()
        await self.bus.subscribe(f"{self.inbox}.*", cb=self.arrived.put)
        await self.bus.subscribe(f"{self.subject}.command", cb=self.arrived.put)
        print(f"Node {self.node_id} serves as {self.options.name}.", flush=True)
        await asyncio.gather(self.watch_on(), self.handle_arrived(), self.speak(), self.send_events())

    # What the server says.

    def begin_boot(self, above: int) -> None:
        """Begins a boot. Its counter is durable before its first word (R6)."""
        counter = max(self.journal.fact("boot_counter", 0), above) + 1
        self.journal.set_fact("boot_counter", counter)
        self.journal.commit()
        self.boot, self.seq = {"counter": counter, "random": secrets.token_hex(8)}, 0
        self.say_hello()

    def say_hello(self) -> None:
        self.is_welcome.clear()
        self.beat_soon.set()

    def message(self, body: Json) -> Json:
        self.seq += 1
        head = {"v": 1, "id": str(uuid.uuid4()), "sent_mono": now_ms(), "boot": self.boot, "seq": self.seq}
        return {**head, **self.mark, "body": body}

    async def ask(self, verb: str, message: Json) -> str:
        """Sends once. Returns the operation of the answer, which handle_answer() obeyed; "" if none came."""
        reply, answered = f"{self.inbox}.{secrets.token_hex(8)}", asyncio.get_running_loop().create_future()
        self.asked[reply] = (message, answered)
        try:
            await self.send(f"{self.subject}.{verb}", message, reply)
            return str(await asyncio.wait_for(answered, ANSWER_SECONDS))
        except asyncio.TimeoutError:
            return ""
        finally:
            del self.asked[reply]

    async def send(self, subject: str, message: Json, reply: str = "") -> None:
        """Sends, if the broker is connected: what is not answered is sent again."""
        with contextlib.suppress(nats.errors.Error):
            await self.bus.publish(subject, json.dumps(message).encode(), reply=reply)

    async def insist(self, verb: str, make: Callable[[], Json]) -> None:
        """Sends what `make` returns, with growing pauses, until it is answered or the boot is over."""
        boot, pause = self.boot, FIRST_PAUSE_SECONDS
        while boot is self.boot and await self.ask(verb, make()) in ("", "refused"):
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def speak(self) -> None:
        """Says hello until it is welcome, then sends heartbeats. Each of them has a new snapshot."""
        beats: set[asyncio.Future[str]] = set()
        while True:
            if not self.is_welcome.is_set():
                await self.insist("hello", lambda: self.message(self.hello()))
                continue
            self.beat_soon.clear()
            beat = asyncio.ensure_future(self.ask("heartbeat", self.message(self.snapshot("heartbeat"))))
            beats = {each for each in beats if not each.done()} | {beat}
            with contextlib.suppress(asyncio.TimeoutError):
                pause = self.heartbeat_ms / 1000 * random.uniform(0.8, 1.2)
                await asyncio.wait_for(self.beat_soon.wait(), pause)

    async def send_events(self) -> None:
        """Sends the outbox, oldest first, as long as it has entries."""
        while True:
            await self.is_welcome.wait()
            self.has_events.clear()
            if entries := self.journal.events():
                message = self.message({"op": "events", "node_id": self.node_id, "entries": entries})
                await self.insist("event", lambda message=message: message)  # type: ignore[misc]
            else:
                await self.has_events.wait()

    def snapshot(self, op: str) -> Json:
        gpu = {"model": "Simulated GPU", "physical_mib": self.options.vram_mib, "foreign_mib": 0}
        tasks = [
            {**{name: each.start[name] for name in ("task_id", "attempt", "gpus", "vram_mib")},
             "residency": each.residency, "generation": each.generation, "wants_gpu": each.wants_gpu,
             "idle_ms": 0 if each.wants_gpu else now_ms() - each.used_at}
            for each in self.live.values()
        ]  # fmt: skip
        gpus = [{"index": index, **gpu} for index in range(self.options.gpus)]
        unacked = self.journal.unacked()
        return {"op": op, "node_id": self.node_id, "gpus": gpus, "tasks": tasks, "finished_unacked": unacked}

    def hello(self) -> Json:
        """A suspended task cannot show that it wants the GPU: signals_wanted is false."""
        return {
            **self.snapshot("hello"), "name": self.options.name, "address": "", "device": "process",
            "host_swap_mib": self.options.host_swap_mib, "signals_wanted": False,
            "allow_exec": not self.options.no_exec, "max_attempts": MAX_ATTEMPTS,
            "task_identity": "server_user",
        }  # fmt: skip

    def report(self, attempt: Attempt, kind: str, **details: Any) -> None:
        self.journal.add_event(attempt, kind, **details)
        self.has_events.set()

    # What the controller answers.

    async def handle_arrived(self) -> None:
        """Handles answers and commands one by one, in the order in which they arrived."""
        while True:
            delivery = await self.arrived.get()
            if delivery.subject in self.asked:
                self.handle_answer(*self.asked[delivery.subject], delivery.data)
            elif delivery.reply and (answer := self.handle_command(delivery.data)):
                await self.send(delivery.reply, self.message(answer))

    def handle_answer(self, request: Json, answered: asyncio.Future[str], data: bytes) -> None:
        answer = parse(data, ANSWERS)
        if answer is None or answered.done() or not self.heed(answer):
            return  # also the broker's notice that no controller listens
        self.journal.commit()
        body = answer["body"]
        pair = (request["body"]["op"], body["op"])
        if pair == ("events", "events_ack"):
            self.drop_events(request["body"]["entries"], body["up_to"])
        elif request["boot"] is not self.boot:
            pass
        elif body["op"] == "state_reset":
            self.begin_boot(body["counter_above"])
        elif (
            pair in (("hello", "welcome"), ("heartbeat", "lease")) and request["sent_mono"] >= self.lease_sent
        ):
            self.take_settings(request["sent_mono"], body)
            self.is_welcome.set()
        elif pair == ("heartbeat", "refused") and body["reason"] == "unknown_node":
            self.say_hello()
        if body["op"] == "refused":
            print(f"The controller refused {pair[0]}: {body['reason']}", file=sys.stderr, flush=True)
        answered.set_result(body["op"])

    def heed(self, message: Json) -> bool:
        """Keeps the highest mark; returns False for a controller that is not the newest (R3)."""
        mark: Json = {name: message[name] for name in MARK if name in message}
        if mark["epoch"] < self.mark["epoch"]:
            return False
        if mark["epoch"] == self.mark["epoch"]:
            known, speaker = self.mark.get("controller"), mark.get("controller")
            if known and speaker and known != speaker:
                return False
            event_seq = max(mark.get("event_seq", 0), self.mark.get("event_seq", 0))
            mark = {**self.mark, **mark, **({"event_seq": event_seq} if event_seq else {})}
        if mark != self.mark:
            self.mark = mark
            self.journal.set_fact("mark", mark)
        return True

    def take_settings(self, sent_mono: int, body: Json) -> None:
        """Takes the lease, which counts from the sending of the latest request that was answered (R4, R5)."""
        self.heartbeat_ms = body["settings"]["heartbeat_ms"]
        self.reserve_mib = body["settings"]["safety_reserve_mib"]
        self.lease_sent, self.lease_ends = sent_mono, sent_mono + body["settings"]["run_lease_ms"]
        lease = {"ends": self.lease_ends, "length": body["settings"]["run_lease_ms"]}
        write_json(self.folder / "lease.json", lease)
        for name in body["stop"]:  # what the controller has given up
            if attempt := self.live.get((name["task_id"], name["attempt"])):
                attempt.kill_at = now_ms()
                self.save(attempt)

    def drop_events(self, entries: list[Json], up_to: int) -> None:
        """Drops what is acknowledged, as far as it was sent (R8)."""
        for entry in entries:
            if entry["n"] > up_to:
                continue
            key = (entry["task_id"], entry["attempt"])
            self.journal.db.execute("DELETE FROM outbox WHERE n = ?", (entry["n"],))
            if entry["kind"] == "finished":
                self.journal.set_state(key, "gone")
            elif entry["kind"] == "started" and key in self.live:
                self.live[key].is_start_acked = True
                self.save(self.live[key])
        self.journal.forget()
        self.journal.commit()

    # What the controller commands.

    def handle_command(self, data: bytes) -> Optional[Json]:
        """Returns the answer, once what it says is durable; None for a malformed message."""
        message = parse(data, {**COMMANDS, **READS})
        if message is None:
            return None
        read = {"read_log": self.read_log, "read_attempt": self.read_attempt}.get(message["body"]["op"])
        answer = read(message["body"]) if read else self.obey(message, message["body"])
        self.journal.commit()
        return answer

    def obey(self, message: Json, body: Json) -> Json:
        """Obeys or refuses. A refused start and a never_seen invalidate an attempt that never ran (R3)."""
        key, reason = (body["task_id"], body["attempt"]), None
        try:
            outcome = self.obey_current(message, body, key)
        except Refused as refused:
            outcome, reason = "refused", str(refused)
            if body["op"] == "start":
                asyncio.get_running_loop().call_later(1, self.beat_soon.set)
        is_invalid = outcome == "never_seen" or (outcome == "refused" and body["op"] == "start")
        if is_invalid and self.journal.state(key) is None:
            self.journal.set_state(key, "invalid")
        attempt = self.live.get(key)
        where = (attempt.residency, attempt.generation) if attempt else ("none", 0)
        return {"op": "result", "task_id": key[0], "attempt": key[1], "outcome": outcome, "reason": reason,
                "residency": where[0], "generation": where[1]}  # fmt: skip

    def obey_current(self, message: Json, body: Json, key: tuple[str, int]) -> str:
        """A repeated start is answered at any time; any other command is checked for epoch, boot and time."""
        is_newest, is_start, known = self.heed(message), body["op"] == "start", self.journal.state(key)
        if known is None and key[1] < self.journal.highest_attempt(key[0]):
            known = "gone"
        if known is None or not is_start:
            if not is_newest:
                raise Refused("stale_epoch")
            if body["node_boot"] != self.boot:
                raise Refused("other_boot")
            if now_ms() > body["valid_until_mono"]:
                raise Refused("expired")
        if known is not None and (known != "live" or is_start):
            return {"live": "running", "ended": "finished", "gone": "gone", "invalid": "never_seen"}[known]
        self.reserve_mib = body.get("safety_reserve_mib", self.reserve_mib)
        if is_start:
            self.start(body)
        elif known is None:
            return "never_seen"
        else:
            {
                "stop": self.stop,
                "swap_out": self.swap_out,
                "swap_in": self.swap_in,
                "grant": self.grant,
                "refuse_growth": self.refuse_growth,
                "set_noswap": self.set_noswap,
            }[body["op"]](self.live[key], body)
            self.save(self.live[key])
        return "accepted"  # fmt: skip

    def start(self, body: Json) -> None:
        unacked = self.journal.unacked()
        if now_ms() >= self.lease_ends:
            raise Refused("no_lease")
        if body["task_id"] in [key[0] for key in self.live] + [each["task_id"] for each in unacked]:
            raise Refused("old_attempt")
        if max(body["gpus"]) >= self.options.gpus:
            raise Refused("unknown_gpu")
        if body["command"] is not None and self.options.no_exec:
            raise Refused("exec_not_allowed")
        if len(self.live) + len(unacked) >= MAX_ATTEMPTS:
            raise Refused("node_full")
        folder = self.folder / "attempts" / secrets.token_hex(8)
        attempt = Attempt(body, str(folder), wants_gpu=body["command"] is not None, used_at=now_ms())
        self.check_fit(attempt, body["vram_mib"])
        folder.mkdir()
        self.live[attempt.key] = attempt
        self.save(attempt)
        self.guards.append(
            start_guard(folder, {"command": body["command"], "gpus": ",".join(map(str, body["gpus"]))})
        )

    def check_fit(self, attempt: Attempt, vram_mib: int) -> None:
        """Refuses what would break the reserve of a GPU (R12)."""
        for gpu in attempt.start["gpus"]:
            others = [
                each for each in self.live.values() if gpu in each.start["gpus"] and each is not attempt
            ]
            used_mib = sum(each.start["vram_mib"] for each in others if each.residency != "swapped_out")
            if vram_mib + used_mib + self.reserve_mib > self.options.vram_mib:
                raise Refused("no_vram")

    def stop(self, attempt: Attempt, body: Json) -> None:
        """A later stop can only bring the end nearer."""
        kill_at = now_ms() + body.get("grace_ms", 0)
        attempt.kill_at = kill_at if attempt.kill_at is None else min(kill_at, attempt.kill_at)

    def swap_out(self, attempt: Attempt, body: Json) -> None:
        if self.is_repeated(attempt, body, "swapping_out", "swapped_out"):
            return
        if attempt.residency != "resident" or attempt.kill_at is not None:
            raise Refused("contrary")
        if attempt.start["noswap"]:
            raise Refused("noswap")
        if attempt.wants_gpu and not body["force_active"]:
            raise Refused("wants_gpu")
        outside = [attempt, *(each for each in self.live.values() if each.residency in OUTSIDE)]
        if (
            sum(each.start["vram_mib"] * len(each.start["gpus"]) for each in outside)
            > self.options.host_swap_mib
        ):
            raise Refused("no_host_memory")
        attempt.residency, attempt.swap_ends = "swapping_out", now_ms() + COPY_MS

    def swap_in(self, attempt: Attempt, body: Json) -> None:
        if self.is_repeated(attempt, body, "swapping_in", "resident"):
            return
        if attempt.residency != "swapped_out":
            raise Refused("contrary")
        self.check_fit(attempt, attempt.start["vram_mib"])
        attempt.residency, attempt.swap_ends = "swapping_in", now_ms() + COPY_MS

    def is_repeated(self, attempt: Attempt, body: Json, during: str, after: str) -> bool:
        """A swap names the present generation, and its end begins the next one (R12)."""
        if (attempt.residency, attempt.generation - body["generation"]) in ((during, 0), (after, 1)):
            return True
        if body["generation"] != attempt.generation:
            raise Refused("stale_generation")
        return False

    def grant(self, attempt: Attempt, body: Json) -> None:
        """Raises the VRAM of the attempt to `mib`. A simulated task never asks for it."""
        vram_mib = max(body["mib"], attempt.start["vram_mib"])
        self.check_fit(attempt, vram_mib)
        attempt.start["vram_mib"] = vram_mib

    def refuse_growth(self, attempt: Attempt, body: Json) -> None:
        """Nothing to do: a simulated task never asks for more."""

    def set_noswap(self, attempt: Attempt, body: Json) -> None:
        attempt.start["noswap"] = body["noswap"]

    def read_attempt(self, body: Json) -> Json:
        attempt = self.live.get((body["task_id"], body["attempt"]))
        if attempt is None:
            return {"op": "refused", "reason": "unknown_attempt"}
        names = ("task_id", "attempt", "command", "gpu_mode", "noswap", "priority", "on_node_loss")
        known = {**{"name": None, "owner": None}, **attempt.start}
        is_lease = known["command"] is None
        return {
            "op": "attempt",
            **{name: known[name] for name in ("name", "owner", *names)},
            "is_lease": is_lease,
        }

    def read_log(self, body: Json) -> Json:
        key = (body["task_id"], body["attempt"])
        folder = self.journal.folder(key)
        if folder is None:
            return {"op": "refused", "reason": "unknown_attempt"}
        offset, data, size = body["offset"], b"", 0
        with contextlib.suppress(FileNotFoundError), open(folder / body["stream"], "rb") as file:
            size = file.seek(0, os.SEEK_END)
            offset = file.seek(min(offset, size))
            data = file.read(min(body["max_bytes"], size - offset))
        is_ended = key not in self.live and offset + len(data) == size
        return {"op": "log", "task_id": key[0], "attempt": key[1], "stream": body["stream"], "offset": offset,
                "data": base64.b64encode(data).decode(), "is_ended": is_ended}  # fmt: skip

    # What happens to attempts.

    def save(self, attempt: Attempt) -> None:
        """Makes the attempt durable, then orders its guard accordingly."""
        self.journal.set_state(attempt.key, "live", attempt)
        self.journal.commit()
        is_leased = attempt.start["on_node_loss"] != "wait" or not attempt.is_start_acked
        order = {
            "is_frozen": attempt.residency in OUTSIDE,
            "is_leased": is_leased,
            "kill_at": attempt.kill_at,
        }
        if read_json(Path(attempt.folder, "order.json")) != order:
            write_json(Path(attempt.folder, "order.json"), order)

    async def watch_on(self) -> None:
        while True:
            self.watch()
            await asyncio.sleep(WATCH_SECONDS)

    def watch(self) -> None:
        """Reports starts, ends, the ends of swaps, and the use of GPUs."""
        self.guards = [each for each in self.guards if each.poll() is None]  # reaps those that have ended
        for attempt in list(self.live.values()):
            self.watch_attempt(attempt)
        if self.live and now_ms() >= self.sampled_at + USE_SAMPLE_MS:
            self.sample_use()
        self.journal.commit()

    def watch_attempt(self, attempt: Attempt) -> None:
        folder, end = Path(attempt.folder), find_end(Path(attempt.folder))
        if not attempt.is_started and (folder / "started").exists():
            attempt.is_started, attempt.residency, attempt.generation = True, "resident", 1
            self.report(attempt, "started", wants_gpu=attempt.wants_gpu)
            self.save(attempt)
        if end is not None:
            del self.live[attempt.key]
            self.journal.set_state(attempt.key, "ended", attempt)
            self.report(attempt, "finished", **end)
            return
        is_out = attempt.residency == "swapping_out" and (folder / "frozen").exists()
        if now_ms() >= attempt.swap_ends and (is_out or attempt.residency == "swapping_in"):
            attempt.residency = "swapped_out" if is_out else "resident"
            attempt.generation += 1
            now = {"residency": attempt.residency, "generation": attempt.generation, "because": None}
            self.report(attempt, "residency", **now)
            self.save(attempt)

    def sample_use(self) -> None:
        """Counts use of the CPU as use of the GPU. Reports when a task begins it and when it is idle."""
        elapsed_ms, self.sampled_at = now_ms() - self.sampled_at, now_ms()
        before, self.cpu_ms = self.cpu_ms, cpu_ms_by_tag()
        for attempt in self.live.values():
            used_ms = self.cpu_ms.get(attempt.tag, 0) - before.get(attempt.tag, 0)
            is_busy = used_ms > elapsed_ms * BUSY_CPU_SHARE
            idle_ms = now_ms() - attempt.used_at
            if is_busy:
                attempt.used_at = now_ms()
            wants_gpu = is_busy or (attempt.wants_gpu and idle_ms < IDLE_AFTER_MS)
            if attempt.is_started and attempt.residency == "resident" and wants_gpu != attempt.wants_gpu:
                attempt.wants_gpu = wants_gpu
                kind = "gpu_wanted" if wants_gpu else "gpu_used"
                self.report(attempt, kind, idle_ms=0 if wants_gpu else idle_ms)


async def connect(options: argparse.Namespace) -> Any:
    """Connects for good. With a key, answers arrive in `_INBOX_<public key>`, where no other may listen."""
    inbox, more = "_INBOX", {}
    if options.nkey_seed:
        nkeys = importlib.import_module("nkeys")  # pip install nkeys
        inbox = f"_INBOX_{nkeys.from_seed(Path(options.nkey_seed).read_bytes().strip()).public_key.decode()}"
        more = {"nkeys_seed": options.nkey_seed}
    for_ever: Json = {"allow_reconnect": True, "max_reconnect_attempts": -1, "reconnect_time_wait": 1}
    return await nats.connect(options.nats, inbox_prefix=inbox, **for_ever, **more)


async def serve() -> None:
    parser = argparse.ArgumentParser(description="A GPU server for Headroom with simulated GPUs.")
    parser.add_argument("--nats", default=os.environ.get("CONTROLLER_NATS_URL", "nats://127.0.0.1:4222"))
    parser.add_argument("--nkey-seed", help="file with the seed of the key for the broker")
    parser.add_argument("--name", default=os.environ.get("NODE_NAME", os.uname().nodename))
    parser.add_argument(
        "--node-id", default=os.environ.get("NODE_ID"), help="a UUID (default: made from the name)"
    )
    parser.add_argument("--prefix", default="gpu.v1", help="of the subjects")
    parser.add_argument("--state-dir", required=True, help="the journal and the output of tasks; keep it")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--vram-mib", type=int, default=24_576, help="of each GPU")
    parser.add_argument("--host-swap-mib", type=int, default=65_536, help="host memory for swapped-out tasks")
    parser.add_argument("--no-exec", action="store_true", help="accept leases, but no commands")
    await Server(parser.parse_args()).run()


if __name__ == "__main__":
    asyncio.run(serve())
