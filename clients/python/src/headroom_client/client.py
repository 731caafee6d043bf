"""The client of a controller."""

from __future__ import annotations

import os
import shlex
import uuid
from types import TracebackType
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Type, Union, cast

from . import models
from .environment import filled_in
from .lease import Lease
from .settings import resolve
from .task import Task
from .transport import Transport, segment
from .workdir import upload_folder

PAGE = 200


class Client:
    """Client of one controller; thread-safe.

    Without arguments it uses HEADROOM_URL and HEADROOM_TOKEN, or the context that `headroom login`
    stored, or the controller on this host. `timeout` is the maximum time for one response, in
    seconds; `attempts` is the maximum number of attempts for requests that are safe to repeat.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        timeout: float = 30.0,
        attempts: int = 4,
        environment: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._transport = Transport(
            resolve(url, token, self._environment), timeout=timeout, attempts=max(1, attempts)
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    @property
    def url(self) -> str:
        """Address of the controller."""
        return self._transport.url

    def close(self) -> None:
        """Closes idle connections; the client remains usable."""
        self._transport.close()

    def submit(
        self,
        command: Union[str, Sequence[str]],
        *,
        name: Optional[str] = None,
        vram_mib: Optional[int] = None,
        gpu_count: Optional[int] = None,
        gpu_mode: Optional[Literal["shared", "exclusive"]] = None,
        noswap: Optional[Literal[0, 1]] = None,
        priority: Optional[Literal[0, 1, 2, 3, 4]] = None,
        groups: Optional[Sequence[str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        max_runtime_seconds: Optional[int] = None,
        stop_grace_seconds: Optional[int] = None,
        on_node_loss: Optional[Literal["wait", "fail", "requeue"]] = None,
        max_requeues: Optional[int] = None,
        image: Optional[str] = None,
        ports: Optional[Sequence[Mapping[str, Union[str, int]]]] = None,
        wake_on_request: Optional[bool] = None,
        workdir: Optional[Union[str, os.PathLike[str]]] = None,
        cwd: Optional[str] = None,
        mounts: Optional[Sequence[str]] = None,
        memory_mib: Optional[int] = None,
        cpus: Optional[int] = None,
        pids_limit: Optional[int] = None,
        vram_limit_mib: Optional[int] = None,
        idle_swap_out_seconds: Optional[int] = None,
        keep_warm: Optional[bool] = None,
        swap_method: Optional[str] = None,
        swap_hooks: Optional[Mapping[str, Any]] = None,
        swap_engine: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
        secrets: Optional[Mapping[str, str]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Task:
        """Submits a task, and returns it once it is durable.

        `command` is a list of words; a string is split into words as a shell would, without
        variables or wildcards. `vram_mib` is the demand on each GPU. `models.TaskRequest` describes
        the other fields; fields without a value come from the environment (docs/client.md) or the
        controller's defaults.

        `workdir` is a folder of this machine that is uploaded; the command starts in a copy of it.
        A `.headroomignore` file excludes parts of it (docs/files.md).

        Every call has its own key, so a retry after a lost response never creates a second task.
        Pass the same `idempotency_key` to extend this to several calls.
        """
        request = _given(
            command=shlex.split(command) if isinstance(command, str) else list(command),
            name=name,
            vram_mib=vram_mib,
            gpu_count=gpu_count,
            gpu_mode=gpu_mode,
            noswap=noswap,
            priority=priority,
            groups=None if groups is None else list(groups),
            labels=None if labels is None else dict(labels),
            max_runtime_seconds=max_runtime_seconds,
            stop_grace_seconds=stop_grace_seconds,
            on_node_loss=on_node_loss,
            max_requeues=max_requeues,
            image=image,
            ports=None if ports is None else [dict(port) for port in ports],
            wake_on_request=wake_on_request,
            workdir=None if workdir is None else upload_folder(self._transport, workdir),
            cwd=cwd,
            mounts=None if mounts is None else list(mounts),
            memory_mib=memory_mib,
            cpus=cpus,
            pids_limit=pids_limit,
            vram_limit_mib=vram_limit_mib,
            idle_swap_out_seconds=idle_swap_out_seconds,
            keep_warm=keep_warm,
            swap_method=swap_method,
            swap_hooks=swap_hooks,
            swap_engine=swap_engine,
            env=None if env is None else dict(env),
            secrets=None if secrets is None else dict(secrets),
        )
        return self._submit(request, idempotency_key)

    def lease(
        self,
        *,
        name: Optional[str] = None,
        vram_mib: Optional[int] = None,
        gpu_count: Optional[int] = None,
        gpu_mode: Optional[Literal["shared", "exclusive"]] = None,
        noswap: Optional[Literal[0, 1]] = None,
        priority: Optional[Literal[0, 1, 2, 3, 4]] = None,
        groups: Optional[Sequence[str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        attach: bool = False,
        timeout: Optional[float] = None,
    ) -> Lease:
        """Returns a context manager that reserves VRAM for a program on this machine.

        It waits until the lease is placed, and raises TimeoutError after `timeout` seconds. With
        `attach`, this process (not its children) becomes the process of the lease if the lease is
        placed on this host: its VRAM counts as that of the lease, it is stopped while the lease is
        swapped out and ended with it, and CUDA_VISIBLE_DEVICES is set within the block, so use CUDA
        only there. On another host it warns (ReservationOnly).
        """
        request = _given(
            name=name,
            vram_mib=vram_mib,
            gpu_count=gpu_count,
            gpu_mode=gpu_mode,
            noswap=noswap,
            priority=priority,
            groups=None if groups is None else list(groups),
            labels=None if labels is None else dict(labels),
        )
        return Lease(self, request, timeout, attach)

    def task(self, task_id: str) -> Task:
        """Returns the task with this ID."""
        return Task(self, self._transport.json("GET", f"/tasks/{segment(task_id)}"))

    def tasks(
        self,
        state: str = "all",
        *,
        sort: Literal["newest", "oldest", "priority", "name", "starved_seconds"] = "newest",
        priority: Optional[int] = None,
        node: Optional[str] = None,
        group: Optional[str] = None,
        owner: Optional[str] = None,
        without_owner: Optional[bool] = None,
        label: Optional[str] = None,
        q: Optional[str] = None,
        reason: Optional[str] = None,
    ) -> Iterator[Task]:
        """Yields all tasks that match, page by page. `state` is a list (`all`, `pending`, `running`,
        `completed`) or an exact state; `q` is part of the name, or an ID; `reason` is a wait
        reason;
        `without_owner` selects tasks that were submitted without authentication."""
        query = _given(
            state=state,
            sort=sort,
            priority=priority,
            node=node,
            group=group,
            owner=owner,
            without_owner=without_owner,
            label=label,
            q=q,
            reason=reason,
            limit=PAGE,
        )
        cursor: Optional[str] = None
        while True:
            page: models.TaskPage = self._transport.json("GET", "/tasks", query={**query, "cursor": cursor})
            yield from (Task(self, data) for data in page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def try_out(self, **request: Any) -> models.PlacementPreview:
        """Returns where the task would be placed now and which tasks would be swapped out; submits nothing.

        Accepts the fields of `models.TaskRequest`.
        """
        body = filled_in(request, self._environment)
        return cast(
            models.PlacementPreview,
            self._transport.json("POST", "/tasks", query={"dry_run": True}, body=body, is_repeatable=True),
        )

    def nodes(self) -> List[models.Node]:
        """Returns all nodes with their GPUs."""
        nodes: List[models.Node] = []
        cursor: Optional[str] = None
        while True:
            page: models.NodePage = self._transport.json(
                "GET", "/nodes", query={"limit": PAGE, "cursor": cursor}
            )
            nodes += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return nodes

    def summary(self) -> models.Summary:
        """Returns the counts and sums of the cluster."""
        return cast(models.Summary, self._transport.json("GET", "/summary"))

    def leader(self) -> models.Leader:
        """Returns the controllers of the store: the leader and the standbys."""
        return cast(models.Leader, self._transport.json("GET", "/leader"))

    def resign_leader(self, to: Optional[str] = None) -> models.Leader:
        """Lets the leader hand over to the standby `to`, or to any. Needs the role admin.

        Returns the controllers as they were before. The handover has succeeded when `leader`
        has a higher epoch.

        Raises:
            ApiError: no standby can take over (409).
        """
        body: models.LeaderResignation = {"to": to}
        return cast(models.Leader, self._transport.json("POST", "/leader/resign", body=body))

    def version(self) -> models.Version:
        """Returns the controller's version and the kind of its fleet."""
        return cast(models.Version, self._transport.json("GET", "/version"))

    def _submit(self, request: Mapping[str, Any], key: Optional[str] = None) -> Task:
        return Task(
            self,
            self._transport.json(
                "POST",
                "/tasks",
                body=filled_in(request, self._environment),
                headers={"Idempotency-Key": key or str(uuid.uuid4())},
                is_repeatable=True,
            ),
        )


def _given(**fields: Any) -> Dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
