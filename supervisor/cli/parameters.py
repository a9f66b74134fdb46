"""The options and arguments that several commands have, and how a shell completes ids."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from ..errors import SupervisorError
from ..sansio.rendering import headline

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..sansio.receipt import Receipt

SETTINGS: Final = {"max_content_width": 100}

directory_option: Final = click.option(
    "--dir", "directory", metavar="D", help="The directory of the captures [$SPOOLVISOR_DIR, else the state directory]."
)


def completed_ids(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids that begin so, the newest first, each with what it was. A shell that asks gets no error."""
    from .looking import captures_of, directory_of  # noqa: PLC0415 - help needs none of it

    try:
        receipts = asyncio.run(captures_of(directory_of(context.params.get("directory"))))
    except (click.ClickException, SupervisorError):
        return []
    return [_item(receipt) for receipt in reversed(receipts) if receipt.capture_id.startswith(incomplete)]


def capture_argument(name: str = "given", *, many: bool = False) -> Callable[[Any], Any]:
    """Return the decorator for an argument that takes the id of a capture, or of many."""
    return click.argument(
        name,
        metavar="ID..." if many else "ID",
        nargs=-1 if many else 1,
        required=True,
        shell_complete=completed_ids,
    )


def _item(receipt: Receipt) -> CompletionItem:
    return CompletionItem(receipt.capture_id, help=headline(receipt))
