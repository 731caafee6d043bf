"""The journal: everything that a restart of the server must find, in one SQLite file."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any, Dict, Optional

Json = Dict[str, Any]
MAX_EVENTS = 100  # in one message; 256 are allowed
KEPT_OUTPUTS = 100  # of ended attempts, for read_log
KEPT_ATTEMPTS = 100_000  # that ended or were refused: they never start again


@dataclasses.dataclass
class Attempt:
    """What the server knows of an attempt that lives or has ended. Times are milliseconds of now_ms()."""

    start: Json  # the body of its start command; grant and set_noswap change it
    folder: str
    wants_gpu: bool
    used_at: int
    residency: str = "none"  # until the guard reports the start
    generation: int = 0
    swap_ends: int = 0
    is_started: bool = False
    is_start_acked: bool = False
    kill_at: Optional[int] = None  # a stop is in progress

    @property
    def key(self) -> tuple[str, int]:
        return (self.start["task_id"], self.start["attempt"])

    @property
    def tag(self) -> str:
        """Marks the processes of the attempt; no other attempt on this host has the same."""
        return Path(self.folder).name


class Journal:
    """Nothing leaves the server before commit() has returned (R1)."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path)
        self.db.executescript(
            """PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT);
            CREATE TABLE IF NOT EXISTS outbox
                (n INTEGER PRIMARY KEY AUTOINCREMENT, tag TEXT, kind TEXT, entry TEXT);
            CREATE TABLE IF NOT EXISTS attempts (id INTEGER PRIMARY KEY,
                task TEXT, attempt INTEGER, state TEXT, record TEXT, UNIQUE (task, attempt));"""
        )

    def fact(self, name: str, otherwise: Any) -> Any:
        row = self.db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else otherwise

    def set_fact(self, name: str, value: Any) -> None:
        self.db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))

    def state(self, key: tuple[str, int]) -> Optional[str]:
        """Returns live, ended (not acknowledged), gone (acknowledged), invalid (it never ran), or None."""
        row = self.db.execute("SELECT state FROM attempts WHERE task = ? AND attempt = ?", key).fetchone()
        return str(row[0]) if row else None

    def set_state(self, key: tuple[str, int], state: str, record: Optional[Attempt] = None) -> None:
        sql = """INSERT INTO attempts (task, attempt, state, record) VALUES (?, ?, ?, ?)
            ON CONFLICT (task, attempt) DO UPDATE
            SET state = excluded.state, record = ifnull(excluded.record, record)"""
        self.db.execute(sql, (*key, state, json.dumps(dataclasses.asdict(record)) if record else None))

    def highest_attempt(self, task_id: str) -> int:
        sql = "SELECT ifnull(max(attempt), 0) FROM attempts WHERE task = ?"
        return int(self.db.execute(sql, (task_id,)).fetchone()[0])

    def unacked(self) -> list[Json]:
        rows = self.db.execute("SELECT task, attempt FROM attempts WHERE state = 'ended' ORDER BY id")
        return [{"task_id": task, "attempt": attempt} for task, attempt in rows]

    def live(self) -> list[Attempt]:
        rows = self.db.execute("SELECT record FROM attempts WHERE state = 'live' ORDER BY id")
        return [Attempt(**json.loads(row[0])) for row in rows]

    def folder(self, key: tuple[str, int]) -> Optional[Path]:
        row = self.db.execute("SELECT record FROM attempts WHERE task = ? AND attempt = ?", key).fetchone()
        return Path(json.loads(row[0])["folder"]) if row and row[0] else None

    def add_event(self, attempt: Attempt, kind: str, **details: Any) -> None:
        """Appends to the outbox. Starts and ends are all kept; of any other kind, the last (R11)."""
        if kind not in ("started", "finished"):
            self.db.execute("DELETE FROM outbox WHERE tag = ? AND kind = ?", (attempt.tag, kind))
        entry = json.dumps({"kind": kind, "task_id": attempt.key[0], "attempt": attempt.key[1], **details})
        self.db.execute("INSERT INTO outbox (tag, kind, entry) VALUES (?, ?, ?)", (attempt.tag, kind, entry))

    def events(self) -> list[Json]:
        rows = self.db.execute("SELECT n, entry FROM outbox ORDER BY n LIMIT ?", (MAX_EVENTS,))
        return [{**json.loads(entry), "n": n} for n, entry in rows]

    def forget(self) -> None:
        """Drops the oldest output and the oldest attempts of those that are over."""
        sql = "SELECT id, record FROM attempts WHERE state = 'gone' AND record IS NOT NULL ORDER BY id DESC"
        for row in self.db.execute(f"{sql} LIMIT -1 OFFSET {KEPT_OUTPUTS}").fetchall():
            shutil.rmtree(json.loads(row[1])["folder"], ignore_errors=True)
            self.db.execute("UPDATE attempts SET record = NULL WHERE id = ?", (row[0],))
        oldest = f"(SELECT max(id) FROM attempts) - {KEPT_ATTEMPTS}"
        self.db.execute(f"DELETE FROM attempts WHERE state IN ('gone', 'invalid') AND id < {oldest}")

    def commit(self) -> None:
        """Makes everything durable, or ends the process: after a failed write nothing is said (R10)."""
        try:
            self.db.commit()
        except sqlite3.Error as error:
            print(f"The journal cannot be written: {error}", file=sys.stderr, flush=True)
            os._exit(1)
