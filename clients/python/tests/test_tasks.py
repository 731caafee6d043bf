"""Tasks and leases on a real cluster."""

from __future__ import annotations

import inspect
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Cluster, until

from headroom_client import ApiError, Client, ConnectionFailed, HeadroomError, TaskFailed, models
from headroom_client.environment import mib_of


def test_a_task_runs_and_its_output_arrives(client: Client) -> None:
    task = client.submit(["sh", "-c", "echo out; echo err >&2"], name="first", vram_mib=100)
    assert "".join(task.logs(follow=True)) == "out\n"
    assert task.wait(60, check=True).state == "completed"
    assert "".join(task.logs(stream="stderr")) == "err\n"
    assert (task.exit_code, task.name, task.vram_mib, task.wait_reason) == (0, "first", 100, None)


def test_a_text_is_split_into_words(client: Client) -> None:
    task = client.submit("printf '%s|' 'two words' $HOME", vram_mib=1)
    assert "".join(task.logs(follow=True)) == "two words|$HOME|"


def test_a_task_has_its_variables_and_shows_their_names_only(client: Client) -> None:
    task = client.submit(["sh", "-c", "echo $GREETING"], vram_mib=1000, env={"GREETING": "good day"})
    assert task.env_names == ["GREETING"]
    assert "good day" not in str(task.data)
    assert "".join(task.logs(follow=True)) == "good day\n"


def test_a_folder_is_uploaded_and_its_results_are_read(client: Client, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.sh").write_text("cat data.txt; mkdir out; printf done >out/result\n")
    (tmp_path / "data.txt").write_text("from here\n")
    (tmp_path / "big.bin").write_bytes(b"x" * (5 * 1024 * 1024))
    (tmp_path / "secret.key").write_text("not uploaded")
    (tmp_path / "latest").symlink_to("data.txt")
    (tmp_path / ".headroomignore").write_text("*.key\n")
    task = client.submit(["sh", "src/train.sh"], vram_mib=100, workdir=tmp_path)
    assert "".join(task.logs(follow=True)) == "from here\n"
    task.wait(60, check=True)
    paths = {file["path"]: file["kind"] for file in task.files()}
    assert paths["out/result"] == "file"
    assert paths["latest"] == "link"
    assert "secret.key" not in paths
    assert task.read_file("out/result") == b"done"
    assert task.read_file("big.bin") == b"x" * (5 * 1024 * 1024)
    with pytest.raises(ApiError, match="work folder does not contain"):
        task.read_file("nothing")
    (tmp_path / "out").symlink_to("/etc")
    with pytest.raises(HeadroomError, match="link that leads out of the folder"):
        client.submit(["true"], vram_mib=100, workdir=tmp_path)


def test_a_failure_has_its_exit_code(client: Client) -> None:
    task = client.submit(["sh", "-c", "exit 7"], vram_mib=1)
    with pytest.raises(TaskFailed) as failure:
        task.wait(60, check=True)
    assert failure.value.exit_code == 7


def test_output_of_several_megabytes_is_complete_and_split_characters_are_whole(client: Client) -> None:
    program = "import sys; sys.stdout.write('é€😀' * 300_000)"
    task = client.submit([sys.executable, "-c", program], vram_mib=1)
    assert "".join(task.logs(follow=True)) == "é€😀" * 300_000


def test_a_wait_ends_at_its_timeout_with_the_reason(client: Client) -> None:
    task = client.submit(["true"], vram_mib=64 * 1024)
    with pytest.raises(TimeoutError, match=r"is still pending after 1 s\. \S+"):
        task.wait(1)
    assert task.explain()["wait"]
    assert task.cancel().wait(10).state == "cancelled"


def test_a_running_task_can_be_cancelled(client: Client) -> None:
    task = client.submit(["sleep", "600"], vram_mib=1)
    until("it runs", lambda: task.refresh().state == "running")
    assert task.cancel(now=True).wait(60).state == "cancelled"


def test_a_refusal_names_the_field(client: Client) -> None:
    with pytest.raises(ApiError) as refusal:
        client.submit(["true"], vram_mib=-1)
    assert refusal.value.status == 400
    assert [error["pointer"] for error in refusal.value.errors] == ["/vram_mib"]


def test_an_unknown_task_is_an_error(client: Client) -> None:
    for name in ("no such task", "..", "a/b?c"):
        with pytest.raises(ApiError) as refusal:
            client.task(name)
        assert refusal.value.status == 404


def test_the_same_key_returns_the_same_task(client: Client) -> None:
    first = client.submit(["true"], vram_mib=1, idempotency_key="python-1")
    assert client.submit(["true"], vram_mib=1, idempotency_key="python-1").id == first.id


def test_a_controller_on_sqlite_leads_alone_and_cannot_hand_over(client: Client) -> None:
    leader = client.leader()
    assert leader["leader"] is not None and leader["standbys"] == []
    with pytest.raises(ApiError, match="No standby is available") as refusal:
        client.resign_leader()
    assert refusal.value.status == 409


def test_a_trial_submits_nothing(client: Client) -> None:
    # A task of another test may end meanwhile.
    before = sum(client.summary()["tasks"]["by_list"].values())
    preview = client.try_out(command=["true"], vram_mib=1)
    assert preview["placement"] is not None
    assert sum(client.summary()["tasks"]["by_list"].values()) == before


def test_a_thousand_submissions_by_threads_of_one_client_are_a_thousand_tasks(client: Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        tasks = list(
            pool.map(
                lambda i: client.submit(
                    ["true"], name=f"many {i}", vram_mib=64 * 1024, labels={"set": "many"}
                ),
                range(1000),
            )
        )
    ids = {task.id for task in tasks}
    assert len(ids) == 1000
    assert {task.id for task in client.tasks("pending", label="set=many")} == ids
    assert len(client._transport._addresses[0]._idle) <= 8
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda task: task.cancel(), tasks))


