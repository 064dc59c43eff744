"""The files of ``deploy/``: they can be read, and all that they say of Smara is so."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
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
from smara.environment import fleet_sign
from smara.fleet.queue import parse_limits
from smara.surfaces.cli import app
from smara.surfaces.http.server import _CLOSING_SECONDS

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
CONTAINERFILE = (DEPLOY / "image" / "Containerfile").read_text(encoding="utf-8")
OWN = [name for name, each in COMPOSE["services"].items() if "smara:" in each["image"]]
KEYS = {
    "smara-api": {"SMARA_DB", "SMARA_REPLICA_URL", "SMARA_HTTP_KEY"},
    "smara-mcp": {"SMARA_DB", "SMARA_REPLICA_URL", "SMARA_MCP_TOKEN"},
    "smara-worker": {"SMARA_DB", "SMARA_FLEET_URL"},
    "pgbouncer": {"DB_HOST", "DB_PORT", "DB_USER", "DB_PASSWORD", "DB_NAME"},
}
"""What each pod has to know of the secret, beside the keys of vendors."""
VENDORS = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}


def manifests() -> list[dict[str, Any]]:
    """Every object of the Kustomize files that is one of Kubernetes."""
    found = [
        each
        for path in sorted((DEPLOY / "kustomize").rglob("*.yaml"))
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]
    patches = ("every",)
    return [
        each
        for each in found
        if each["kind"] != "Kustomization" and each["metadata"]["name"] not in patches
    ]


def built(overlay: str, folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The objects that an overlay makes, by kind and name, with the secrets of the example."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    copied = shutil.copytree(DEPLOY / "kustomize", folder / "kustomize")
    shutil.copy(copied / "small" / "secrets.env.example", copied / "small" / "secrets.env")
    command = [program, "kustomize", str(copied / overlay)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = list(yaml.safe_load_all(done.stdout))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def secrets_of(container: dict[str, Any]) -> set[str]:
    """The keys of a secret that a container is given."""
    assert not [each for each in container.get("envFrom", ()) if "secretRef" in each]
    given = [each.get("valueFrom", {}).get("secretKeyRef") for each in container["env"]]
    return {each["key"] for each in given if each}


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
        for made in page.get("configMapGenerator", ()):
            yield f"kustomize {path.parent.name}", dict(e.split("=", 1) for e in made["literals"])
    for path in (
        DEPLOY / "systemd" / "smara.env",
        DEPLOY / "compose" / ".env.example",
        DEPLOY / "kustomize" / "small" / "secrets.env.example",
    ):
        pairs = re.findall(r'^(\w+)="?([^"\n]*)"?$', path.read_text(), re.MULTILINE)
        yield path.name, dict(pairs)
    yield "image", dict(re.findall(r"(SMARA_\w+)=(\S+)", CONTAINERFILE))


@pytest.mark.parametrize(("place", "words"), list(calls()), ids=lambda each: str(each)[:40])
def test_command_is_one_that_smara_understands(place: str, words: list[str]) -> None:
    above = app.cli.make_context("smara", list(words), resilient_parsing=False)
    name, command, rest = app.cli.resolve_command(above, [*above._protected_args, *above.args])
    assert name in ("serve", "mcp", "worker", "status")
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
    assert all(f"server {name}:8765 resolve" in proxy for name in ("api-1", "api-2"))
    assert "resolver 127.0.0.11" in proxy


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
    (extras,) = re.findall(r"\.whl\[([a-z,]+)\]", CONTAINERFILE)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert {"postgres", "fleet", "http", "telemetry"} <= set(extras.split(","))
    base = yaml.safe_load((DEPLOY / "kustomize" / "base" / "kustomization.yaml").read_text())
    images = {COMPOSE["services"][name]["image"] for name in OWN}
    assert images == {f"${{SMARA_IMAGE:-smara:{smara.__version__}}}"}
    assert base["images"][0]["newTag"] == smara.__version__
    assert f"smara:{smara.__version__}" in CONTAINERFILE
    assert f"\nARG VERSION={smara.__version__}\n" in CONTAINERFILE
    # dist/ may hold other releases; pip refuses two wheels of one package.
    wheel, *others = re.findall(r"^COPY (?!--)(\S+)", CONTAINERFILE, re.MULTILINE)
    assert wheel == "dist/smara-${VERSION}-py3-none-any.whl"
    assert all((ROOT / each).exists() for each in others)
    assert "make wheel" in (DEPLOY / "compose" / "compose.yaml").read_text()


def test_secrets_are_in_files_that_git_ignores() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not in a repository")
    for path in ("deploy/compose/.env", "deploy/kustomize/small/secrets.env", ".env"):
        assert subprocess.run([git, "check-ignore", "-q", path], cwd=ROOT).returncode == 0, path
        example = f"{path}.example"
        assert subprocess.run([git, "check-ignore", "-q", example], cwd=ROOT).returncode == 1
    for path in (DEPLOY / "kustomize").rglob("kustomization.yaml"):
        page = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert not [each for each in page.get("secretGenerator", ()) if "literals" in each]


def test_every_service_of_compose_is_examined() -> None:
    for name, each in COMPOSE["services"].items():
        assert "healthcheck" in each or name == "migrate", name
    first = COMPOSE["services"]["migrate"]
    assert first["restart"] == "no"
    for name in set(OWN) - {"migrate"}:
        needed = COMPOSE["services"][name]["depends_on"]["migrate"]
        assert needed == {"condition": "service_completed_successfully"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="images are of Linux")
def test_probe_of_workers_looks_where_they_show_that_they_are_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (home,) = re.findall(r"--home-dir (\S+)", CONTAINERFILE)
    monkeypatch.setenv("HOME", home)
    for name in ("SMARA_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    look = f'test -n "$(find {fleet_sign()} -mmin -2)"'
    container = pods()["smara-worker"]["containers"][0]
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["exec"]["command"] == ["sh", "-c", look]
    _, text = COMPOSE["services"]["worker"]["healthcheck"]["test"]
    assert text.replace("$$", "$") == look


def test_pooler_is_recent_and_no_stranger_can_hang_it() -> None:
    """CVE-2026-6664 to 6667 need 1.25.2; CVE-2026-107349 needs 1.26.1, or `options` in the list."""
    base = yaml.safe_load((DEPLOY / "kustomize" / "base" / "kustomization.yaml").read_text())
    compose = COMPOSE["services"]["pgbouncer"]
    (pod,) = (
        each["spec"]["template"]["spec"]["containers"][0]
        for each in manifests()
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "pgbouncer"
    )
    given = {each["name"]: each.get("value") for each in pod["env"]}
    tags = {base["images"][1]["newTag"], re.findall(r":(v[\w.-]+)}$", compose["image"])[0]}
    (tag,) = tags
    assert tuple(map(int, re.findall(r"\d+", tag)))[:3] >= (1, 25, 2)
    for each in (given, compose["environment"]):
        assert "options" in each["IGNORE_STARTUP_PARAMETERS"].split(",")
        assert each["POOL_MODE"] == "transaction"


@pytest.mark.parametrize("overlay", ["base", "small", "large"])
def test_kustomize_builds_what_it_names(overlay: str, tmp_path: Path) -> None:
    found = built(overlay, tmp_path)
    assert {("Deployment", "smara-api"), ("Deployment", "smara-worker")} <= found.keys()
    assert (("StatefulSet", "postgres") in found) == (overlay == "small")
    for name, keys in KEYS.items():
        pod = found["Deployment", name]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert secrets_of(container) - VENDORS == keys
        assert "livenessProbe" in container
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert pod["securityContext"]["runAsNonRoot"] is True
        if name != "pgbouncer":  # a store that is moved takes longer than a probe waits
            (first,) = pod["initContainers"]
            assert (first["image"], secrets_of(first)) == (container["image"], {"SMARA_DB"})
            words = list(first["args"])
            above = app.cli.make_context("smara", words)
            assert app.cli.resolve_command(above, [*above._protected_args])[0] == "status"


def test_secrets_of_the_example_are_all_that_its_pods_need(tmp_path: Path) -> None:
    found = built("small", tmp_path)
    (secret,) = (each for (kind, _), each in found.items() if kind == "Secret")
    every = set().union(*KEYS.values())
    assert every - {"DB_PORT", "SMARA_REPLICA_URL"} == secret["data"].keys()


def test_large_is_what_the_guide_says_and_leaves_the_count_to_the_autoscaler(
    tmp_path: Path,
) -> None:
    found = built("large", tmp_path)
    page = (ROOT / "docs" / "guide" / "servers.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| large \|.*$", page, re.MULTILINE)
    assert "4 to 16 × 1 core, 512 MB" in row
    assert "8 processes on 8 cores" in row
    scaler = found["HorizontalPodAutoscaler", "smara-api"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (4, 16)
    api, worker = (found["Deployment", f"smara-{each}"]["spec"] for each in ("api", "worker"))
    assert "replicas" not in api
    asked = api["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert asked == {"cpu": "1", "memory": "512Mi"}
    assert worker["replicas"] == 8
    assert worker["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"


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
