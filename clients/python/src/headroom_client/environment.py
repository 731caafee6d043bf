"""Environment variables that fill in fields missing from a submission; an argument takes precedence.

HEADROOM_SWAP_FROM_VRAM (else VENDOR_SWAP_FROM_VRAM) and HEADROOM_GROUPS (else
CONTROLLER_NODE_GROUP_IDS) are Headroom's own. REQUIRED_VRAM, PRIO, GPU_COUNT and GPU_MODE are those
of the original client; their use is logged, because such generic names may be set for another
purpose.
"""

from __future__ import annotations

import logging
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from .errors import SettingsError

LOGGER = logging.getLogger("headroom_client")
MAX_GPUS = 1024
_BYTES = {"Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "M": 10**6, "G": 10**9, "T": 10**12}


def mib_of(text: str) -> Optional[int]:
    """Returns a size in MiB: 8192 for `8Gi`.

    Decimal units are rounded up. None: not a size with a unit.
    """
    match = re.fullmatch(r"([0-9]{1,12})(Mi|Gi|Ti|M|G|T)", text)
    return None if match is None else -(-int(match[1]) * _BYTES[match[2]] // 2**20)


def _whole(least: int, most: int) -> Callable[[str], Optional[int]]:
    def read(text: str) -> Optional[int]:
        value = int(text) if re.fullmatch(r"[0-9]{1,6}", text) else -1
        return value if least <= value <= most else None

    return read


def _groups(text: str) -> Optional[List[str]]:
    groups = [group.strip() for group in text.split(",")]
    return None if "" in groups else list(dict.fromkeys(groups))


class _Reader(NamedTuple):
    variables: Tuple[str, ...]
    allowed: str
    read: Callable[[str], Any]
    """Returns the parsed value; None if it is invalid."""


_READERS: Dict[str, _Reader] = {
    "vram_mib": _Reader(
        ("REQUIRED_VRAM",),
        "a size with its unit: 8Gi, 8192Mi, 8G or 8000M",
        lambda text: mib_of(text) or None,
    ),
    "priority": _Reader(("PRIO",), "a whole number from 0 (highest) to 4", _whole(0, 4)),
    "gpu_count": _Reader(("GPU_COUNT",), f"a whole number from 1 to {MAX_GPUS}", _whole(1, MAX_GPUS)),
    "gpu_mode": _Reader(
        ("GPU_MODE",), "shared or exclusive", {"shared": "shared", "exclusive": "exclusive"}.get
    ),
    "noswap": _Reader(
        ("HEADROOM_SWAP_FROM_VRAM", "VENDOR_SWAP_FROM_VRAM"), "1 (swappable) or 0", {"1": 0, "0": 1}.get
    ),
    "groups": _Reader(
        ("HEADROOM_GROUPS", "CONTROLLER_NODE_GROUP_IDS"), "names of groups, separated by commas", _groups
    ),
}
_ORIGINAL = ("vram_mib", "priority", "gpu_count", "gpu_mode")


def filled_in(request: Mapping[str, Any], environment: Mapping[str, str]) -> Dict[str, Any]:
    """Returns the request with its missing fields filled in. Raises SettingsError.

    A variable is read only if its field is missing, so a bad value without effect is not an error.
    """
    result = dict(request)
    for field, reader in _READERS.items():
        if field in request:
            continue
        given = [(name, environment.get(name, "").strip()) for name in reader.variables]
        name, text = next((each for each in given if each[1]), ("", ""))
        if not text:
            continue
        value = reader.read(text)
        if value is None:
            raise SettingsError(f"{name} is {text[:200]!r}; it must be {reader.allowed}.")
        result[field] = value
        if field in _ORIGINAL:
            LOGGER.warning("taken from the environment: %s=%s", name, text)
    return result
