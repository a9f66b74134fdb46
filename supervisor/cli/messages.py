"""What the command line says in its own name: always one line, and never a secret or a control character [C8]."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def one_line(text: str, secrets: Mapping[str, str] | None = None) -> str:
    """Return `text` sanitised, with everything escaped that could end a line or reorder it."""
    from ..sansio.needles import NeedleSet, credential_values  # noqa: PLC0415 - help needs none of it
    from ..sansio.sanitizer import sanitise_text  # noqa: PLC0415 - as above

    return escaped(sanitise_text(text, NeedleSet.build(credential_values(os.environ), secrets or {})).strip())


def escaped(text: str) -> str:
    """Return `text` with everything escaped that could end a line, reorder it or move a terminal's cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def message(text: str, secrets: Mapping[str, str] | None = None) -> bytes:
    """Return the line by which the command line says `text`; `secrets` are known values beside the environment's."""
    return f"spoolvisor: {one_line(text, secrets)}\n".encode()


def complain(text: str) -> None:
    """Say `text` on stderr. Blocks while nobody reads it, so it is for before and after a job, not for during one."""
    with suppress(OSError):  # nobody is left to tell
        os.write(2, message(text))
