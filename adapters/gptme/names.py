"""What of gptme is used and replaced, checked as a whole before anything is touched.

gptme promises nobody these names. So each one that the plug-in replaces must have the signature that it had in the
version that this was written for, and each one that it calls must be there; else nothing is replaced at all, and gptme
works as it does without the plug-in. Modules are imported by name, so that a type checker needs no gptme.
"""

from __future__ import annotations

import importlib
import inspect
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

SUPPORTED: Final = "0.35.1"
"""The version of gptme whose code these names were taken from."""

BACKGROUND: Final = "gptme.tools.shell_background"
SHELL: Final = "gptme.tools.shell"
STORAGE: Final = "gptme.util.output_storage"
CONFIRM: Final = "gptme.hooks.server_confirm"
SERVER: Final = "gptme.server.session_models"
"""Imported by a server alone; checked when one is there."""

SAVERS: Final = (STORAGE, SHELL, "gptme.tools.read", "gptme.tools.tmux", "gptme.tools.autocompact.engine")
"""Who has `save_large_output` under that name, by value."""

_SHORTEN: Final = (
    *("stdout", "pre_lines", "post_lines", "pre_tokens", "post_tokens"),
    *("strip_dates", "strip_common_prefix_lines", "logdir", "cmd"),
)
_SAVE: Final = ("content", "logdir", "output_type", "command_info", "original_tokens")

REPLACED: Final[tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...]] = (
    ((BACKGROUND, SHELL), "start_background_job", ("command", "memory_limit")),
    ((BACKGROUND, SHELL), "control_commands_help", ("job_id",)),
    ((BACKGROUND, SHELL), "execute_output_command", ("job_id_str",)),
    (
        (BACKGROUND, SHELL),
        "background_job_completion_hook",
        ("manager", "interactive", "prompt_queue", "no_confirm"),
    ),
    ((BACKGROUND,), "_completion_message", ("job",)),
    (SAVERS, "save_large_output", _SAVE),
    ((SHELL,), "_shorten_stdout", _SHORTEN),
)
"""Modules, name, and the parameters that it must have."""

CALLED: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        BACKGROUND,
        (
            "_STDERR_DISPLAY_CHARS",
            "_STDOUT_DISPLAY_CHARS",
            "_MAX_BUFFER_SIZE",
            "_background_jobs",
            "_completion_queue",
            "_current_conversation_id",
            "_current_log_dir",
            "_get_next_job_id_locked",
            "_job_conditions",
            "_job_lock",
            "_jobs_for",
            "_notify_completion",
            "_record_kill_reason",
            "apply_memory_limit",
            "get_background_job",
            "reset_background_jobs",
        ),
    ),
    (SHELL, ("_record_shell_pgid", "tool")),
    ("gptme.tools.shell_memory", ("Target", "group_alive", "watch")),
    ("gptme.hooks", ("HookType", "register_hook")),
    ("gptme.dirs", ("get_logs_dir",)),
    ("gptme.logmanager", ("LogManager",)),
    ("gptme.message", ("Message",)),
    ("gptme.plugins.plugin", ("GptmePlugin",)),
    ("gptme.util.context", ("md_codeblock",)),
    (CONFIRM, ("current_session_id",)),
)
"""Names that must be there."""

HOOK: Final = "background_completion"
"""The key of the hook among those of the shell tool; gptme registers it as `shell.background_completion`."""
HOOK_PRIORITY: Final = 900


class UnsupportedGptme(RuntimeError):
    """This gptme is not the one that the plug-in was written for; nothing was replaced."""


def module(name: str) -> Any:  # noqa: ANN401 -- gptme is not there when types are checked
    """Return a module of gptme. Raises: ImportError."""
    return importlib.import_module(name)


def check() -> None:
    """Return if all is as it must be. Raises: UnsupportedGptme, with one line that says what is not."""
    try:
        found = version("gptme")
    except PackageNotFoundError:
        raise UnsupportedGptme(_refusal("gptme is not installed")) from None
    if found != SUPPORTED:
        raise UnsupportedGptme(_refusal(f"this is gptme {found}"))
    wrong = [*_missing(), *_different()]
    if wrong:
        raise UnsupportedGptme(_refusal(f"not as expected: {', '.join(wrong)}"))


def check_server(manager: object) -> None:
    """Return if a server's session manager can be asked to wake. Raises: UnsupportedGptme."""
    for name, parameters in (
        ("request_watch_wake", ("conversation_id", "message", "branch")),
        ("get_sessions_for_conversation", ("conversation_id",)),
    ):
        if _parameters(getattr(manager, name, None)) != parameters:
            raise UnsupportedGptme(f"spoolvisor wakes no idle server: SessionManager.{name} is not as expected")


def _refusal(why: str) -> str:
    return f"spoolvisor changes nothing in gptme, it is made for gptme {SUPPORTED}: {why}"


def _missing() -> list[str]:
    wrong: list[str] = []
    for name, attributes in CALLED:
        try:
            owner = module(name)
        except ImportError:
            wrong.append(name)
            continue
        wrong.extend(f"{name}.{attribute}" for attribute in attributes if not hasattr(owner, attribute))
    hook = getattr(getattr(_imported(SHELL), "tool", None), "hooks", {}).get(HOOK)
    if hook is None or hook[0] != "step.pre" or hook[2] != HOOK_PRIORITY:
        wrong.append(f"the hook shell.{HOOK}")
    return wrong


def _different() -> list[str]:
    wrong: list[str] = []
    for owners, name, parameters in REPLACED:
        functions = [getattr(_imported(owner), name, None) for owner in owners]
        if _parameters(functions[0]) != parameters:
            wrong.append(f"{owners[0]}.{name}")
        # A module that holds another function of that name uses it for something that is not known here.
        wrong.extend(
            f"{owner}.{name}" for owner, held in zip(owners[1:], functions[1:], strict=True) if held is not functions[0]
        )
    return wrong


def _imported(name: str) -> object:
    try:
        return module(name)
    except ImportError:
        return None


def _parameters(function: object) -> tuple[str, ...] | None:
    return tuple(inspect.signature(function).parameters) if callable(function) else None
