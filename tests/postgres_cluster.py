"""A PostgreSQL of a test's own, to be restarted, with a streaming replica if it is asked for."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests import postgres

Server = subprocess.Popen[bytes]


class Cluster:
    """A primary and perhaps a replica; a context manager."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="smara-cluster-", dir="/tmp"))
        self._folder.chmod(0o755)
        self._servers: dict[str, Server] = {}

    def __enter__(self) -> Cluster:
        self._home("primary")
        self._servers["primary"] = postgres._serve(self._folder / "primary")
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self._servers)):
            self.stop(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, name: str = "primary") -> str:
        folder = quote(str(self._folder / name), safe="")
        return f"postgresql://smara@/postgres?host={folder}"

    def stop(self, name: str = "primary") -> None:
        server = self._servers.pop(name, None)
        if server is not None:
            postgres._stop(server)

    def start(self, name: str = "primary") -> None:
        folder = self._folder / name
        self._servers[name] = postgres.start_server(self._programs(), folder / "data", folder)

    def add_replica(self) -> None:
        """Copy the primary, and follow it, unless one does."""
        if "replica" in self._servers:
            return
        if (self._folder / "replica").exists():
            self.start("replica")
            return
        folder, user = self._home("replica"), postgres._account()
        source = f"host={self._folder / 'primary'} user=smara"
        command: list[Any] = [self._programs() / "pg_basebackup", "-D", folder / "data", "-R"]
        command += ["-X", "stream", "-c", "fast", "-d", source]
        subprocess.run(command, check=True, cwd="/", **user)
        self.start("replica")

    def _home(self, name: str) -> Path:
        folder, user = self._folder / name, postgres._account()
        folder.mkdir()
        if user:
            folder.chmod(0o755)
            shutil.chown(folder, user["user"], user["group"])
        return folder

    def _programs(self) -> Path:
        return postgres._programs(self._folder / "primary", postgres._account())
