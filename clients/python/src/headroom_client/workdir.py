"""Uploads a folder for `submit(workdir=…)`: its manifest, and the chunks that the controller does
not have yet.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple, Union

from .errors import HeadroomError
from .transport import segment

if TYPE_CHECKING:
    from .transport import Transport

IGNORE_FILE = ".headroomignore"
ALWAYS_IGNORED = (".git/", "__pycache__/", ".venv/", "node_modules/", ".ipynb_checkpoints/")
CHUNK_BYTES = 4 * 1024 * 1024
MAX_ENTRIES = 20_000
HASHES_PER_REQUEST = 1_000
UPLOADS_AT_ONCE = 6

# File, offset and size of a chunk.
Place = Tuple[str, int, int]


class Ignored:
    """The patterns of an ignore file, which are those of .gitignore; the last one that matches
    decides.
    """

    def __init__(self, text: str) -> None:
        lines = [*ALWAYS_IGNORED, *text.splitlines()]
        self._rules = [rule for rule in map(_rule_of, lines) if rule is not None]

    def __call__(self, path: str, is_folder: bool) -> bool:
        for pattern, is_negated, for_folders in reversed(self._rules):
            if (is_folder or not for_folders) and pattern.fullmatch(path):
                return not is_negated
        return False


def upload_folder(transport: Transport, folder: Union[str, os.PathLike[str]]) -> str:
    """Returns the SHA-256 of the manifest, the value of `workdir` in a submission."""
    root = os.fspath(folder)
    chunks: Dict[str, Place] = {}
    entries = list(_entries(root, chunks))
    if len(entries) > MAX_ENTRIES:
        raise HeadroomError(f"{root} has more than {MAX_ENTRIES} files; exclude some in {IGNORE_FILE}.")
    size = sum(entry.get("bytes", 0) for entry in entries)
    limit = transport.json("GET", "/usage")["files"]["folder_limit_bytes"]
    if size > limit:
        raise HeadroomError(f"{root} has {size} bytes; the limit is {limit} (CONTROLLER_WORKDIR_MAX_MIB).")
    manifest = json.dumps({"version": 1, "entries": entries}, ensure_ascii=False).encode()
    known = list(chunks)
    missing: List[str] = []
    for start in range(0, len(known), HASHES_PER_REQUEST):
        body = {"sha256": known[start : start + HASHES_PER_REQUEST]}
        missing += transport.json("POST", "/blobs/missing", body=body, is_repeatable=True)["sha256"]
    with ThreadPoolExecutor(UPLOADS_AT_ONCE) as pool:
        for _ in pool.map(lambda sha256: _put(transport, sha256, _read(chunks[sha256], sha256)), missing):
            pass
    return _put(transport, _hash_of(manifest), manifest)


def _put(transport: Transport, sha256: str, content: bytes) -> str:
    transport.json("PUT", f"/blobs/{segment(sha256)}", body=content, is_repeatable=True)
    return sha256


def _entries(root: str, chunks: Dict[str, Place]) -> Iterator[Dict[str, Any]]:
    """Yields a folder before its content, names in order."""
    try:
        with open(os.path.join(root, IGNORE_FILE), encoding="utf-8") as rules:
            ignored = Ignored(rules.read())
    except FileNotFoundError:
        ignored = Ignored("")
    pending = [""]
    while pending:
        below = pending.pop()
        folders: List[str] = []
        for name in sorted(os.listdir(os.path.join(root, below))):
            path = f"{below}/{name}" if below else name
            file = os.path.join(root, path)
            mode = os.lstat(file).st_mode
            if ignored(path, stat.S_ISDIR(mode)):
                continue
            if stat.S_ISDIR(mode):
                folders.append(path)
                yield {"path": path, "kind": "folder"}
            elif stat.S_ISLNK(mode):
                yield {"path": path, "kind": "link", "target": _target_of(file, path)}
            elif stat.S_ISREG(mode):
                size, hashes = _hashed(file, chunks)
                is_executable = bool(mode & stat.S_IXUSR)
                yield {
                    "path": path,
                    "kind": "file",
                    "bytes": size,
                    "executable": is_executable,
                    "chunks": hashes,
                }
            else:
                raise HeadroomError(f"{file} is not a file, folder or link; exclude it in {IGNORE_FILE}.")
        pending += reversed(folders)


def _target_of(file: str, path: str) -> str:
    target = os.readlink(file)
    depth = path.count("/")
    for name in target.split("/"):
        depth += {"..": -1, "": 0, ".": 0}.get(name, 1)
        if depth < 0 or target.startswith("/"):
            raise HeadroomError(
                f"{file} is a link that leads out of the folder; exclude it in {IGNORE_FILE}."
            )
    return target


def _hashed(file: str, chunks: Dict[str, Place]) -> Tuple[int, List[str]]:
    hashes: List[str] = []
    size = 0
    with open(file, "rb") as opened:
        while True:
            content = opened.read(CHUNK_BYTES)
            if not content:
                return size, hashes
            sha256 = _hash_of(content)
            chunks.setdefault(sha256, (file, size, len(content)))
            hashes.append(sha256)
            size += len(content)


def _read(place: Place, sha256: str) -> bytes:
    file, offset, size = place
    with open(file, "rb") as opened:
        opened.seek(offset)
        content = opened.read(size)
    if _hash_of(content) != sha256:
        raise HeadroomError(f"{file} changed during the upload; nothing was submitted.")
    return content


def _hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _rule_of(line: str) -> Optional[Tuple[re.Pattern[str], bool, bool]]:
    line = line.rstrip()
    if not line or line.startswith("#"):
        return None
    is_negated = line.startswith("!")
    glob = line[1:] if is_negated else line
    body = glob.rstrip("/")
    source = "/".join(map(_part_of, body.lstrip("/").split("/")))
    source = source.replace("\0/", "(?:.*/)?").replace("\0", ".*")
    return re.compile(source if "/" in body else f"(?:.*/)?{source}"), is_negated, glob.endswith("/")


def _part_of(part: str) -> str:
    """Replaces `**` with NUL until the parts are joined."""
    if part == "**":
        return "\0"
    return re.escape(part).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
