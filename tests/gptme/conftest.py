"""gptme in a home of its own, with the plug-in in place, and a conversation of each test's own."""

from __future__ import annotations

import importlib
import os
import queue
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    Until = Callable[[Callable[[], object]], None]

SECRET: Final = "q7Zr-secret-of-the-test-91"
PATIENCE: Final = 30.0
"""Seconds after which a test gives up."""


@pytest.fixture(scope="session")
def background(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Return gptme's `tools.shell_background`, with the plug-in installed."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(home))
        patch.setenv("GPTME_LOGS_HOME", str(home / "logs"))
        patch.setenv("GPTME_SHELL_MEMORY_GUARD", "0")
        patch.setenv("MY_API_TOKEN", SECRET)
        from adapters.gptme import install  # noqa: PLC0415 - gptme reads the environment when it is imported

        install()
        yield importlib.import_module("gptme.tools.shell_background")


@pytest.fixture
def conversation(background: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the log directory of the active conversation; its jobs are ended after the test."""
    confirm = importlib.import_module("gptme.hooks.server_confirm")
    logs = tmp_path / "logs"
    directory = logs / "talk"
    directory.mkdir(parents=True)
    monkeypatch.setenv("GPTME_LOGS_HOME", str(logs))
    token = confirm.current_conversation_id.set("talk")
    yield directory
    background.reset_background_jobs()
    confirm.current_conversation_id.reset(token)


@pytest.fixture
def until() -> Until:
    """Return a function that returns when a condition holds; it fails after `PATIENCE` seconds."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        never: queue.Queue[None] = queue.Queue()
        while not condition():
            assert time.monotonic() < deadline, "it did not come true"
            try:
                never.get(timeout=0.01)
            except queue.Empty:
                continue

    return wait


@pytest.fixture
def deliver(background: ModuleType, until: Until) -> Callable[[], list[Any]]:
    """Return a function that waits for a completion and returns what the hook delivers then."""

    def delivered() -> list[Any]:
        until(lambda: background._completion_queue.queue)
        return list(background.background_job_completion_hook(object()))

    return delivered


@pytest.fixture
def no_secret() -> Callable[[Path], None]:
    """Return a function that checks that no file under a directory holds the secret, and that all are private."""

    def check(directory: Path) -> None:
        files = [path for path in directory.rglob("*") if path.is_file()]
        assert files
        for path in files:
            assert SECRET.encode() not in path.read_bytes(), path
        for path in (directory / "tool-outputs").rglob("*"):
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
            assert path.stat().st_uid == os.getuid()

    return check
