"""The plug-in: what gptme calls, and what is put in the place of what.

`tools/shell.py` imports the names of `tools/shell_background.py` by value, so a name is replaced wherever it is held.
Commands that gptme promotes by itself go on as gptme's own jobs, in the same registry.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, Final

from . import messages, names
from .jobs import SpooledJob
from .owners import Owners
from .starting import Starter
from .storage import saver, shortener
from .waking import Waker

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

_CREDENTIAL: Final = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
"""Names of settings whose values are masked, as the supervisor masks those of the environment."""
_LEAST_SECRET: Final = 8
"""Characters below which a value is not searched for."""

_lock: Final = threading.Lock()
_installed = False


def install(secrets: Mapping[str, str] | None = None) -> bool:
    """Replace gptme's names, all of them or none; return False if that was done before.

    Args:
        secrets: Values that are masked besides those of credential-named variables, by name.

    Raises: UnsupportedGptme: this gptme is not as expected.
    """
    global _installed  # noqa: PLW0603 -- gptme's modules are as global
    with _lock:
        if _installed:
            return False
        names.check()
        known = dict(secrets or {})
        new = _replacements(Starter(Owners(known), Waker()), saver(known))
        for owners, name, _ in names.REPLACED:
            for owner in owners:
                setattr(names.module(owner), name, new[name])
        hooks = names.module(names.SHELL).tool.hooks
        kind, _, priority = hooks[names.HOOK]
        hooks[names.HOOK] = (kind, new["background_job_completion_hook"], priority)
        _installed = True
        return True


def init(config: Any) -> None:  # noqa: ANN401 -- gptme's Config
    """Do what gptme has a plug-in do before its tools and hooks are set up. Raises: UnsupportedGptme."""
    install(configured_secrets(config))


def register_hooks() -> None:
    """Register the hook that delivers completions, under gptme's name for it, which replaces gptme's own."""
    if not _installed:
        return
    hooks = names.module("gptme.hooks")
    hooks.register_hook(
        f"shell.{names.HOOK}",
        hooks.HookType.STEP_PRE,
        names.module(names.BACKGROUND).background_job_completion_hook,
        priority=names.HOOK_PRIORITY,
    )


def manifest() -> Any:  # noqa: ANN401 -- a GptmePlugin
    """Return the plug-in as gptme wants it; what the entry point names."""
    plugin = names.module("gptme.plugins.plugin").GptmePlugin
    return plugin(name="spoolvisor", init=init, register_hooks=register_hooks)


def configured_secrets(config: Any) -> dict[str, str]:  # noqa: ANN401 -- gptme's Config
    """Return the credentials in gptme's own settings, which no environment variable has to hold."""
    found: dict[str, str] = {}
    for part in (config.user, config.project):
        settings: dict[str, Any] = getattr(part, "env", None) or {}
        found.update({name: str(value) for name, value in settings.items()})
    return {name: value for name, value in found.items() if _CREDENTIAL.search(name) and len(value) >= _LEAST_SECRET}


def _replacements(starter: Starter, save: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return what stands for each name of `names.REPLACED`; gptme's own functions still do what is not ours."""
    background = names.module(names.BACKGROUND)
    stock = {name: getattr(background, name) for owners, name, _ in names.REPLACED if owners[0] == names.BACKGROUND}

    def control_commands_help(job_id: int) -> str:
        job = background.get_background_job(job_id)
        lines: str = stock["control_commands_help"](job_id)
        return f"{lines}\n\n{_live(job)}" if isinstance(job, SpooledJob) else lines

    def execute_output_command(job_id_str: str) -> Generator[Any, None, None]:
        job = _spooled(background, job_id_str)
        if job is None:
            yield from stock["execute_output_command"](job_id_str)
        elif job_id_str.split()[1:]:
            consumer = str(names.module(names.CONFIRM).current_session_id.get() or "")
            yield messages.state(job, lambda stream, limit: job.unread(consumer, stream, limit), "No new output.")
        else:
            yield messages.state(job, job.newest, "No output yet.")

    def completion_message(job: Any) -> Any:  # noqa: ANN401 -- either kind of job, a Message
        late = getattr(job, "_late_kill_notice", None)
        if isinstance(job, SpooledJob) and not late:
            return job.completion
        return stock["_completion_message"](job)

    def background_job_completion_hook(
        manager: object,
        interactive: bool = False,  # noqa: FBT001, FBT002 -- gptme's signature
        prompt_queue: object = None,
        no_confirm: bool = False,  # noqa: FBT001, FBT002
    ) -> Generator[Any, None, None]:
        for message in stock["background_job_completion_hook"](manager, interactive, prompt_queue, no_confirm):
            try:
                yield message
            finally:  # handed over, whether or not more is asked for
                _acknowledge(background, message)

    return {
        "start_background_job": starter.start_background_job,
        "control_commands_help": control_commands_help,
        "execute_output_command": execute_output_command,
        "background_job_completion_hook": background_job_completion_hook,
        "_completion_message": completion_message,
        "save_large_output": save,
        "_shorten_stdout": shortener(names.module(names.SHELL)._shorten_stdout),  # noqa: SLF001
    }


def _spooled(background: Any, words: str) -> SpooledJob | None:  # noqa: ANN401 -- a module of gptme
    """Return the job of ours that `output` asks for; None for anything else, which is gptme's to answer."""
    match = re.fullmatch(r"\s*([0-9]+)(\s+--new)?\s*", words)
    job: object = background.get_background_job(int(match[1])) if match else None
    return job if isinstance(job, SpooledJob) else None


def _live(job: SpooledJob) -> str:
    """Return where the job's output is while it grows."""
    if not job.files:
        return f"Its output is in no file ({'no-directory' if job.log_dir is None else 'unavailable'})."
    listed = ", ".join(f"`{file}`" for file in job.files)
    return f"Its output grows in {listed} of the conversation's directory; once it has ended, the names end in `.log`."


def _acknowledge(background: Any, message: Any) -> None:  # noqa: ANN401 -- a module and a Message of gptme
    with background._job_lock:  # noqa: SLF001
        jobs = [job for group in background._background_jobs.values() for job in group.values()]  # noqa: SLF001
    for job in jobs:
        if isinstance(job, SpooledJob) and job.completion is message:
            job.acknowledge()
