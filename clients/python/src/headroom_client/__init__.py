"""Client of Headroom, a controller that routes GPU tasks and shares VRAM between them.

from headroom_client import Client

task = Client().submit(["python3", "train.py"], vram_mib=8192)
for text in task.logs(follow=True):
    print(text, end="")
task.wait(check=True)
"""

from . import models
from .channel import ExecResult
from .client import Client
from .errors import (
    ApiError,
    ChannelCut,
    ConnectionFailed,
    HeadroomError,
    SettingsError,
    TaskFailed,
    UnexpectedAnswer,
)
from .forwarding import Forwarding
from .lease import Lease, ReservationOnly
from .magic import load_ipython_extension
from .task import Task

__all__ = [
    "ApiError",
    "ChannelCut",
    "Client",
    "ConnectionFailed",
    "ExecResult",
    "Forwarding",
    "HeadroomError",
    "Lease",
    "ReservationOnly",
    "SettingsError",
    "Task",
    "TaskFailed",
    "UnexpectedAnswer",
    "load_ipython_extension",
    "models",
]
