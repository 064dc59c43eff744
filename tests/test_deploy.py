"""The files of ``deploy/``: they can be read, and all that they say of Smara is so."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import smara
from smara.config import Settings, load_settings
from smara.fleet.queue import parse_limits
from smara.surfaces.cli import app
from smara.surfaces.http.server import _CLOSING_SECONDS

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
CONTAINERFILE = (DEPLOY / "image" / "Containerfile").read_text(encoding="utf-8")
OWN = [name for name, each in COMPOSE["services"].items() if each["image"].startswith("smara")]


def manifests() -> list[dict[str, Any]]:
    """Every object of the Kustomize files that is one of Kubernetes."""
    found = [
        each
        for path in sorted((DEPLOY / "kustomize").rglob("*.yaml"))
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]
    return [each for each in found if each["kind"] != "Kustomization"]


def pods() -> dict[str, dict[str, Any]]:
    """The pods of our own image, by name."""
    found = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in manifests()
        if each["kind"] == "Deployment"
    }
    return {name: pod for name, pod in found.items() if pod["containers"][0]["image"] == "smara"}


def calls() -> Iterator[tuple[str, list[str]]]:
    """Every call of the command line, and where it stands."""
    for name in OWN:
        yield f"compose {name}", COMPOSE["services"][name]["command"]
    for name, pod in pods().items():
        yield f"kustomize {name}", pod["containers"][0]["args"]
    for path in UNITS:
        (line,) = re.findall(r"^ExecStart=\S+/smara (.*)$", path.read_text(), re.MULTILINE)
        yield f"systemd {path.stem}", shlex.split(line.replace("%i", "8765"))
    (words,) = re.findall(r"^CMD \[(.*)\]$", CONTAINERFILE, re.MULTILINE)
    yield "image", [word.strip(' "') for word in words.split(",")]


def environments() -> Iterator[tuple[str, dict[str, str]]]:
    """Every environment of a process, and where it stands."""
    for name in OWN:
        given = COMPOSE["services"][name]["environment"]
        yield f"compose {name}", {key: re.sub(r"\$\{[^}]*\}", "", v) for key, v in given.items()}
    for path in sorted((DEPLOY / "kustomize").rglob("kustomization.yaml")):
        page = yaml.safe_load(path.read_text(encoding="utf-8"))
        for made in [*page.get("configMapGenerator", ()), *page.get("secretGenerator", ())]:
            yield f"kustomize {path.parent.name}", dict(e.split("=", 1) for e in made["literals"])
    for path in (DEPLOY / "systemd" / "smara.env", DEPLOY / "compose" / ".env.example"):
        pairs = re.findall(r'^(\w+)="?([^"\n]*)"?$', path.read_text(), re.MULTILINE)
        yield path.name, dict(pairs)
    yield "image", dict(re.findall(r"(SMARA_\w+)=(\S+)", CONTAINERFILE))


@pytest.mark.parametrize(("place", "words"), list(calls()), ids=lambda each: str(each)[:40])
def test_command_is_one_that_smara_understands(place: str, words: list[str]) -> None:
    above = app.cli.make_context("smara", list(words), resilient_parsing=False)
    name, command, rest = app.cli.resolve_command(above, [*above._protected_args, *above.args])
    assert name in ("serve", "mcp", "worker")
    assert isinstance(command, click.Command)
    command.make_context(name, rest, parent=above)
    assert "--verbose" in words, "the log lines of a container are all that is seen of it"


@pytest.mark.parametrize(("place", "given"), list(environments()), ids=lambda each: str(each)[:40])
def test_setting_exists_and_takes_its_value(place: str, given: dict[str, str]) -> None:
    own = {name: value for name, value in given.items() if name.startswith("SMARA_")}
    names = {f"SMARA_{each.name.upper()}" for each in fields(Settings)}
    assert own.keys() <= names
    settings = load_settings({**own, "HOME": "/nowhere"})
    assert parse_limits(settings.fleet_limits)
    assert "change-me" in given.get("DB_PASSWORD", "change-me"), "no password is shipped"


def test_workers_reach_postgresql_itself_and_servers_the_pooler() -> None:
    for place, given in environments():
        if "SMARA_FLEET_URL" in given:
            assert ":5432/" in given["SMARA_FLEET_URL"], place
        if "SMARA_DB" in given:
            assert ":6432/" in given["SMARA_DB"], place
    assert "SMARA_FLEET_URL" in COMPOSE["services"]["worker"]["environment"]


def test_there_are_two_servers_a_pooler_workers_and_pgvector() -> None:
    services = COMPOSE["services"]
    assert {"api-1", "api-2", "worker", "mcp", "pgbouncer", "postgres"} <= set(services)
    assert services["pgbouncer"]["environment"]["POOL_MODE"] == "transaction"
    assert "pgvector" in services["postgres"]["image"]
    proxy = (DEPLOY / "compose" / "nginx.conf").read_text()
    assert all(f"server {name}:8765" in proxy for name in ("api-1", "api-2"))


def seconds(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def test_what_is_stopped_gets_the_time_that_it_takes() -> None:
    drains = {place: int(given.get("SMARA_DRAIN_SECONDS", 0)) for place, given in environments()}
    for name in ("api-1", "api-2", "mcp"):
        grace = seconds(COMPOSE["services"][name]["stop_grace_period"])
        assert grace > drains[f"compose {name}"] + _CLOSING_SECONDS
    model = Settings().model_deadline_seconds
    assert seconds(COMPOSE["services"]["worker"]["stop_grace_period"]) > model
    for name, pod in pods().items():
        grace = pod["terminationGracePeriodSeconds"]
        assert grace > (model if "worker" in name else drains["kustomize base"] + _CLOSING_SECONDS)
    for path in UNITS:
        (grace,) = re.findall(r"^TimeoutStopSec=(\d+)$", path.read_text(), re.MULTILINE)
        least = model if "worker" in path.name else drains["smara.env"] + _CLOSING_SECONDS
        assert int(grace) > least


def test_probes_ask_for_paths_that_a_server_answers() -> None:
    for name, pod in pods().items():
        container = pod["containers"][0]
        if "worker" in name:
            continue
        assert container["livenessProbe"]["httpGet"]["path"] == "/live"
        assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
        (port,) = container["ports"]
        assert f"0.0.0.0:{port['containerPort']}" in container["args"]
    assert "/ready'" in COMPOSE["services"]["api-1"]["healthcheck"]["test"][3]


def test_image_is_of_this_release_with_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"\$wheel\[([a-z,]+)\]", CONTAINERFILE)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert {"postgres", "fleet", "http", "telemetry"} <= set(extras.split(","))
    base = yaml.safe_load((DEPLOY / "kustomize" / "base" / "kustomization.yaml").read_text())
    tags = {base["images"][0]["newTag"], *(COMPOSE["services"][n]["image"][6:] for n in OWN)}
    assert tags == {smara.__version__}
    assert f"smara:{smara.__version__}" in CONTAINERFILE
    for line in re.findall(r"^COPY (?!--)(\S+)", CONTAINERFILE, re.MULTILINE):
        assert line == "dist/*.whl" or (ROOT / line).exists()


@pytest.mark.parametrize("overlay", ["base", "small", "large"])
def test_kustomize_builds_what_it_names(overlay: str) -> None:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    folder = DEPLOY / "kustomize" / overlay
    done = subprocess.run([program, "kustomize", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    built = {(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(done.stdout)}
    assert {("Deployment", "smara-api"), ("Deployment", "smara-worker")} <= built
    assert (("StatefulSet", "postgres") in built) == (overlay == "small")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_unit_is_one_that_systemd_takes(path: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / path.name
    unit.write_text(path.read_text().replace("/opt/smara/bin/smara", "/bin/true"))
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if path.stem in line]
    assert (done.returncode, complaints) == (0, [])