def test_a_wait_survives_a_kill_of_the_controller(cluster: Cluster, client: Client) -> None:
    task = client.submit(["sh", "-c", "sleep 4; echo done"], vram_mib=1)
    until("it runs", lambda: task.refresh().state == "running")
    texts: list = []
    reader = threading.Thread(target=lambda: texts.extend(task.logs(follow=True)))
    reader.start()
    cluster.kill_controller()
    with pytest.raises(ConnectionFailed) as failure:
        Client(cluster.url, attempts=1, environment={}).summary()
    assert failure.value.is_unsent
    restart = threading.Timer(1, cluster.start_controller)
    restart.start()
    assert task.wait(90, check=True).exit_code == 0
    restart.join()
    reader.join(60)
    assert "".join(texts) == "done\n"


def test_a_lease_has_a_place_until_its_end(client: Client) -> None:
    with client.lease(vram_mib=1000, name="notebook", timeout=60) as lease:
        assert (lease.node_name, lease.gpus) == ("alpha", [0])
        task = lease.task
        lease.wants_gpu = False
        until("it does not want the GPU", lambda: task.refresh().data["placement"]["wants_gpu"] is False)
        lease.wants_gpu = True
        until("it wants the GPU", lambda: task.refresh().data["placement"]["wants_gpu"])
    until("it has ended", lambda: task.refresh().is_final)
    assert task.state in ("cancelled", "completed")


def test_a_lease_without_a_place_gives_up_and_ends(client: Client) -> None:
    with pytest.raises(TimeoutError, match="was not placed within 1 s"):
        with client.lease(vram_mib=64 * 1024, name="too large", timeout=1):
            pytest.fail("it has no place")
    assert [task.state for task in client.tasks("all", q="too large")] == ["cancelled"]


def test_a_lease_that_is_cancelled_by_another_raises(client: Client) -> None:
    with pytest.raises(TaskFailed, match="The lease is over"):
        with client.lease(vram_mib=1, timeout=60) as lease:
            client.task(lease.task.id).cancel()
            until("it is over", lambda: lease.task.refresh().is_final)
            lease.wants_gpu = False
            until("the lease knows it", lambda: lease._failure is not None)


def test_the_arguments_are_the_fields_of_the_interface() -> None:
    arguments = set(inspect.signature(Client.submit).parameters) - {"self", "idempotency_key"}
    assert arguments == set(models.TaskRequest.__annotations__)
    query = set(inspect.signature(Client.tasks).parameters) - {"self"}
    assert query == set(models.TaskQuery.__annotations__) - {"limit", "cursor", "format"}


def test_the_models_are_those_of_the_controller(cluster: Cluster) -> None:
    import runpy

    generator = runpy.run_path(str(Path(__file__).parents[1] / "tools/generate_models.py"))
    text = generator["Models"](generator["document_at"](f"{cluster.url}/api/v1/openapi.json")).text()
    assert text == generator["TARGET"].read_text(encoding="utf-8"), "run tools/generate_models.py"


@pytest.mark.parametrize(
    "text, mib",
    [("8Gi", 8192), ("8G", 7630), ("8192Mi", 8192), ("1M", 1), ("8", None), ("1.5Gi", None), ("٣Gi", None)],
)
def test_a_size_needs_its_unit(text: str, mib: int | None) -> None:
    assert mib_of(text) == mib
