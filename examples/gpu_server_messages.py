"""The checks of what arrives: a payload is hostile until it fits its table (docs/asyncapi.yaml)."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Optional

Check = Callable[[Any], bool]
BIG = 2**51
MAX_MESSAGE_BYTES = 256 * 1024
Json = Dict[str, Any]


def integer(low: int, high: int = BIG) -> Check:
    return lambda value: type(value) is int and low <= value <= high


def text(low: int, high: int, allows_controls: bool = False) -> Check:
    """Accepts texts of `low` to `high` UTF-16 code units, without NUL, surrogates and, usually, controls."""
    lowest = "\x01" if allows_controls else " "

    def check(value: Any) -> bool:
        if not isinstance(value, str) or any(c < lowest or "\ud800" <= c <= "\udfff" for c in value):
            return False
        return low <= len(value.encode("utf-16-le")) // 2 <= high and (allows_controls or "\x7f" not in value)

    return check


def one_of(*allowed: Any) -> Check:
    return lambda value: any(type(value) is type(each) and value == each for each in allowed)


def null_or(check: Check) -> Check:
    return lambda value: value is None or check(value)


def list_of(check: Check, low: int, high: int) -> Check:
    return lambda value: isinstance(value, list) and low <= len(value) <= high and all(map(check, value))


def fields(**table: Check) -> Check:
    """Accepts objects with these fields; `optional_` in front: may be left out. Other fields are ignored."""
    checks = [(name.replace("optional_", ""), name.startswith("optional_"), table[name]) for name in table]
    return lambda value: (
        isinstance(value, dict)
        and all(check(value[name]) if name in value else is_optional for name, is_optional, check in checks)
    )


FLAG, BIT, COUNT, MIB = one_of(True, False), one_of(0, 1), integer(0), integer(0, 2**24)
BOOT = fields(counter=COUNT, random=text(1, 64))
NAME = {"task_id": text(1, 200), "attempt": integer(1, 2**31 - 1)}
COMMAND = {
    **NAME,
    "valid_until_mono": COUNT,
    "node_boot": BOOT,
    "optional_safety_reserve_mib": integer(0, 2**20),
}
GRACE, REASON = integer(0, 3_600_000), text(0, 1000)
SWAP = fields(**COMMAND, generation=COUNT, force_active=FLAG)
GROWTH = fields(**COMMAND, mib=MIB, noswap=BIT, reason=null_or(REASON))
GPU_LIST = list_of(integer(0, 15), 1, 16)
START = fields(
    **COMMAND,
    gpus=lambda value: GPU_LIST(value) and len(set(value)) == len(value),
    vram_mib=integer(1, 2**24),
    gpu_mode=one_of("shared", "exclusive"),
    noswap=BIT,
    priority=integer(0, 4),
    on_node_loss=one_of("wait", "fail", "requeue"),
    command=null_or(list_of(text(0, 4096, allows_controls=True), 1, 256)),
    optional_name=text(0, 1000),
    optional_owner=null_or(text(0, 1000)),
    optional_stop_grace_ms=GRACE,
)
STOP = fields(**COMMAND, reason=REASON, optional_grace_ms=GRACE)
READ_LOG = fields(**NAME, stream=one_of("stdout", "stderr"), offset=COUNT, max_bytes=integer(1, 131_072))
LEASE_MS, RESERVE = integer(1, 86_400_000), integer(0, 2**20)
SETTINGS = fields(heartbeat_ms=integer(1, 60_000), run_lease_ms=LEASE_MS, safety_reserve_mib=RESERVE)
GRANTED = fields(settings=SETTINGS, stop=list_of(fields(**NAME), 0, 1024))
COMMANDS: dict[str, Check] = {
    "start": START, "stop": STOP, "swap_out": SWAP, "swap_in": SWAP,
    "grant": GROWTH, "refuse_growth": GROWTH, "set_noswap": GROWTH,
}  # fmt: skip
READS = {"read_log": READ_LOG, "read_attempt": fields(**NAME)}
ANSWERS: dict[str, Check] = {
    "welcome": GRANTED, "lease": GRANTED, "events_ack": fields(up_to=COUNT),
    "state_reset": fields(counter_above=integer(0, BIG - 1)), "refused": fields(reason=text(0, 200)),
}  # fmt: skip
ENVELOPE = fields(
    v=one_of(1), id=text(1, 200), sent_mono=COUNT, boot=BOOT, seq=COUNT, epoch=COUNT,
    optional_controller=text(1, 64), optional_event_seq=COUNT, body=fields(op=text(1, 200)),
)  # fmt: skip


def parse(data: bytes, operations: dict[str, Check]) -> Optional[Json]:
    """Returns the message; None if it is malformed, or of an unknown operation: neither is answered."""

    def number(digits: str) -> float:
        value = float(digits)
        return int(value) if value.is_integer() else value

    def plain(pairs: list[tuple[str, Any]]) -> Json:
        if {name for name, _ in pairs} & {"__proto__", "constructor", "prototype"}:
            raise ValueError("a forbidden field name")
        return dict(pairs)

    try:
        if len(data) > MAX_MESSAGE_BYTES:
            return None
        message: Json = json.loads(data.decode("utf-8"), parse_float=number, object_pairs_hook=plain)
        return message if ENVELOPE(message) and operations[message["body"]["op"]](message["body"]) else None
    except (ValueError, KeyError, OverflowError, RecursionError):
        return None
