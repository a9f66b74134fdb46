"""What the words of `Receipt.limitations` say to a person.

A limitation is one of these words, for a program, or a sentence of its own where only the moment knows what to say.
"""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    "tree-by-group": "processes that left the command's process group may still run, for nobody can see them here",
    "tree-by-snapshot": "a process may still run if it left the session, was orphaned, cleared its environment and "
    "closed its output",
    "pipestatus-unavailable": "the codes of the pipeline's members could not be asked for",
    "no-guard": "no guard is there to end the command if its host is killed",
    "no-pidfd": "the exit was seen by a thread",
    "ignored-signals": "the command inherited ignored signals",
    "blocked-signals": "the command inherited blocked signals",
    "memory-limit-unsupported": "no limit was set on memory, for want of a cgroup",
    "pids-limit-unsupported": "no limit was set on the number of processes, for want of a cgroup",
    "stdin-source-failed": "what was to be written to stdin failed on the way",
}
"""Sentences begin small and end without a stop: they are joined by semicolons."""


def plain(word: str) -> str:
    """Return the sentence for a word; anything else as it is."""
    return SENTENCES.get(word, word)
