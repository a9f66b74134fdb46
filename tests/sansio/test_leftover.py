"""What is said of a capture from its files alone: nothing that only its supervisor knew (A4, D6)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from supervisor.sansio.leftover import (
    NO_LAUNCH_RECORD,
    LaunchRecord,
    RawLeft,
    Site,
    StreamLeft,
    live_receipt,
    lost_receipt,
    placed,
    unusable_receipt,
)
from supervisor.sansio.receipt import Durability, RawCopy, Receipt

ID: Final = "20260101T000000000000Z-0123456789abcdef0123456789abcdef"
SITE: Final = Site("/there", f"tool-outputs/captures/{ID}", ID)
LEFT: Final = StreamLeft("stdout.live", 7, 7, lines=1, ends_with_newline=False, sha256="0" * 64)


def stream(**facts: Any) -> dict[str, Any]:  # noqa: ANN401 - facts of any type
    """Return one stream as a launch record has it: counted from zero, which is not the truth later."""
    zero = {"raw": {"observed": 0, "accepted": 0, "pending": 0, "discarded": 0}, "held": 0, "committed": 0}
    return {"state": "pending", "policy": "default/1", "access": "local", **zero, **facts}


def record(**changes: Any) -> bytes:  # noqa: ANN401 - fields of any type
    """Return a launch record's JSON."""
    receipt = {
        "schema": 1,
        "capture_id": ID,
        "conversation": "/elsewhere",
        "label": "name",
        "process": {"state": "running", "pid": 42, "kill_confirmed": None},
        "capture": {"state": "pending"},
        "streams": {"stdout": stream(), "stderr": stream()},
        "limitations": ["tree-by-group"],
        **changes.pop("receipt", {}),
    }
    return json.dumps({"owner": {"name": "x.owner", "pid": 1}, "kept": True, "receipt": receipt, **changes}).encode()


def launch(**changes: Any) -> LaunchRecord:  # noqa: ANN401 - fields of any type
    """Return a launch record."""
    parsed = LaunchRecord.parse(record(**changes))
    assert parsed is not None
    return parsed


def test_a_launch_record_names_owner_receipt_and_whether_a_completion_is_owed() -> None:
    """A record that does not say so owes none."""
    parsed = launch()
    assert (parsed.owner, parsed.kept) == ({"name": "x.owner", "pid": 1}, True)
    assert parsed.receipt is not None
    assert parsed.receipt.label == "name"
    assert not launch(kept="yes").kept
    without = json.loads(record())
    del without["kept"]
    other = LaunchRecord.parse(json.dumps(without).encode())
    assert other is not None
    assert not other.kept


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"null",
        b"{}",
        record()[:-1],
        record(owner=3),
        record(receipt={"schema": 2}),
        b"[" * 9999,
    ],
)
def test_a_record_that_cannot_be_read_is_as_good_as_none(data: bytes) -> None:
    """It is no evidence, and a crash of the machine may have torn it."""
    assert LaunchRecord.parse(data) is None


def test_a_live_capture_is_pending_with_its_committed_lengths_and_nothing_else() -> None:
    """The counts of its launch are not shown as those of now [A4, E2]."""
    receipt = live_receipt(SITE, launch(), {"stdout": LEFT, "stderr": None})
    assert (receipt.capture.state, receipt.conversation, receipt.label) == ("pending", "/there", "name")
    assert receipt.process is not None
    assert receipt.process.state == "running"
    facts, missing = receipt.streams["stdout"], receipt.streams["stderr"]
    assert facts is not None
    assert missing is not None
    assert (facts.state, facts.committed, facts.retained.end, facts.policy) == ("pending", 7, 7, "default/1")
    assert facts.raw.observed is facts.held is None
    assert facts.reference == f"tool-outputs/captures/{ID}/stdout.live"
    assert facts.path == f"/there/{facts.reference}"
    assert (missing.state, missing.committed) == ("pending", None)


def test_a_lost_capture_is_partial_its_process_unknown_and_what_it_was_stays_known() -> None:
    """Never complete, whatever is in the files; pid, label and limitations are those of the launch [D6]."""
    durability = Durability(barrier=True, directories=True)
    receipt = lost_receipt(SITE, launch(), {"stdout": LEFT}, durability=durability, limitations=("one", "one"))
    assert (receipt.capture.state, receipt.capture.reason) == ("failed", "supervisor-lost")
    assert receipt.process is not None
    assert receipt.process.model_dump(exclude_defaults=True) == {
        "state": "unknown",
        "reason": "status-lost",
        "pid": 42,
    }
    assert receipt.limitations == ("tree-by-group", "one")
    assert receipt.durability == durability
    facts, missing = receipt.streams["stdout"], receipt.streams["stderr"]
    assert facts is not None
    assert missing is not None
    assert (facts.state, facts.reason) == ("partial", "supervisor-lost")
    assert (facts.lines, facts.ends_with_newline, facts.sha256) == (1, False, "0" * 64)
    assert facts.retained.verified_end == 7
    assert (missing.state, missing.access, missing.path) == ("failed", "unavailable", None)
    assert Receipt.parse(receipt.to_json()) == receipt


