"""Durations, sizes and exit codes: the tables of the command line, each by itself."""

from __future__ import annotations

import errno
import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor import SpawnError
from supervisor.cli.codes import code_of_receipt, code_of_spawn_error
from supervisor.cli.messages import message, one_line
from supervisor.cli.quantities import DURATION_UNITS, SIZE_UNITS, byte_count, seconds, size_text
from supervisor.sansio.receipt import Receipt

if TYPE_CHECKING:
    from supervisor.errors import SpawnFault

DURATIONS = {
    "90": 90.0,
    "90s": 90.0,
    "1.5s": 1.5,
    ".5": 0.5,
    "500ms": 0.5,
    "10m": 600.0,
    "1h": 3600.0,
    "2d": 172800.0,
    "1 h": 3600.0,
    "inf": math.inf,
    "0": 0.0,
}
SIZES = {
    "1000": 1000,
    "1B": 1,
    "1KiB": 1024,
    "32MiB": 32 * 2**20,
    "1.5gib": 3 * 2**29,
    "1TiB": 2**40,
    "1kB": 1000,
    "1MB": 10**6,
    "2GB": 2 * 10**9,
    "inf": math.inf,
    "0.5": 0,
}
NOTHING = ["", " ", "-1", "+1", "nan", "1e3", "s", "1 2", "1..5", "0x10", "١٢", "1 000", "--", "1\n2"]


@pytest.mark.parametrize(("text", "expected"), DURATIONS.items())
def test_durations_are_read(text: str, expected: float) -> None:
    """Plain numbers are seconds."""
    assert seconds(text) == expected


@pytest.mark.parametrize(("text", "expected"), SIZES.items())
def test_sizes_are_read(text: str, expected: float) -> None:
    """Plain numbers are bytes; a part of a byte is none; binary and decimal units differ."""
    assert byte_count(text) == expected


@pytest.mark.parametrize("text", [*NOTHING, "1KiB", "1M", "1hour"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """With examples of what is one."""
    with pytest.raises(ValueError, match="is not a duration like 90"):
        seconds(text)


@pytest.mark.parametrize("text", [*NOTHING, "1s", "1K", "1M", "1G", "1bytes"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """Units whose meaning programs do not agree on included."""
    with pytest.raises(ValueError, match="is not a size like 1000000"):
        byte_count(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never a negative number or NaN, and no other exception."""
    for parse in (seconds, byte_count):
        try:
            value = parse(text)
        except ValueError:
            continue
        assert value >= 0


@given(st.integers(0, 10**6), st.sampled_from(sorted(DURATION_UNITS)))
def test_every_unit_of_time_is_its_number_of_seconds(count: int, unit: str) -> None:
    """Written directly after its number or apart from it."""
    assert seconds(f"{count}{unit}") == seconds(f"{count} {unit}") == count * DURATION_UNITS[unit]


@given(st.integers(0, 2**50) | st.integers(0, 1000).map(lambda count: count * 2**20))
def test_a_size_is_said_so_that_it_can_be_given_again(count: int) -> None:
    """No rounding: what a message names is what an option takes."""
    assert byte_count(size_text(count).replace(" bytes", "")) == count


def test_a_size_is_said_in_the_largest_exact_unit() -> None:
    """As a person would write it."""
    said = [size_text(count) for count in (128 * 2**20, 2**30, 1536, 1023, 8192, math.inf)]
    assert said == ["128MiB", "1GiB", "1536 bytes", "1023 bytes", "8KiB", "inf"]
    assert len(SIZE_UNITS) == 10


def receipt_of(**process: object) -> Receipt:
    """Return a receipt with these facts of its process."""
    facts = {"schema": 1, "capture_id": "x", "capture": {"state": "complete"}, "streams": {}, "process": process}
    return Receipt.model_validate(facts)


@pytest.mark.parametrize(
    ("process", "interruption", "code"),
    [
        ({"state": "exited", "code": 0}, None, 0),
        ({"state": "exited", "code": 255}, None, 255),
        ({"state": "exited", "signal": 9}, None, 137),
        ({"state": "exited", "code": 5}, 2, 5),
        ({"state": "timeout", "code": 0, "reason": "time-limit"}, None, 124),
        ({"state": "timeout", "signal": 15, "reason": "idle-limit"}, 2, 124),
        ({"state": "cancelled", "code": 0, "reason": "caller"}, 2, 130),
        ({"state": "cancelled", "signal": 15, "reason": "supervisor-shutdown"}, 15, 143),
        ({"state": "cancelled", "signal": 9, "reason": "supervisor-shutdown"}, 1, 129),
        ({"state": "cancelled", "signal": 9, "reason": "memory"}, None, 137),
        ({"state": "unknown", "reason": "status-lost"}, None, 125),
    ],
)
def test_exit_codes(process: dict[str, object], interruption: int | None, code: int) -> None:
    """Each state of a process has one code; a signal that came after the end by itself changes nothing."""
    assert code_of_receipt(receipt_of(**process), interruption) == code


@pytest.mark.parametrize(
    ("fault", "number", "code"),
    [
        ("program", errno.ENOENT, 127),
        ("program", errno.EACCES, 127),
        ("interpreter", errno.ENOENT, 127),
        ("interpreter", errno.EACCES, 126),
        ("permission", errno.EACCES, 126),
        ("format", errno.ENOEXEC, 126),
        ("arguments", errno.E2BIG, 126),
        ("resources", errno.EMFILE, 126),
        ("other", None, 126),
    ],
)
def test_exit_codes_of_what_did_not_start(fault: SpawnFault, number: int | None, code: int) -> None:
    """127 for what is not there, 126 for everything else."""
    assert code_of_spawn_error(SpawnError("text", errno=number, fault=fault)) == code


@given(st.text())
def test_a_message_is_one_line_of_utf_8(text: str) -> None:
    """Whatever a user typed, or a file is called."""
    said = message(text)
    assert said.startswith(b"spoolvisor: ")
    assert len(said.decode().splitlines()) == 1
    assert said.endswith(b"\n")
    assert said[:-1].decode().isprintable()


def test_a_message_hides_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the environment's names and by the user's [C8]."""
    monkeypatch.setenv("API_TOKEN", "tok-3141592653")
    said = one_line("tok-3141592653 and other-secret-value", {"PIN": "other-secret-value"})
    assert said == "[REDACTED:API_TOKEN] and [REDACTED:PIN]"
