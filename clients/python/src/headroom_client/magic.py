"""`%load_ext headroom_client`: the cell magic `%%headroom` runs a cell as a task on a GPU."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any, List

from .client import Client
from .environment import mib_of


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(f"%%headroom: {message}")


def run_cell(line: str, cell: str) -> None:
    """Submits the cell as a Python program and prints its output as it arrives; TaskFailed if it fails.

    Options: --vram 8Gi, --gpus 1, --name NAME, --python PROGRAM (on the GPU server), --priority 0
    to 4.
    """
    parser = _Parser(prog="%%headroom", add_help=False)
    parser.add_argument("--vram")
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--name", default="notebook cell")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--priority", type=int)
    options = parser.parse_args(shlex.split(line))
    vram_mib = None if options.vram is None else mib_of(options.vram)
    if options.vram is not None and not vram_mib:
        parser.error(f"--vram is {options.vram!r}; it must be a size with its unit, such as 8Gi")
    command: List[str] = [options.python, "-u", "-c", cell]
    task = Client().submit(
        command, name=options.name, vram_mib=vram_mib, gpu_count=options.gpus, priority=options.priority
    )
    try:
        for text in task.logs(follow=True):
            sys.stdout.write(text)
        for text in task.logs(stream="stderr"):
            sys.stderr.write(text)
        task.wait(check=True)
    except KeyboardInterrupt:
        task.cancel()
        raise


def load_ipython_extension(shell: Any) -> None:
    """Registers the magic; IPython calls it."""
    shell.register_magic_function(run_cell, magic_kind="cell", magic_name="headroom")
