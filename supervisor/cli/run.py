"""`spoolvisor run`: one command, supervised, shown, kept."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Any, Final

import click

from ..limits import Limits
from ..process import adopt_orphans
from ..request import Options, OptionsDict, checked
from ..sansio.needles import refusal
from .codes import OWN_FAULT
from .loops import loop_factory
from .messages import complain
from .place import conversation_directory
from .quantities import byte_count, quantity, seconds, size_text
from .session import Plan, run

if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOW_BYTES: Final = 1024 * 1024
"""Of each stream's newest text, kept in memory for a reader that is behind."""
_DEFAULTS: Final = Limits()
_JOB_BYTES: Final = size_text(_DEFAULTS.job_bytes)
_CONVERSATION_BYTES: Final = size_text(_DEFAULTS.conversation_bytes)


@click.command(
    name="run",
    context_settings={"allow_interspersed_args": False, "max_content_width": 100},
)
@click.option(
    "--dir", "directory", metavar="D", help="Keep the output in D [$SPOOLVISOR_DIR, else the state directory]."
)
@click.option("--json", is_flag=True, help="The receipt as one JSON line on stdout; all output goes to stderr.")
@click.option("-q", "--quiet", is_flag=True, help="Show neither output nor rendered receipt.")
@click.option("--time-limit", metavar="TIME", callback=quantity(seconds), help="End the command after TIME.")
@click.option("--idle-limit", metavar="TIME", callback=quantity(seconds), help="End it when it is silent for TIME.")
@click.option("--kill-after", metavar="TIME", callback=quantity(seconds, zero=True), help="From TERM to KILL [5s].")
@click.option(
    "--drain-timeout",
    metavar="TIME",
    callback=quantity(seconds, zero=True),
    help="How long output is awaited that others hold open after the exit [1s].",
)
@click.option(
    "--on-exit",
    type=click.Choice(["leave", "end"]),
    default="leave",
    help="What becomes of processes that the command leaves running.  [leave]",
)
@click.option(
    "--env-policy",
    type=click.Choice(["inherit", "scrubbed"]),
    default="inherit",
    help="scrubbed: without variables that have a credential's name.  [inherit]",
)
@click.option("--noninteractive", is_flag=True, help="Set variables that ask for no pager, no prompt and no colour.")
@click.option("--label", metavar="TEXT", help="What the receipt calls the command.")
@click.option("--shell", is_flag=True, help="The one argument is a script for bash (sh where there is none).")
@click.option("--pipestatus", is_flag=True, help="With --shell: what each member of the last pipeline returned.")
@click.option("--secret", "secrets", metavar="NAME", multiple=True, help="Redact the value of this variable, too.")
@click.option(
    "--job-bytes",
    metavar="SIZE",
    callback=quantity(byte_count),
    help=f"Keep at most SIZE of the output [{_JOB_BYTES}].",
)
@click.option(
    "--conversation-bytes",
    metavar="SIZE",
    callback=quantity(byte_count),
    help=f"Keep at most SIZE in the directory, all captures together [{_CONVERSATION_BYTES}].",
)
@click.option(
    "--durability",
    type=click.Choice(["barrier", "none"]),
    default="barrier",
    help="barrier: what is reported as kept was synced to disk. none: skip that.  [barrier]",
)
@click.argument("command", metavar="COMMAND...", nargs=-1, required=True)
def command(command: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - what click makes of the options above
    """Run COMMAND, show its output as it comes, and keep it, sanitised, in a directory of captures.

    At the end a receipt says how the command ended, what was kept, and where. The command reads nothing from stdin.

    TIME is like 90, 90s, 1.5s, 500ms, 10m, 1h or inf; SIZE like 1000000, 512KiB, 32MiB, 1GiB or inf.

    \b
    Exit code:
      the command's own; 128+N if signal N ended it; 130 after Ctrl-C
      124 a time or idle limit ended it      126 it could not be executed
      125 spoolvisor itself failed           127 it was not found
      2   the arguments make no sense, and nothing was started

    \b
    Examples:
      spoolvisor run -- make test
      spoolvisor run --time-limit 10m --idle-limit 90s -- pytest -q
      spoolvisor run --shell 'make 2>&1 | tail -n 20'
      spoolvisor run --json --quiet --secret DEPLOY_PIN -- ./deploy.sh
    """  # noqa: D301 -- \b is a character: click keeps the line breaks after it
    return execute(plan_of(command, given, os.environ))


def plan_of(command: tuple[str, ...], given: Mapping[str, Any], environment: Mapping[str, str]) -> Plan:
    """Return what is to be done. Raises: click.UsageError for what cannot be done; nothing exists then."""
    if given["shell"] and len(command) != 1:
        raise click.UsageError("--shell takes exactly one argument, the script: quote it", click.get_current_context())
    if given["directory"] == "":
        raise click.UsageError("--dir needs the name of a directory", click.get_current_context())
    secrets, warnings = secrets_of(given["secrets"], environment)
    if given["pipestatus"] and not given["shell"]:
        raise click.UsageError("--pipestatus needs --shell: only a shell has pipelines", click.get_current_context())
    options = OptionsDict(
        shell=given["shell"],
        pipestatus=given["pipestatus"],
        label=given["label"],
        on_exit=given["on_exit"],
        env_policy=given["env_policy"],
        noninteractive=given["noninteractive"],
        window_bytes=0 if given["quiet"] else WINDOW_BYTES,
    )
    for name in ("time_limit", "idle_limit", "kill_after", "drain_timeout"):
        if given[name] is not None:
            options[name] = given[name]
    wanted = command[0] if given["shell"] else command
    try:
        checked(wanted, Options(**options))
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error), click.get_current_context()) from None
    directory = conversation_directory(given["directory"], environment)
    if directory is None:
        warnings.append("no output will be kept: there is no home directory; give --dir")
    return Plan(
        command=wanted,
        options=options,
        directory=directory,
        limits=limits_of(given),
        durability=given["durability"],
        secrets=secrets,
        warnings=tuple(warnings),
        json=given["json"],
        quiet=given["quiet"],
    )


def limits_of(given: Mapping[str, Any]) -> Limits:
    """Return the default limits with the given ones in their place."""
    names = ("job_bytes", "conversation_bytes")
    return Limits(**{name: given[name] for name in names if given[name] is not None})


def secrets_of(names: tuple[str, ...], environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the values of the named variables, and a warning for each that cannot be searched for.

    Raises: click.UsageError for a variable that is not set. What was given is not repeated: it may be the value itself.
    """
    secrets: dict[str, str] = {}
    warnings: list[str] = []
    for position, name in enumerate(names, 1):
        which = "--secret" if len(names) == 1 else f"--secret number {position}"
        if name not in environment:
            raise click.UsageError(f"{which} names no environment variable that is set", click.get_current_context())
        reason = refusal(environment[name])
        if reason is None:
            secrets[name] = environment[name]
        else:
            warnings.append(f"the value of {name} is not redacted: {reason}")
    return secrets, warnings


def execute(plan: Plan) -> int:
    """Run the plan on a loop of its own and return the exit code."""
    adopt_orphans()  # we have no child but the command
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(run(plan))
    except OSError as error:
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        # Not even a loop could be had; in a supervisor that runs, the same ends in a receipt.
        complain(f"cannot start: {error.strerror or 'no descriptors are left'}")
        return OWN_FAULT
