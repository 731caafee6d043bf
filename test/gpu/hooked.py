"""hooked.py MIB FILE: a PyTorch program that moves its data out of VRAM itself. It writes to FILE, as lines of
JSON, the rate of a plain copy between VRAM and pinned memory, then what each suspend and resume took, and ends
when FILE.end exists: with 0 only if its tensors are what they were."""

import json
import os
import sys
import time

import torch

from headroom_client.swap import PinnedTensors, SwapHooks

CHUNK_MIB = int(os.environ.get("CHUNK_MIB", "256"))
mib, path = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(7)
tensors = [torch.randn(CHUNK_MIB * 2**20 // 4, device="cuda") for _ in range(mib // CHUNK_MIB)]
torch.cuda.synchronize()
notes = open(path, "a", buffering=1)


def note(**what):
    notes.write(json.dumps(what) + "\n")


def sums():
    return [float(each.double().sum()) for each in tensors]


def plain_copy():
    """Returns MiB/s out and in: the best of three rounds. All rounds use the same tensors and one pinned buffer for each."""
    hosts = [torch.empty(each.shape, dtype=each.dtype, pin_memory=True) for each in tensors]
    rates = []
    for direction in ("out", "in"):
        best = 0.0
        for _ in range(3):
            began = time.monotonic()
            for each, host in zip(tensors, hosts):
                if direction == "out":
                    host.copy_(each, non_blocking=True)
                else:
                    each.copy_(host, non_blocking=True)
            torch.cuda.synchronize()
            best = max(best, mib / (time.monotonic() - began))
        rates.append(round(best))
    return rates


before = sums()
out, back = plain_copy()
note(plain_out=out, plain_in=back)
pinned = PinnedTensors(tensors)


def timed(name, move):
    def run():
        began = time.monotonic()
        move()
        free, _ = torch.cuda.mem_get_info()
        note(hook=name, ms=round((time.monotonic() - began) * 1000, 1), free_mib=free >> 20)

    return run


hooks = SwapHooks(suspend=timed("suspend", pinned.suspend), resume=timed("resume", pinned.resume))
note(ready=True)
while not os.path.exists(path + ".end"):
    time.sleep(0.05)
with hooks.using_gpu(60):
    if sums() != before:
        sys.exit("tensors are not what they were")
