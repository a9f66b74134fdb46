"""Which environment a command gets, made from the host's by a policy.

The order is fixed: the policy decides what is taken over, the profile adds its variables, then the caller's are set,
and what the caller wants removed is removed last. So a caller can take back a part of a profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from .needles import credential_values

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

EnvPolicy = Literal["inherit", "scrubbed", "explicit"]
"""What is taken over: all of the host's variables, those without a credential's name, or none."""

NONINTERACTIVE: Final[dict[str, str]] = {
    # No pager: `cat` and not an empty text, which some programs take for unset.
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "AWS_PAGER": "",  # its documented way to say none
    # No prompt: the program fails, or takes the default that it has for such a case.
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    # No colour: no-color.org, and what asks the terminal instead.
    "NO_COLOR": "1",
    "CLICOLOR": "0",
    "TERM": "dumb",
    # Lines arrive when they are printed.
    "PYTHONUNBUFFERED": "1",
}
"""The profile: what a variable can say to programs that nobody sits in front of. `CI` is not in it, because it changes
what is built and tested, nor is an editor, because one that accepts everything would."""
CONTRADICTING: Final = ("FORCE_COLOR", "CLICOLOR_FORCE")
"""What the profile removes."""

NAMED_CHANGES: Final = 256
NAME_CHARACTERS: Final = 128
"""A variable's name can be as long as an argument, and there can be as many as fit the stack (execve(2)); what is
written down of them is bounded by both."""


@dataclass(frozen=True, slots=True)
class EnvChanges:
    """How a child's environment differs from the host's, by names and never by values."""

    policy: EnvPolicy
    set: tuple[str, ...]
    """New, or with another value."""
    removed: tuple[str, ...]
    unnamed: int = 0
    """How many more differ: neither list has more than `NAMED_CHANGES`, nor names that are very long."""


def child_environment(
    host: Mapping[str, str],
    policy: EnvPolicy,
    *,
    given: Mapping[str, str],
    remove: Collection[str] = (),
    noninteractive: bool = False,
) -> dict[str, str]:
    """Return the child's variables."""
    child: dict[str, str] = {} if policy == "explicit" else dict(host)
    if policy == "scrubbed":
        for name in credential_values(host):
            del child[name]
    if noninteractive:
        child.update(NONINTERACTIVE)
    child.update(given)
    unwanted = {*remove, *(name for name in CONTRADICTING if noninteractive and name not in given)}
    return {name: value for name, value in child.items() if name not in unwanted}


def changes(host: Mapping[str, str], child: Mapping[str, str], policy: EnvPolicy) -> EnvChanges:
    """Return what differs, in alphabetical order."""
    different = [name for name, value in child.items() if host.get(name) != value]
    missing = host.keys() - child.keys()
    named, gone = _first(different), _first(missing)
    return EnvChanges(policy, named, gone, len(different) + len(missing) - len(named) - len(gone))


def _first(names: Collection[str]) -> tuple[str, ...]:
    short = sorted(name for name in names if len(name) <= NAME_CHARACTERS)
    return tuple(short[:NAMED_CHANGES])
