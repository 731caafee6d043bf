"""Where address, token and defaults of a submission come from."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any, Dict
from urllib.parse import quote

import pytest

from headroom_client import SettingsError
from headroom_client.environment import filled_in
from headroom_client.settings import DEFAULT_URL, resolve

CONTEXT = {"url": "https://lab.example/gpu/", "token": "of-lab"}


@pytest.fixture
def home(tmp_path: Path) -> Dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def write(home: Dict[str, str], settings: Any, mode: int = 0o600) -> Path:
    path = Path(home["XDG_CONFIG_HOME"]) / "headroom/client.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings), encoding="utf-8")
    path.chmod(mode)
    return path


def test_the_first_of_argument_variables_context_and_default_wins(home: Dict[str, str]) -> None:
    assert resolve(None, None, home) == (DEFAULT_URL, None)
    write(home, {"current_context": "lab", "contexts": {"lab": CONTEXT}})
    assert resolve(None, None, home) == ("https://lab.example/gpu", "of-lab")
    home["VENDOR_CONTROLLER_URL"] = "http://vendor:1"
    assert resolve(None, None, home).url == "http://vendor:1"
    home["HEADROOM_URL"] = "http://own:1"
    assert resolve(None, None, home).url == "http://own:1"
    assert resolve("http://argument:1", None, home).url == "http://argument:1"


def test_several_addresses_are_checked_each(home: Dict[str, str]) -> None:
    assert resolve("http://a:1/ , https://b", None, home).urls == ["http://a:1", "https://b"]
    for text in ("http://a,", "http://a,b", ",".join(["http://a"] * 9)):
        with pytest.raises(SettingsError):
            resolve(text, None, home)


def test_the_socket_of_this_host_is_before_the_default(home: Dict[str, str], tmp_path: Path) -> None:
    home["XDG_RUNTIME_DIR"] = str(tmp_path / "run 1%")
    path = tmp_path / "run 1%" / "headroom" / "gpu-server.sock"
    path.parent.mkdir(parents=True)
    path.write_text("no socket", encoding="utf-8")
    assert resolve(None, None, home).url == DEFAULT_URL
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        assert resolve(None, None, home).url == f"unix://{quote(str(path))}"
        write(home, {"current_context": "lab", "contexts": {"lab": CONTEXT}})
        assert resolve(None, None, home).url == "https://lab.example/gpu"


def test_the_token_of_a_context_stays_with_its_address(home: Dict[str, str]) -> None:
    write(home, {"current_context": "lab", "contexts": {"lab": CONTEXT}})
    assert resolve("http://elsewhere:1", None, home).token is None
    assert resolve(None, "given", home).token == "given"
    assert resolve(None, None, {**home, "HEADROOM_TOKEN": "variable"}).token == "variable"


@pytest.mark.parametrize(
    "url",
    [
        "lab",
        "ftp://lab",
        "http://",
        "http://lab:0x50",
        "http://u:p@lab",
        "http://lab?x=1",
        "http://lab:99999",
        "unix://host/path",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="is not the address of a controller"):
        resolve(url, None, {})


def test_a_token_that_others_may_read_is_refused(home: Dict[str, str]) -> None:
    path = write(home, {"current_context": "lab", "contexts": {"lab": CONTEXT}}, 0o644)
    with pytest.raises(SettingsError, match=f"run `chmod 600 {path}`"):
        resolve(None, None, home)


@pytest.mark.parametrize(
    "settings, message",
    [
        ("{", "cannot be read"),
        ({"current_context": 1}, "wrong type"),
        ({"current_context": "lab"}, "the current context 'lab' does not exist"),
        ({"current_context": "lab", "contexts": []}, "wrong type"),
        ({"current_context": "lab", "contexts": {"lab": {"url": 1}}}, "wrong type"),
    ],
)
def test_a_damaged_settings_file_is_an_error(home: Dict[str, str], settings: Any, message: str) -> None:
    write(home, settings)
    with pytest.raises(SettingsError, match=message):
        resolve(None, None, home)


def test_a_token_with_a_line_break_is_refused() -> None:
    with pytest.raises(SettingsError, match="printable ASCII"):
        resolve(None, "a\nb", {})


def test_variables_fill_in_missing_fields_only(caplog: pytest.LogCaptureFixture) -> None:
    environment = {
        "REQUIRED_VRAM": "8Gi",
        "PRIO": "0",
        "GPU_COUNT": "2",
        "GPU_MODE": "exclusive",
        "VENDOR_SWAP_FROM_VRAM": "0",
        "CONTROLLER_NODE_GROUP_IDS": "a, b,a",
    }
    with caplog.at_level(logging.WARNING):
        assert filled_in({"vram_mib": 5}, environment) == {
            "vram_mib": 5,
            "priority": 0,
            "gpu_count": 2,
            "gpu_mode": "exclusive",
            "noswap": 1,
            "groups": ["a", "b"],
        }
    assert "taken from the environment: PRIO=0" in caplog.messages
    own = {**environment, "HEADROOM_SWAP_FROM_VRAM": "1", "HEADROOM_GROUPS": "c"}
    result = filled_in({}, own)
    assert (result["noswap"], result["groups"]) == (0, ["c"])


@pytest.mark.parametrize(
    "name, value", [("PRIO", "5"), ("GPU_COUNT", "0"), ("REQUIRED_VRAM", "8"), ("HEADROOM_GROUPS", "a,,b")]
)
def test_a_bad_variable_is_an_error_unless_its_field_is_given(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is "):
        filled_in({}, {name: value})
    fields = {"priority": 1, "gpu_count": 1, "vram_mib": 1, "groups": []}
    assert filled_in(fields, {name: value}) == fields
