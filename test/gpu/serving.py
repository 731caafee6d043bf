"""serving.py MIB BURSTS BUSY_S IDLE_S: a PyTorch program that knows nothing of Headroom. Holds MIB of tensors, multiplies matrices for BUSY_S seconds, rests for
IDLE_S, and so on; ends with 0 only if its tensors are what they were."""

import sys
import time

import torch

mib, bursts = int(sys.argv[1]), int(sys.argv[2])
busy_s, idle_s = float(sys.argv[3]), float(sys.argv[4])

torch.manual_seed(7)
tensors = [torch.randn(64 * 2**20 // 4, device="cuda") for _ in range(mib // 64)]
weights = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()


def sums():
    return [float(each.double().sum()) for each in tensors]


before = sums()
for burst in range(bursts):
    if burst > 0:
        time.sleep(idle_s)
    asked = time.monotonic()
    torch.cuda.synchronize()
    torch.ones(1, device="cuda").item()
    began = time.monotonic()
    while time.monotonic() - began < busy_s:
        for _ in range(50):
            weights = weights @ weights
            weights = weights / weights.abs().max()
        torch.cuda.synchronize()
    print(f"burst {burst}: waited {began - asked:.1f} s for the GPU", flush=True)
if sums() != before:
    sys.exit("tensors are not what they were")
