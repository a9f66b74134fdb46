"""The way into the command line, and the one place where its errors become one line and an exit code.

A new command is a module beside this one that has a `click.Command` called `command`, and its name in `COMMANDS`. The
module is imported when the command is used: help lists them all without one import.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Final, NoReturn

import click

from .codes import INTERRUPTED, MISUSE, OWN_FAULT
from .faults import Fault
from .messages import complain

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "spoolvisor"
COMMANDS: Final = {
    "run": "Run a command, show its output, keep all of it.",
    "list": "List the captures of a directory.",
    "show": "Show the receipt of a capture.",
    "logs": "Show the kept text of a capture.",
    "wait": "Wait until a command has ended.",
    "recover": "Finish captures whose supervisor was killed.",
    "export": "Copy captures to be given away.",
    "rm": "Remove captures.",
    "doctor": "Say what this system and directory can and cannot give.",
}
"""What help says of each. It is the name of its module too, with `-` as `_`."""
FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
"""What help to a file can meet. Commands write by themselves; click handles EPIPE."""


class Commands(click.Group):
    """Commands that are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names, in the order in which help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Return the command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f".{cmd_name.replace('-', '_')}", __package__).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's callback
    """Print the version and end, if that is wanted."""
    if not wanted or context.resilient_parsing:
        return
    try:
        version = metadata.version(PROGRAM)
    except metadata.PackageNotFoundError:  # run from a checkout
        version = "of no installed version"
    click.echo(f"{PROGRAM} {version}")
    context.exit()


@click.command(cls=Commands, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version and end.",
)
def commands() -> None:
    """Run commands, keep all of their output, and say honestly what became of both.

    \b
    Examples:
      spoolvisor run -- make test
      spoolvisor run --time-limit 10m --json -- pytest -q
      spoolvisor logs -f 20260131T2359

    \b
    Completion of commands, options and ids, from the next shell on:
      bash, in ~/.bashrc:  eval "$(_SPOOLVISOR_COMPLETE=bash_source spoolvisor)"
      zsh, in ~/.zshrc:    eval "$(_SPOOLVISOR_COMPLETE=zsh_source spoolvisor)"
      fish, in ~/.config/fish/config.fish:
                           _SPOOLVISOR_COMPLETE=fish_source spoolvisor | source
    """  # noqa: D301 -- \b is a character: click keeps the line breaks after it


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    occupy_standard_descriptors()
    try:
        code = commands.main(args=arguments, prog_name=PROGRAM, standalone_mode=False)
    except click.ClickException as error:
        complain(describe(error))
        code = error.exit_code if isinstance(error, Fault) else MISUSE
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise
        code = stdout_is_full(error)
    sys.exit(code)


def stdout_is_full(error: OSError) -> int:
    """Say that help could not be written, and return the exit code; what Python still holds of it is dropped."""
    complain(f"stdout takes no more: {error.strerror}")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # else the interpreter tries again at its exit, and complains for itself
    os.close(null)
    return OWN_FAULT


def describe(error: click.ClickException) -> str:
    """Return what was wrong with the arguments and where help is."""
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message} (see '{context.command_path} --help')"


def occupy_standard_descriptors() -> None:
    """Put `/dev/null` where 0, 1 or 2 is closed.

    Else the next file opened, such as a capture, takes that number, and what is shown would be written into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 - stderr
        pass
    os.close(descriptor)
