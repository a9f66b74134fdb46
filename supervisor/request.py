"""What the caller asks for, checked at once: after this, only the world can say no.

A wrong argument raises `ValueError` or `TypeError` before anything exists. Error texts name the argument, never a value
of the command or its environment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypedDict, get_args, overload

from .limits import not_negative, positive
from .process import ChildLimits, Launch, Terminal
from .sansio.environment import EnvChanges, EnvPolicy, changes, child_environment

PIPE: Final = "pipe"
"""`stdin=PIPE`: the caller writes with `Job.write` and ends with `Job.write_eof`."""

CALL_ID_CHARACTERS: Final = 200
"""As long as a label may be [A6]. An identity is refused where a label is cut: a part of it would name another call."""

Stdin = bytes | AsyncIterable[bytes] | Literal["pipe"] | None
Command = str | Sequence[str | os.PathLike[str]]
CaptureMode = Literal["spool", "none"]
Keep = Literal["sanitised", "raw"]
OnExit = Literal["leave", "end"]


@dataclass(frozen=True, slots=True)
class Options:
    """How a command is to be run; the keyword arguments of `Supervisor.start`, with their defaults."""

    cwd: str | os.PathLike[str] | None = None
    env: Mapping[str, str] | None = None
    stdin: Stdin = None
    shell: bool = False
    label: str | None = None
    call_id: str | None = None
    record_command: bool = True
    time_limit: float | None = None
    idle_limit: float | None = None
    kill_after: float = 5.0
    drain_timeout: float = 1.0
    merge: bool = False
    pty: Terminal | None = None
    capture: CaptureMode = "spool"
    keep: Keep = "sanitised"
    window_bytes: int = 0
    on_exit: OnExit = "leave"
    pipestatus: bool = False
    env_policy: EnvPolicy | None = None
    env_remove: Collection[str] = ()
    noninteractive: bool = False
    child_limits: ChildLimits | None = None


class OptionsDict(TypedDict, total=False):
    """The keyword arguments of `Supervisor.start` and `Supervisor.run`. Durations are seconds."""

    cwd: str | os.PathLike[str] | None
    """Where the command runs; None: where the supervisor runs."""
    env: Mapping[str, str] | None
    """Replaces the environment, as in `subprocess`; None: inherits it. With an `env_policy`: is set on top of it."""
    env_policy: EnvPolicy | None
    """What is taken over of the supervisor's environment: "inherit" (all), "scrubbed" (all but variables with a
    credential's name), "explicit" (nothing). None: "explicit" with `env`, "inherit" without. `SPOOLVISOR_JOB` is added
    in any case (F3)."""
    env_remove: Collection[str]
    """Names of variables that the command does not get."""
    noninteractive: bool
    """Add variables that ask for no pager, no prompt, no colour and no buffering; `env` can set them otherwise."""
    stdin: Stdin
    """None (`/dev/null`), bytes, an async iterable of bytes, or `PIPE` (F7)."""
    shell: bool
    """Run one string by `bash -c` (`sh -c` where there is no bash), untouched."""
    label: str | None
    """What a person calls it; sanitised, at most 200 characters (A6)."""
    call_id: str | None
    """The host's own id of the call."""
    record_command: bool
    """False: neither launch record nor receipt names the argv (C8)."""
    time_limit: float | None
    """After it the tree is ended and the state is `timeout` / `time-limit`."""
    idle_limit: float | None
    """The same for a child that writes nothing for so long; our own pauses do not count (B4)."""
    kill_after: float
    """From TERM to KILL; 0 kills at once."""
    drain_timeout: float
    """How long a pipe that is still open after the exit is read (F2)."""
    merge: bool
    """One pipe for both streams, called `stdout`; `stderr` is then None (B7)."""
    pty: Terminal | None
    """A terminal of that size instead of pipes: stdin, stdout, stderr and the controlling terminal at once. What is
    printed, and the echo of what is typed, is one stream, called `stdout`; `stderr` is None (B7). `stdin` is then what
    is typed: None types nothing and ends nothing, so what reads waits; bytes and iterables end with `Job.write_eof`'s
    key. Where no terminal is to be had, it is a `SpawnError` whose `fault` is "terminal"."""
    capture: CaptureMode
    """"spool", or "none": no output text is kept or shown anywhere (B9)."""
    keep: Keep
    """"raw" keeps an unsanitised copy of each stream too, secrets and all, in a file of its own; `run` then leaves
    files in any case (B8)."""
    window_bytes: int
    """Keep the last bytes of each stream in memory for `Job.live`, whatever is retained."""
    on_exit: OnExit
    """What becomes of processes that the command leaves running when it exits by itself: "leave", or "end", with the
    grace of `kill_after`. Survivors are in the receipt either way (F3)."""
    pipestatus: bool
    """Have bash report the codes of its last pipeline's members; needs `shell`. Where there is no way to, the receipt
    names `pipestatus-unavailable`."""
    child_limits: ChildLimits | None
    """What the command may use, and as whom it runs. One that the system refuses is a `SpawnError` whose `fault` is
    "limit"; one that needs a cgroup where none is to be had is named in the receipt's `limitations`."""


@dataclass(frozen=True, slots=True)
class Request:
    """A command and options that were found to be usable."""

    launch: Launch
    options: Options
    shown_command: tuple[str, ...]
    """The command as the caller gave it: one text for a shell command."""
    environment: EnvChanges
    """How the child's environment differs from the supervisor's, by names."""