def test_both_streams_make_it_partial_and_a_merged_one_stays_alone() -> None:
    """A stream that the launch knows not to exist is not made up."""
    both = lost_receipt(SITE, launch(), {"stdout": LEFT, "stderr": LEFT})
    assert both.capture.state == "partial"
    merged = lost_receipt(SITE, launch(receipt={"streams": {"stdout": stream(), "stderr": None}}), {"stdout": LEFT})
    assert (merged.streams["stderr"], merged.capture.state) == (None, "partial")


def test_without_a_launch_record_only_the_files_speak() -> None:
    """What it was of is unknown, and that is named; a capture without any file is partial all the same."""
    receipt = lost_receipt(SITE, None, {"stdout": LEFT})
    assert receipt.limitations == (NO_LAUNCH_RECORD,)
    assert (receipt.command, receipt.label, receipt.streams["stderr"]) == (None, None, None)
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert facts.policy is None
    nothing = lost_receipt(SITE, None, {})
    assert (nothing.capture.state, nothing.capture.reason) == ("partial", "supervisor-lost")
    live = live_receipt(SITE, launch(receipt={"process": None}), {})
    assert live.process is not None
    assert (live.process.state, live.process.reason) == ("unknown", None)
    assert lost_receipt(SITE, launch(receipt={"process": None}), {}).process is not None


def test_a_text_that_came_from_no_child_has_no_process() -> None:
    """Not even one that nobody saw the end of."""
    begun = launch(receipt={"process": None, "source": "browser", "upstream": "complete"})
    left = {"stdout": LEFT, "stderr": LEFT}
    live, lost = live_receipt(SITE, begun, {**left}), lost_receipt(SITE, begun, {**left})
    assert (live.process, live.capture.state) == (None, "pending")
    assert (lost.process, lost.capture.state, lost.source) == (None, "partial", "browser")


def test_a_capture_that_must_not_be_opened_is_unavailable() -> None:
    """Nothing is known of it, but why."""
    receipt = unusable_receipt(SITE, "not a directory")
    assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "unsafe-directory")
    assert receipt.limitations == ("not a directory",)


def test_a_receipt_has_the_paths_of_where_it_lies_now() -> None:
    """A conversation can be moved or copied; references stay as they are, and so does a receipt that is at home."""
    receipt = lost_receipt(SITE, launch(), {"stdout": LEFT})
    assert placed(receipt, SITE) is receipt
    moved = placed(receipt, Site("/new", SITE.reference, ID))
    facts, missing = moved.streams["stdout"], moved.streams["stderr"]
    assert facts is not None
    assert missing is not None
    assert moved.conversation == "/new"
    assert facts.path == f"/new/{facts.reference}"
    assert missing.path is None


def test_a_path_that_json_cannot_carry_is_none() -> None:
    """Such a receipt can be written; an escaped path would name another file [E7]."""
    site = Site("/\udcff", SITE.reference, ID)
    for receipt in (
        lost_receipt(site, launch(), {"stdout": LEFT}),
        placed(lost_receipt(SITE, launch(), {"stdout": LEFT}), site),
        lost_receipt(site, None, {"stdout": LEFT}),
    ):
        facts = receipt.streams["stdout"]
        assert facts is not None
        assert receipt.conversation is facts.path is None
        assert Receipt.parse(receipt.to_json()).capture_id == ID
    assert placed(lost_receipt(SITE, None, {}), Site("/ä\n", SITE.reference, ID)).conversation == "/ä\n"


def test_an_unsanitised_copy_is_told_of_as_far_as_it_is_there() -> None:
    """Found, it has its size; promised and gone, it is failed; and it moves with the conversation [B8]."""
    promised = stream(raw_copy={"sanitised": False, "reference": f"{SITE.reference}/stdout.raw.live"})
    begun = launch(receipt={"streams": {"stdout": promised, "stderr": promised}})
    left = replace(LEFT, raw=RawLeft("stdout.raw", 99))
    receipt = lost_receipt(SITE, begun, {"stdout": left, "stderr": LEFT})
    facts, other = receipt.streams["stdout"], receipt.streams["stderr"]
    assert facts is not None
    assert other is not None
    reference = f"{SITE.reference}/stdout.raw"
    assert facts.raw_copy == RawCopy(
        state="partial", reason="supervisor-lost", reference=reference, path=f"/there/{reference}", size=99
    )
    assert other.raw_copy == RawCopy(
        state="failed", reason="supervisor-lost", reference=f"{SITE.reference}/stdout.raw.live"
    )
    moved = placed(receipt, Site("/new", SITE.reference, ID)).streams["stdout"]
    assert moved is not None
    assert moved.raw_copy is not None
    assert moved.raw_copy.path == f"/new/{reference}"
    live = live_receipt(SITE, begun, {"stdout": left}).streams["stdout"]
    assert live is not None
    assert live.raw_copy is not None
    assert (live.raw_copy.state, live.raw_copy.reason, live.raw_copy.size) == ("pending", None, 99)
