"""Where the texts of a receipt are for whoever reads it here (contract E7, E10).

A receipt is written where its files are. It may be read after they were moved or removed, in a copy of their directory,
or by somebody who has the receipt alone. What it says of the output stays as it is; its references, its paths and its
`access` are made true for the reader, who is never given a path that leads nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .leftover import carried

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .leftover import Site
    from .receipt import RawCopy, Receipt, StreamFacts
    from .words import Access, StreamName

RAW: Final = ".raw"
NOT_COPIED: Final = "text-not-copied"
"""The limitation that is named, with the stream, where a copy of a capture has not the text that the receipt is of."""


def unreached(receipt: Receipt, *, gone: bool) -> Receipt:
    """Return the receipt for who cannot get at the files: they are `gone`, or somewhere else."""

    def change(facts: StreamFacts) -> StreamFacts:
        if facts.access not in {"local", "needs-transfer"}:
            return facts
        reference, access = (None, "unavailable") if gone else (facts.reference, "needs-transfer")
        return _without_paths(facts).model_copy(update={"reference": reference, "access": access})

    return receipt.model_copy(update={"streams": {name: facts and change(facts) for name, facts in _all(receipt)}})


def reached(receipt: Receipt, site: Site, names: Mapping[str, str]) -> Receipt:
    """Return the receipt for who finds the capture at `site`, with files of these `names` by stream.

    An unsanitised copy is `<stream>.raw`. A text whose file is not among them is `unavailable`, and has no reference.
    """

    def change(name: StreamName, facts: StreamFacts) -> StreamFacts:
        raw_copy = facts.raw_copy and _raw_reached(facts.raw_copy, site, names.get(name + RAW))
        facts = facts.model_copy(update={"raw_copy": raw_copy})
        if facts.access == "inline" or (facts.access == "unavailable" and name not in names):
            return facts
        access: Access = "local" if name in names else "unavailable"
        reference = f"{site.reference}/{names[name]}" if name in names else None
        return facts.model_copy(
            update={"reference": reference, "path": _path(site, reference) if reference else None, "access": access}
        )

    streams = {name: facts and change(name, facts) for name, facts in _all(receipt)}
    return receipt.model_copy(update={"conversation": carried(site.conversation), "streams": streams})


def names_in(receipt: Receipt) -> frozenset[str]:
    """Return the names of the files that the receipt is of."""
    references: list[str | None] = []
    for _, facts in _all(receipt):
        if facts is not None:
            references += [facts.reference, facts.raw_copy.reference if facts.raw_copy else None]
    return frozenset(reference.rpartition("/")[2] for reference in references if reference is not None)


def handed_over(receipt: Receipt, site: Site, names: Mapping[str, str]) -> Receipt:
    """Return the receipt of a copy at `site` that has files of these `names` by stream.

    A text that could be had where it was copied from, and is not among them, is named in the limitations.
    """
    lost = [name for name, facts in _all(receipt) if facts and _has_file(facts) and name not in names]
    limitations = dict.fromkeys((*receipt.limitations, *(f"{NOT_COPIED}:{name}" for name in lost)))
    return reached(receipt, site, names).model_copy(update={"limitations": tuple(limitations)})


def without_paths(receipt: Receipt) -> Receipt:
    """Return the receipt as it may lie in a directory that is given to somebody: with references alone [E9]."""
    streams = {name: facts and _without_paths(facts) for name, facts in _all(receipt)}
    return receipt.model_copy(update={"conversation": None, "streams": streams})


def _all(receipt: Receipt) -> list[tuple[StreamName, StreamFacts | None]]:
    return list(receipt.streams.items())


def _has_file(facts: StreamFacts) -> bool:
    return facts.access in {"local", "needs-transfer"}


def _without_paths(facts: StreamFacts) -> StreamFacts:
    raw_copy = facts.raw_copy and facts.raw_copy.model_copy(update={"path": None})
    return facts.model_copy(update={"path": None, "raw_copy": raw_copy})


def _raw_reached(copy: RawCopy, site: Site, name: str | None) -> RawCopy:
    """Return the facts of an unsanitised copy; one that is not there is `unavailable`, whatever it was."""
    if name is None:
        return copy.model_copy(update={"state": "unavailable", "path": None, "size": None})
    reference = f"{site.reference}/{name}"
    return copy.model_copy(update={"reference": reference, "path": _path(site, reference)})


def _path(site: Site, reference: str) -> str | None:
    conversation = carried(site.conversation)
    return conversation and f"{conversation}/{reference}"