def checked(command: Command, options: Options) -> Request:
    """Return the request. Raises: TypeError, ValueError."""
    for name in ("time_limit", "idle_limit"):
        _check_seconds(name, getattr(options, name), positive)
    for name in ("kill_after", "drain_timeout"):
        _check_seconds(name, getattr(options, name), not_negative)
    _check_names(options)
    if options.env is not None and not _is_mapping(options.env):
        raise TypeError("env must be a mapping of names to values")
    _check_window(options.window_bytes)
    _check_child_limits(options.child_limits)
    if options.capture not in {"spool", "none"}:
        raise ValueError('capture must be "spool" or "none"')
    if options.keep not in {"sanitised", "raw"}:
        raise ValueError('keep must be "sanitised" or "raw"')
    if options.keep == "raw" and options.capture == "none":
        raise ValueError('keep="raw" contradicts capture="none", which keeps no output anywhere')
    if options.on_exit not in {"leave", "end"}:
        raise ValueError('on_exit must be "leave" or "end"')
    if options.pipestatus and not options.shell:
        raise ValueError("pipestatus needs shell=True: only a shell has pipelines")
    options = _with_terminal(options)
    argv, shown = _argv(command, shell=options.shell)
    policy, env = _environment(options)
    launch = Launch(
        argv=argv,
        cwd=None if options.cwd is None else os.fspath(options.cwd),
        env=env,
        stdin="null" if options.stdin is None else "pipe",
        merge=options.merge,
        pty=options.pty,
        child_limits=options.child_limits,
    )
    if not _is_stdin(options.stdin):
        raise TypeError("stdin must be None, bytes, an async iterable of bytes, or PIPE")
    return Request(launch, options, shown, changes(os.environ, os.environ if env is None else env, policy))


def _environment(options: Options) -> tuple[EnvPolicy, dict[str, str] | None]:
    """Return the policy, and the variables of the child; None where they are simply the supervisor's."""
    policy = options.env_policy or ("inherit" if options.env is None else "explicit")
    if policy not in get_args(EnvPolicy):
        raise ValueError('env_policy must be "inherit", "scrubbed" or "explicit"')
    if isinstance(options.env_remove, str) or not all(_is_text(name) for name in options.env_remove):
        raise TypeError("env_remove must be a collection of names")
    if policy == "inherit" and not (options.env or options.env_remove or options.noninteractive):
        return policy, None
    return policy, child_environment(
        os.environ,
        policy,
        given=options.env or {},
        remove=options.env_remove,
        noninteractive=options.noninteractive,
    )


def _argv(command: Command, *, shell: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(command, str):
        if not shell:
            raise TypeError("a command in one string needs shell=True; without a shell, give a list")
        if not command.strip():
            raise ValueError("the shell command is empty")
        # bash, because that is what people write for; the string stays one argument, untouched [A5].
        return (shutil.which("bash") or "/bin/sh", "-c", command), (command,)
    if not _is_list(command):
        raise TypeError("a command is a list or tuple of strings, or one string with shell=True")
    if shell:
        raise TypeError("a list never goes through a shell; give one string with shell=True")
    argv = tuple(os.fspath(part) for part in command)
    return argv, argv


def _check_names(options: Options) -> None:
    for name in ("label", "call_id"):
        _check_text(name, getattr(options, name))
    if options.call_id is not None and len(options.call_id) > CALL_ID_CHARACTERS:
        raise ValueError(f"call_id has more than {CALL_ID_CHARACTERS} characters")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _check_window(count: object) -> None:
    if not isinstance(count, int):
        raise TypeError("window_bytes must be a number of bytes")
    if count < 0:
        raise ValueError("window_bytes must not be negative")


def _with_terminal(options: Options) -> Options:
    """Return the options, merged where there is a terminal. Raises: TypeError."""
    if not (options.pty is None or _is_terminal(options.pty)):
        raise TypeError("pty must be a Terminal")
    return options if options.pty is None else replace(options, merge=True)


def _is_terminal(pty: object) -> bool:
    return isinstance(pty, Terminal)


def _check_child_limits(limits: object) -> None:
    if not (limits is None or isinstance(limits, ChildLimits)):
        raise TypeError("child_limits must be ChildLimits")


def _is_mapping(env: object) -> bool:
    return isinstance(env, Mapping)


def _is_stdin(stdin: object) -> bool:
    return stdin is None or stdin == PIPE or isinstance(stdin, bytes | AsyncIterable)


def _is_list(command: object) -> bool:
    return isinstance(command, Sequence) and not isinstance(command, bytes | bytearray | memoryview)


def _check_text(name: str, value: object) -> None:
    if not (value is None or isinstance(value, str)):
        raise TypeError(f"{name} must be a string")


def _check_seconds(name: str, value: object, check: Callable[[float], float]) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds")
    try:
        check(float(value))
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


@overload
def conversation_path(directory: str | os.PathLike[str]) -> Path: ...
@overload
def conversation_path(directory: str | os.PathLike[str] | None) -> Path | None: ...
def conversation_path(directory: str | os.PathLike[str] | None) -> Path | None:
    """Return the absolute path of a conversation's directory, symlinks left as they are."""
    return None if directory is None else Path(os.path.abspath(directory))  # noqa: PTH100 -- resolve() follows links
