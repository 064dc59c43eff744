"""What every test may use: a run of its own for PostgreSQL, and an environment without settings."""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from smara.testing import FakeClock
from tests import models_server, postgres, stores
from tests.faults.sizes import IS_LARGE

# Eighteen thousand tests are held until the end: looking through them for garbage, again and
# again, took a third of the time of collecting them and a sixth of running them.
gc.disable()

# A run in the background of a shell ignores interrupts, and so would every process that it starts:
# a test that interrupts one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, and nothing else. Small runs try the same
# examples each time: they must not fail for something that the change at hand has nothing to do
# with. The large ones look for that.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=not IS_LARGE,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")

# Processes are forked from one that has loaded everything; here, because the first to start one
# settles it for all.
multiprocessing.get_context("forkserver").set_forkserver_preload(
    ["smara.testing", "tests.faults.workers"]
)

# The machine of a test may stand still for seconds: what would be given up by then is given time.
HURRIED = ("SMARA_PATIENCE", "SMARA_SEARCH_DEADLINE_SECONDS", "SMARA_EMBED_QUERY_SECONDS")

ENOUGH_MEMORY = 4 * 2**30
_ended_with_the_run: list[postgres.TestRun] = []


def pytest_configure(config: pytest.Config) -> None:
    _put_files_into_memory(config)
    # Hundreds of processes are started; each would compile the whole package again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if postgres.RUN_FOLDER not in os.environ and postgres.missing() is None:
        _ended_with_the_run.append(postgres.TestRun())


def _put_files_into_memory(config: pytest.Config) -> None:
    """Thousands of stores are made and removed, which a disk takes minutes for; where there is a
    folder in memory with room enough, and none was named, they are made there.
    """
    memory = Path(postgres.IN_MEMORY)
    if "TMPDIR" in os.environ or config.option.basetemp or not memory.is_dir():
        return
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= ENOUGH_MEMORY:
        os.environ["TMPDIR"] = tempfile.tempdir = str(memory)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_unconfigure() -> None:
    while _ended_with_the_run:
        _ended_with_the_run.pop().end()


@pytest.fixture(autouse=True)
def _no_settings_from_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A developer's own store and settings are neither read nor written by a test."""
    for name in os.environ:
        if name.startswith("SMARA_") and name not in (
            postgres.RUN_FOLDER,
            "SMARA_FAULTS",
            "SMARA_EVAL_DATA",
        ):
            monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SMARA_HOME", str(home / "smara"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    # What is around the folder of a test is no matter, unless a test is about it (`by_folder`).
    monkeypatch.setenv("SMARA_PROJECT", "default")
    monkeypatch.setenv("SMARA_EMBED_IN_BACKGROUND", "false")  # a test that wants it says so
    # Nothing here waits for the disk: what is to survive a power cut is tested on a disk that is
    # told to fail.
    monkeypatch.setenv("SMARA_DURABILITY", "normal")
    for name in HURRIED:
        monkeypatch.setenv(name, "100")


@pytest.fixture(autouse=True)
def _outside_of_the_repository(request: pytest.FixtureRequest) -> None:
    """What reads the repository that it is called in, as commits and decisions do, must not find
    Smara's own: it has thousands of files, and changes every day.
    """
    if not {"contract", "faults", "hosts", "stories", "surfaces"}.isdisjoint(request.path.parts):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))


@pytest.fixture
def clock() -> FakeClock:
    """A clock that moves only when told to."""
    return FakeClock()


@pytest.fixture
def by_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The project is found from the current folder, as for a user who sets nothing."""
    monkeypatch.delenv("SMARA_PROJECT")


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines are those of a user; for tests on a clock that moves only when told to, and of what
    waits in vain.
    """
    for name in HURRIED:
        monkeypatch.delenv(name)


@pytest.fixture
def vendor_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys for the vendors' packages, no proxy on the way, and everything loaded that a call
    needs.
    """
    for name in [name for name in os.environ if name.lower().endswith(("_proxy", "_base_url"))]:
        monkeypatch.delenv(name)
    for name, value in models_server.KEYS.items():
        monkeypatch.setenv(name, value)
    models_server.warm_up()


@pytest.fixture(params=stores.BOTH)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a store is that is up to date and empty, of each database."""
    with stores.empty_store(request.param, tmp_path) as address:
        yield address


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The URL of an empty schema in the run's PostgreSQL."""
    reason = postgres.missing()
    if reason:
        pytest.skip(reason)
    with postgres.fresh_schema() as url:
        yield url
