"""An error that is not the caller's mistake; click's own exceptions are for those."""

from __future__ import annotations

import click

from .codes import OWN_FAULT


class Fault(click.ClickException):
    """spoolvisor, or the system under it, failed: one line, and the exit code that says so."""

    exit_code = OWN_FAULT
