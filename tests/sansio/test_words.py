"""The closed words of the contract, and their order."""

from __future__ import annotations

from typing import get_args

from supervisor.sansio import words


def test_the_words_are_those_of_the_contract() -> None:
    """A1 and A3, word for word: hosts match on them."""
    assert set(get_args(words.ProcessState)) == {"not-started", "running", "exited", "cancelled", "timeout", "unknown"}
    assert set(get_args(words.ProcessReason)) == {
        *("time-limit", "idle-limit", "caller", "supervisor-shutdown", "memory", "output-limit", "status-lost"),
    }
    assert set(get_args(words.CaptureState)) == {
        *("pending", "complete", "partial", "failed", "disabled", "unavailable"),
    }
    assert set(get_args(words.CaptureReason)) == {
        *("drain-timeout", "job-limit", "conversation-limit", "no-space", "io-error", "writer-stalled"),
        *("writer-stuck", "unsafe-directory", "no-directory", "not-started", "supervisor-lost", "internal"),
    }
    assert set(get_args(words.Representation)) == {"redacted", "decoded", "binary"}
    assert set(get_args(words.PreviewState)) == {"complete", "clipped"}


def test_every_word_has_one_place_in_the_order() -> None:
    """A new word without a place would make the worst of two streams a crash."""
    assert sorted(words.STATES) == sorted(get_args(words.CaptureState))
    assert words.REASONS[0] is None
    assert sorted(filter(None, words.REASONS)) == sorted(get_args(words.CaptureReason))
