"""The examples of README.md, and the notebook."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Cluster, free_port

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_readme_has_examples() -> None:
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(cluster: Cluster, example: str) -> None:
    environment = {"HEADROOM_URL": cluster.url, "PATH": "/usr/bin:/bin"}
    # Another program of this machine may listen there.
    program = example.replace("8888", str(free_port()))
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout != ""


def test_the_notebook_runs_from_end_to_end(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("HEADROOM_URL", cluster.url)
    notebook = nbformat.read(PROJECT / "examples/notebook.ipynb", as_version=4)
    client.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    texts = [
        "".join(output.get("text", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    assert texts[1] == "5050\n"
    assert "completed" in texts[2]
    assert texts[3].startswith("alpha [0]")
