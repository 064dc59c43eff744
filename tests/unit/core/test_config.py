"""Settings: the call wins over the environment, the environment over the file, the file over the
defaults.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from smara.config import Settings, config_path, default_store, load_settings
from smara.errors import ConfigError


@pytest.fixture
def written(tmp_path):
    """Writes a smara.toml; the environment that names it."""

    def write(text, **environment):
        path = tmp_path / "smara.toml"
        path.write_text(text, encoding="utf-8")
        return {"SMARA_CONFIG": str(path), **environment}

    return write


def nowhere(tmp_path, **environment):
    return {"XDG_CONFIG_HOME": str(tmp_path), **environment}


def test_without_anything_the_defaults_are_in_force(tmp_path):
    assert load_settings(nowhere(tmp_path)) == Settings()


def test_the_call_wins_over_the_environment_and_the_environment_over_the_file(written):
    environment = written(
        'resource = "file"\ntoken_model = "file"\ndurability = "normal"',
        SMARA_RESOURCE="env",
        SMARA_TOKEN_MODEL="env",
    )
    found = load_settings(environment, resource="call")
    assert (found.resource, found.token_model, found.durability) == ("call", "env", "normal")


def test_none_and_empty_mean_not_given(tmp_path):
    assert load_settings(nowhere(tmp_path, SMARA_RESOURCE=""), durability=None) == Settings()


def test_numbers_in_the_environment_are_numbers(tmp_path):
    found = load_settings(
        nowhere(tmp_path, SMARA_COMPACT_EVERY_MESSAGES="0", SMARA_BUSY_TIMEOUT_SECONDS="2")
    )
    assert (found.compact_every_messages, found.busy_timeout_seconds) == (0, 2.0)


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("1", True), ("true", True), ("Yes", True), ("0", False), ("FALSE", False), (" off ", False)],
)
def test_words_for_true_and_false_are_understood(tmp_path, word, meaning):
    assert load_settings(nowhere(tmp_path, SMARA_MODELS_ENABLED=word)).models_enabled is meaning


def test_true_and_false_may_be_written_in_the_file_and_given_in_the_call(written):
    environment = written("models_enabled = false")
    assert load_settings(environment).models_enabled is False
    assert load_settings(environment, models_enabled=True).models_enabled is True


@pytest.mark.parametrize(
    "given", [{"models_enabled": 1}, {"models_enabled": "yes"}, {"compact_every_messages": True}]
)
def test_a_truth_is_no_number_and_no_word(tmp_path, given):
    with pytest.raises(ConfigError, match=next(iter(given))):
        load_settings(nowhere(tmp_path), **given)


def test_a_word_that_is_neither_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"SMARA_MODELS_ENABLED.*true or false"):
        load_settings(nowhere(tmp_path, SMARA_MODELS_ENABLED="maybe"))


def test_a_key_is_not_shown_with_the_settings(tmp_path):
    assert "walrus" not in repr(load_settings(nowhere(tmp_path), model_api_key="walrus"))


def test_a_path_may_be_given_as_a_path(tmp_path):
    assert load_settings(nowhere(tmp_path), db=tmp_path / "s.db").db == str(tmp_path / "s.db")


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"SMARA_DURABILITY": "maybe"}, "full, normal"),
        ({"SMARA_COMPACT_EVERY_MESSAGES": "often"}, "SMARA_COMPACT_EVERY_MESSAGES"),
        ({"SMARA_BUSY_TIMEOUT_SECONDS": "-1"}, "negative"),
        ({"SMARA_CONFIG": "/nowhere/smara.toml"}, "does not exist"),
        ({"SMARA_BUSY_TIMEOUT_SECONDS": "nan"}, "SMARA_BUSY_TIMEOUT_SECONDS"),
        ({"SMARA_PUBLIC_URL": "smara.example.com"}, "SMARA_PUBLIC_URL"),
        *(
            ({"SMARA_PUBLIC_URL": f"https://{rest}"}, "scheme and host alone")
            for rest in (
                "smara.example.com/memory", "", "/", ":8080", "a\tb", "a\nb", "a.example\n", "a\0b",
                "a:b", "a:80:90", "me@a", "[::1", "[]:80", "bücher.example",
            )
        ),
    ],
)  # fmt: skip
def test_a_wrong_value_in_the_environment_is_refused_with_its_name(tmp_path, environment, told):
    with pytest.raises(ConfigError, match=told):
        load_settings({**nowhere(tmp_path), **environment})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("shade = 'red'", "shade"), ("resource = 7", "resource"),
        ("compact_every_messages = true", "compact_every_messages"),
        ("not toml at all", "smara.toml"), ("compact_every_messages = 1.5", "int"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_what_is_wrong(written, text, told):
    with pytest.raises(ConfigError, match=told):
        load_settings(written(text))


def test_an_unknown_setting_in_a_call_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="shade"):
        load_settings(nowhere(tmp_path), shade="red")


def test_a_whole_number_serves_as_a_number_of_seconds(written):
    assert load_settings(written("busy_timeout_seconds = 3")).busy_timeout_seconds == 3.0


def test_settings_are_frozen():
    with pytest.raises(AttributeError):
        Settings().db = "elsewhere"  # type: ignore[misc]


def test_the_store_lies_in_the_data_folder_of_the_user(tmp_path):
    assert default_store({"SMARA_HOME": str(tmp_path)}) == tmp_path / "smara.db"
    assert default_store({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "smara" / "smara.db"


def test_the_file_of_settings_lies_in_the_config_folder_of_the_user(tmp_path):
    assert config_path({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "smara" / "smara.toml"
    assert config_path({"SMARA_CONFIG": "x.toml"}) == Path("x.toml")
