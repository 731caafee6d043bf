"""Finds the address of the controller and the token of the caller.

The address comes from the first of: the argument, HEADROOM_URL, VENDOR_CONTROLLER_URL, the current
context of the settings file, the socket of a server on this host, http://127.0.0.1:30080. The token
comes from the argument, HEADROOM_TOKEN, or the context that gave the address: the token of a
context is never sent to another address.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional
from urllib.parse import quote, urlsplit

from .errors import SettingsError

DEFAULT_URL = "http://127.0.0.1:30080"
SOCKET_NAME = "gpu-server.sock"
MAX_URLS = 8
SYSTEM_FOLDER = "/run/headroom"


class Connection(NamedTuple):
    """Addresses of one cluster without a trailing slash, separated by commas, and token or None."""

    url: str
    token: Optional[str]

    @property
    def urls(self) -> List[str]:
        return self.url.split(",")


def resolve(
    url: Optional[str], token: Optional[str], environment: Optional[Mapping[str, str]] = None
) -> Connection:
    """Returns the address and the token to use. Raises SettingsError."""
    env = os.environ if environment is None else environment
    address = url or env.get("HEADROOM_URL") or env.get("VENDOR_CONTROLLER_URL")
    context_token: Optional[str] = None
    if not address:
        address, context_token = _current_context(env)
    token = token if token is not None else env.get("HEADROOM_TOKEN") or context_token
    if token is not None and any(not 0x20 < ord(character) < 0x7F for character in token):
        raise SettingsError("The token must contain only printable ASCII characters.")
    return Connection(_all_checked(address or _local_socket(env) or DEFAULT_URL), token or None)


def _all_checked(addresses: str) -> str:
    urls = [_checked(each.strip()) for each in addresses.split(",")]
    if len(urls) > MAX_URLS:
        raise SettingsError(f"At most {MAX_URLS} addresses are allowed.")
    return ",".join(urls)


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "unix" and not parts.netloc and len(parts.path) > 1:
        return f"unix://{parts.path}"
    try:
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or parts.query or parts.fragment or parts.username is not None:
        raise SettingsError(f"{url!r} is not the address of a controller, such as {DEFAULT_URL}.")
    return url.rstrip("/")


def _local_socket(env: Mapping[str, str]) -> Optional[str]:
    """Returns the address of the first socket of `headroom gpu-server --standalone` that may be
    used here.
    """
    runtime = env.get("XDG_RUNTIME_DIR")
    for folder in [SYSTEM_FOLDER, *([os.path.join(runtime, "headroom")] if runtime else [])]:
        path = os.path.join(folder, SOCKET_NAME)
        try:
            is_socket = stat.S_ISSOCK(os.stat(path).st_mode)
        except OSError:
            continue
        if is_socket and os.access(path, os.R_OK | os.W_OK):
            return f"unix://{quote(path)}"
    return None


def settings_file(environment: Mapping[str, str]) -> Path:
    """Returns the path of the settings file, which the command line shares."""
    folder = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME") or "~", ".config")
    return Path(folder).expanduser() / "headroom" / "client.json"


def _current_context(environment: Mapping[str, str]) -> tuple[Optional[str], Optional[str]]:
    path = settings_file(environment)
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            settings = json.load(file)
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    name = _field(settings, "current_context", str, path)
    if name is None:
        return None, None
    context = _field(_field(settings, "contexts", dict, path) or {}, name, dict, path)
    if context is None:
        raise SettingsError(f"{path}: the current context {name!r} does not exist.")
    token = _field(context, "token", str, path)
    if token is not None and os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"{path} contains a token, and other users can read it: run `chmod 600 {path}`.")
    return _field(context, "url", str, path), token


def _field(holder: Any, name: str, kind: type, path: Path) -> Any:
    value = holder.get(name) if isinstance(holder, dict) else None
    if value is not None and not isinstance(value, kind):
        raise SettingsError(f"{path}: {name!r} has the wrong type.")
    return value
