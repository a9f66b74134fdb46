"""Making a receipt smaller, visibly and in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.fitting import OTHER_NAMES, PREVIEW_STEPS, fitted, shareable, shorter
from supervisor.sansio.receipt import (
    CaptureFacts,
    Durability,
    PreviewFacts,
    ProcessFacts,
    Receipt,
    StreamFacts,
    worst,
)

ORDER = (
    "preview-clipped",
    "survivors-clipped",
    "redactions-clipped",
    "label-clipped",
    "command-clipped",
    "errors-clipped",
)


def complete(text: str) -> PreviewFacts:
    """Return the preview of a text that is shown in whole."""
    size = len(text.encode())
    return PreviewFacts(state="complete", head=text, returned_bytes=size, budget_bytes=16384)


def clipped(head: str, tail: str, omitted: int) -> PreviewFacts:
    """Return the preview of a text of which `omitted` bytes are not shown."""
    size = len((head + tail).encode())
    return PreviewFacts(
        state="clipped", head=head, tail=tail, returned_bytes=size, budget_bytes=16384, omitted_bytes=omitted
    )


def stream(**fields: object) -> StreamFacts:
    """Return a complete stream."""
    return StreamFacts.model_validate({"state": "complete", "access": "local", **fields})


def receipt(stdout: StreamFacts | None = None, stderr: StreamFacts | None = None, **fields: object) -> Receipt:
    """Return a receipt with these streams."""
    stdout = stdout or stream()
    own = {"capture_id": "x", "capture": worst([stdout, stderr]), "process": ProcessFacts(state="exited", code=0)}
    return Receipt.model_validate({**own, "streams": {"stdout": stdout, "stderr": stderr}, **fields})


def big() -> Receipt:
    """Return a receipt with something in each part that can be trimmed."""
    return receipt(
        stream(preview=complete("line\n" * 2000), redactions={f"VARIABLE_{i}": i for i in range(50)}),
        stream(preview=clipped("h" * 300, "t" * 700, 10_000), redactions={"A": 1}),
        process=ProcessFacts(
            state="exited", code=0, pid=999, survivors=tuple(range(1000, 1400)), holders=(7, 8), error="e" * 500
        ),
        label="l" * 200,
        command=("c" * 300, "d" * 300),
        durability=Durability(barrier=False, error="f" * 400),
    )


def test_a_receipt_that_fits_is_itself() -> None:
    """Nothing is touched, and nothing is said to be."""
    made = big()
    assert fitted(made, len(made.to_json())) is made


@given(st.integers(2300, len(big().to_json()) + 10))
def test_it_fits_whatever_the_limit(limit: int) -> None:
    """At each limit the JSON fits, says what was trimmed in order, and is still a receipt."""
    made = big()
    small = fitted(made, limit)
    assert len(small.to_json()) <= limit
    assert small.limitations == ORDER[: len(small.limitations)]
    assert Receipt.parse(small.to_json()) == small
    untouched = {"capture_id", "capture", "started_at", "ended_at"}
    assert small.model_dump(include=untouched) == made.model_dump(include=untouched)


def test_a_limit_below_what_cannot_be_trimmed_is_refused() -> None:
    """Identity and states are never given up."""
    with pytest.raises(ValueError, match="untrimmable"):
        fitted(big(), 300)


def test_no_more_is_trimmed_than_needed() -> None:
    """One byte too many costs a share of the preview and one word, not a whole part."""
    made = big()
    size = len(made.to_json())
    small = fitted(made, size - 1)
    assert small.limitations == ("preview-clipped",)
    assert size - 150 < len(small.to_json()) < size


def test_what_fits_to_the_byte_is_kept() -> None:
    """The limit itself is allowed, at every row."""
    for limit in (9000, 5000, 4000, 2600):
        small = fitted(big(), limit)
        assert fitted(big(), len(small.to_json())) == small


def test_later_rows_are_touched_only_when_the_earlier_are_exhausted() -> None:
    """The previews are gone before a survivor is, the survivors before a name, the names before the label."""
    small = fitted(big(), 5000)
    assert small.limitations == ("preview-clipped", "survivors-clipped")
    assert (small.stdout, small.stderr) == ("[10000 bytes omitted]\n", "[11000 bytes omitted]\n")
    assert small.process is not None
    assert small.process.survivors is not None
    assert 0 < len(small.process.survivors) < 400
    assert small.label == "l" * 200


def test_a_clipped_preview_counts_what_it_lost() -> None:
    """Every byte of the text is shown or counted, and the preview says that it is clipped."""
    small = fitted(big(), 9000)
    for name, size in (("stdout", 10_000), ("stderr", 11_000)):
        facts = small.streams[name]  # type: ignore[index]
        assert facts is not None
        assert facts.preview is not None
        assert facts.preview.state == "clipped"
        assert facts.preview.returned_bytes == len((facts.preview.head + facts.preview.tail).encode()) > 0
        assert facts.preview.returned_bytes + facts.preview.omitted_bytes == size


@given(
    st.text(st.sampled_from("a\n€𝄞"), max_size=40), st.text(st.sampled_from("z€"), max_size=40), st.integers(0, 1024)
)
def test_shorter_previews_are_true_ends(head: str, tail: str, keep: int) -> None:
    """Of a complete preview and of a clipped one alike: the first of the head, the last of the tail, all counted."""
    for preview in (complete(head), clipped(head, tail, 9)):
        result = shorter(preview, keep)
        assert preview.head.startswith(result.head) or preview.state == "complete"
        assert (preview.head + preview.tail).startswith(result.head)
        assert (preview.head + preview.tail).endswith(result.tail)
        before = preview.returned_bytes + preview.omitted_bytes
        assert result.returned_bytes + result.omitted_bytes == before
        assert result.returned_bytes == len((result.head + result.tail).encode())
        assert (result.state == "complete") == (result == preview and preview.state == "complete")
    assert shorter(preview, PREVIEW_STEPS) is preview


def test_text_that_was_only_in_the_preview_is_not_called_available() -> None:
    """`inline` would promise a whole text that is not there any more."""
    made = receipt(stream(preview=complete("x" * 3000), access="inline"), stream(preview=complete(""), access="inline"))
    small = fitted(made, 2500)
    assert small.streams["stdout"] is not None
    assert small.streams["stdout"].access == "unavailable"
    assert small.streams["stderr"] is not None
    assert small.streams["stderr"].access == "inline"


def test_redactions_keep_their_sum() -> None:
    """The most frequent names stay; the rest are counted under one name that no variable has."""
    names = {f"VARIABLE_{i}": i for i in range(100)}
    made = receipt(stream(redactions=names), stream(redactions={"A": 1}))
    small = fitted(made, 2500)
    assert small.limitations == ("redactions-clipped",)
    facts = small.streams["stdout"]
    assert facts is not None
    assert facts.redactions is not None
    assert sum(facts.redactions.values()) == sum(names.values())
    assert 2 < len(facts.redactions) < 100
    assert facts.redactions["VARIABLE_99"] == 99
    assert facts.redactions[OTHER_NAMES] > 0
    assert small.streams["stderr"] == made.streams["stderr"]


def test_unknown_survivors_stay_unknown() -> None:
    """A list that nobody could make is not turned into an empty one (A4)."""
    process = ProcessFacts(state="exited", code=0, holders=tuple(range(10_000, 11_000)))
    small = fitted(receipt(process=process), 2500)
    assert small.process is not None
    assert small.process.survivors is None
    assert small.process.holders is not None
    assert 0 < len(small.process.holders) < 1000
    process = ProcessFacts(state="exited", code=0, survivors=tuple(range(10_000, 11_000)))
    small = fitted(receipt(process=process), 2500)
    assert small.process is not None
    assert small.process.holders is None


def test_a_command_of_megabytes_does_not_cost_the_preview() -> None:
    """It is cut to its own bound first, argument by argument."""
    made = receipt(stream(preview=complete("x" * 9000)), command=("python", "-c", "y" * 2_000_000, "z"))
    small = fitted(made, 64 * 1024)
    assert small.limitations == ("command-clipped",)
    assert small.stdout == made.stdout
    assert small.command is not None
    assert small.command[:2] == ("python", "-c")
    assert 8000 < len(small.command[2]) < 56_000
    assert len(small.command) == 3


def test_the_label_and_the_command_go_last() -> None:
    """When nothing else is left to trim, they shrink and then vanish; the word for it is said once."""
    made = receipt(label="l" * 200, command=("c" * 20_000,), limitations=("no-cgroup",))
    small = fitted(made, 1500)
    assert small.limitations == ("no-cgroup", "command-clipped", "label-clipped")
    assert small.label is None
    assert small.command is not None
    assert 0 < len(small.command[0]) < 1000
    bare = len(receipt(limitations=small.limitations).to_json())
    assert fitted(made, bare).command is None


def test_error_texts_are_the_last_to_go() -> None:
    """Both are cut to the same length, a missing one stays missing."""
    process = ProcessFacts(state="not-started", error="e" * 500)
    small = fitted(receipt(process=process, durability=Durability(barrier=True)), 1500)
    assert small.limitations == ("errors-clipped",)
    assert small.process is not None
    assert small.process.error is not None
    assert 0 < len(small.process.error) < 500
    assert small.durability == Durability(barrier=True)
    small = fitted(receipt(process=process), 1300)
    assert small.limitations == ("errors-clipped",)
    assert small.durability is None


def test_text_from_no_process_fits_too() -> None:
    """A receipt without process, durability, previews and names has nothing to trim there."""
    bare = Receipt(capture_id="x", capture=CaptureFacts(state="disabled"), streams={}, label="l" * 200)
    small = fitted(bare, 450)
    assert small.process is None
    assert small.limitations == ("label-clipped",)
    with pytest.raises(ValueError, match="untrimmable"):
        fitted(bare, 100)
    with_error = bare.model_copy(update={"durability": Durability(barrier=False, error="e" * 300)})
    assert "errors-clipped" in fitted(with_error, 500).limitations
    with_pids = receipt(stream(preview=complete("x" * 3000)), stream(), process=None)
    assert fitted(with_pids, 2200).limitations == ("preview-clipped",)


def test_what_is_shared_has_no_route_and_nothing_incidental() -> None:
    """Pids, paths, command, label and error texts go; exit, capture, counts and previews stay (E9)."""
    made = big().model_copy(update={"conversation": "/home/ada"})
    shared = shareable(made)
    assert (shared.conversation, shared.command, shared.label) == (None, None, None)
    assert shared.process == ProcessFacts(state="exited", code=0)
    assert shared.durability == Durability(barrier=False)
    assert (shared.stdout, shared.stderr, shared.capture) == (made.stdout, made.stderr, made.capture)
    facts = shared.streams["stdout"]
    assert facts is not None
    assert facts.access == "needs-transfer"


def test_sharing_makes_nothing_up() -> None:
    """No process, no durability and no stderr stay missing; text that is in the preview stays there."""
    shared = shareable(receipt(stream(access="inline", preview=complete("x")), process=None, source="dask"))
    assert shared.source == "dask"
    assert (shared.process, shared.durability, shared.streams["stderr"]) == (None, None, None)
    facts = shared.streams["stdout"]
    assert facts is not None
    assert facts.access == "inline"
