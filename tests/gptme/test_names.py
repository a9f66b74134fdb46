"""The check before anything of gptme is replaced: all names or none, and one line that says why not."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("gptme", reason="gptme is not installed")

from adapters.gptme import UnsupportedGptme, install, names, plugin

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def test_the_supported_version_passes(background: ModuleType) -> None:
    """The names are those of the installed gptme, before and after they were replaced."""
    assert background
    names.check()


def test_installing_again_changes_nothing(background: ModuleType) -> None:
    """A plug-in's `init` may be called more than once."""
    before = background.start_background_job
    assert install() is False
    assert background.start_background_job is before


@pytest.mark.parametrize("module", [names.BACKGROUND, names.SHELL])
def test_both_holders_of_a_name_have_ours(background: ModuleType, module: str) -> None:
    """The shell tool has the names by value, so each is replaced in both modules."""
    assert background
    holder = importlib.import_module(module)
    for name in ("start_background_job", "execute_output_command", "background_job_completion_hook"):
        assert getattr(holder, name).__module__.startswith("adapters.gptme")


def refused(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the line with which a first installation is refused."""
    monkeypatch.setattr(plugin, "_installed", False)
    seen = importlib.import_module(names.BACKGROUND).start_background_job
    with pytest.raises(UnsupportedGptme) as caught:
        install()
    assert importlib.import_module(names.BACKGROUND).start_background_job is seen
    assert plugin._installed is False
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_another_version_is_refused(background: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what another version's names mean."""
    assert background
    monkeypatch.setattr(names, "version", lambda _: "0.36.0")
    assert "gptme 0.36.0" in refused(monkeypatch)


def other(command: str) -> None:
    """Stand for a function with other parameters."""


@pytest.mark.parametrize(
    ("module", "name", "value", "told"),
    [
        (names.BACKGROUND, "start_background_job", other, "shell_background.start_background_job"),
        (names.BACKGROUND, "_completion_message", None, "shell_background._completion_message"),
        (names.SHELL, "execute_output_command", other, "shell.execute_output_command"),
        ("gptme.tools.read", "save_large_output", other, "read.save_large_output"),
        (names.BACKGROUND, "_job_lock", ..., "shell_background._job_lock"),
    ],
)
def test_a_name_that_is_not_as_expected_is_told(
    background: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    value: Callable[..., Any],
    told: str,
) -> None:
    """Another signature, a name that is gone, and a module that holds something else under it."""
    assert background
    owner = importlib.import_module(module)
    if value is ...:
        monkeypatch.delattr(owner, name)
    else:
        monkeypatch.setattr(owner, name, value)
    with pytest.raises(UnsupportedGptme) as caught:
        names.check()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_hook_that_moved_is_told(background: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delivery relies on when gptme calls the hook."""
    assert background
    hooks = importlib.import_module(names.SHELL).tool.hooks
    monkeypatch.setitem(hooks, names.HOOK, ("turn.post", hooks[names.HOOK][1], 900))
    assert "the hook shell.background_completion" in refused(monkeypatch)


def test_gptme_finds_the_plug_in_and_logs_a_refusal_in_one_line(
    background: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the entry point alone; a refusal stops neither gptme nor its own hooks."""
    assert background
    registry = importlib.import_module("gptme.plugins.registry")
    hooks = importlib.import_module("gptme.hooks.registry")
    monkeypatch.setattr(plugin, "_installed", False)
    monkeypatch.setattr(names, "version", lambda _: "0.36.0")
    registry.clear_registry()
    with caplog.at_level(logging.WARNING):
        found = registry.discover_all_plugins(enabled_plugins=["spoolvisor"])
    assert [entry.name for entry in found] == ["spoolvisor"]
    lines = [record.getMessage() for record in caplog.records if "spoolvisor" in record.getMessage()]
    assert len(lines) == 1
    assert "gptme 0.36.0" in lines[0]
    found[0].register_hooks()
    assert not [hook for hook in hooks.get_hooks() if hook.name == "shell.background_completion"]
    registry.clear_registry()


def test_the_hook_has_gptmes_name_and_is_ours(background: ModuleType) -> None:
    """Registered after gptme's own, or instead of it, it is the only one under its name."""
    registry = importlib.import_module("gptme.hooks.registry")
    tool = importlib.import_module(names.SHELL).tool
    tool.register_hooks()
    plugin.register_hooks()
    tool.register_hooks()
    ours = [hook for hook in registry.get_hooks() if hook.name == "shell.background_completion"]
    assert [(hook.func, hook.priority) for hook in ours] == [(background.background_job_completion_hook, 900)]
    registry.clear_hooks()


def test_credentials_of_gptmes_settings_are_taken(background: ModuleType) -> None:
    """They need not be in the environment, and a command may print the file that holds them."""
    assert background
    config = importlib.import_module("gptme.config").get_config()
    config.user.env.update({"OPENAI_API_KEY": "abcdefgh-12345", "MODEL": "local/something", "SHORT_KEY": "abc"})
    try:
        assert plugin.configured_secrets(config) == {"OPENAI_API_KEY": "abcdefgh-12345"}
    finally:
        for name in ("OPENAI_API_KEY", "MODEL", "SHORT_KEY"):
            del config.user.env[name]
