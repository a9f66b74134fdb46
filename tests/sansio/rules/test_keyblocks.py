"""Private-key blocks: what opens one, what ends it, and how long it may be (contract C4, C5; RFC 7468, 1421)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from supervisor.sansio.rules import keyblocks

if TYPE_CHECKING:
    from collections.abc import Callable

CAP_BYTES = 1000
BEGIN = "-----BEGIN RSA " + "PRIVATE KEY-----"
END = "-----END RSA " + "PRIVATE KEY-----"
MARKER = "[REDACTED:private-key]"
LINE = "MIIEowIBAAKCAQEA0123456789abcdefABCDEF+/MIIEowIBAAKCAQEA01234567"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{BEGIN}\n{LINE}\n{LINE}\nqwerty==\n{END}\nx\n", f"{BEGIN}{MARKER}{END}\nx\n"),
        (f"{BEGIN}\n{LINE}\nall is good here\n", f"{BEGIN}{MARKER}\nall is good here\n"),
        (f"{BEGIN}\n{LINE}", f"{BEGIN}{MARKER}"),
        (f"{BEGIN}\n{LINE}\nab", f"{BEGIN}{MARKER}"),
        (f"{BEGIN}\n{LINE}\n", f"{BEGIN}{MARKER}\n"),
        (f"{BEGIN}\n{LINE}\n\n{LINE}\n", f"{BEGIN}{MARKER}\n\n{LINE}\n"),
        (f"{BEGIN}\n{LINE}----", f"{BEGIN}{MARKER}"),
        (f"{BEGIN}\n{LINE}\n{BEGIN}\n{LINE}\n{END}", f"{BEGIN}{MARKER}\n{BEGIN}{MARKER}{END}"),
        (f"{BEGIN}{LINE}{BEGIN} no", f"{BEGIN}{MARKER}{BEGIN} no"),
        (f'"{BEGIN}\\n{LINE}\\nabcd\\n{END}\\n", 1', f'"{BEGIN}{MARKER}{END}\\n", 1'),
        (f"> {BEGIN}\n> {LINE}\n> {LINE}\n> {END}\n> x", f"> {BEGIN}{MARKER}{END}\n> x"),
        (f"{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,01\n\n{LINE}\n\nbye", f"{BEGIN}{MARKER}\n\nbye"),
        (f"{BEGIN}\\nVersion: 1\\n\\n{LINE}\\n{END}", f"{BEGIN}{MARKER}{END}"),
        (f"{BEGIN}\nAuthenticationTypeX: 4\n\n{LINE}\n{END}", f"{BEGIN}{MARKER}{END}"),
        (f"{BEGIN}\n{LINE}\nComment: x\n{LINE}\n{END}", f"{BEGIN}{MARKER}{END}"),
        (f"{BEGIN} in a file, it says {END}", f"{BEGIN} in a file, it says {END}"),
        (f"{BEGIN}\nMIIEvQIBADANBgk\n", f"{BEGIN}\nMIIEvQIBADANBgk\n"),
        (f"{BEGIN}\nProc-Type: {'x' * 200}\n\n{LINE}\n", f"{BEGIN}\nProc-Type: {'x' * 200}\n\n{LINE}\n"),
        (f"{BEGIN}{chr(10) * 70}{LINE}", f"{BEGIN}{chr(10) * 70}{LINE}"),
        (f"{BEGIN}", f"{BEGIN}"),
        (f"{BEGIN}\\", f"{BEGIN}\\"),
    ],
)
def test_what_a_block_is(text: str, shown: str, redacted: Callable[..., str]) -> None:
    """Complete, cut, quoted, prefixed, with headers; and what is a mention."""
    assert redacted(text) == shown


def test_a_begin_line_is_committed_and_its_body_is_not(redacted: Callable[..., str]) -> None:
    """Undecided as long as too little of the body has come (contract C3, C7)."""
    assert redacted(f"{BEGIN}\n", end="abort") == f"{BEGIN}[REDACTED:undecided]"
    assert redacted(f"{BEGIN}\n{LINE[:15]}", end="abort") == f"{BEGIN}[REDACTED:undecided]"
    assert redacted(f"{BEGIN}\n{LINE}\nsome", end="abort") == f"{BEGIN}{MARKER}"


@pytest.fixture
def low_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cap that a test reaches byte by byte."""
    monkeypatch.setattr(keyblocks, "CAP_BYTES", CAP_BYTES)


@pytest.mark.usefixtures("low_cap")
@pytest.mark.parametrize("line_end", ["", "\n", "\\n"])
def test_past_the_cap_a_body_lasts_as_long_as_it_is_base64(line_end: str, redacted: Callable[..., str]) -> None:
    """On one physical line what is not ends it; what is goes on being dropped."""
    body = (LINE + line_end) * (CAP_BYTES // len(LINE) + 50)
    text = f"{BEGIN}\n{body}, then {body}"
    assert redacted(text) == f"{BEGIN}{MARKER}" + (f", then {body}")
    spaced = f"{BEGIN}\n{LINE} {'a b ' * (CAP_BYTES // 4)}密 end"
    shown = redacted(spaced)
    assert shown.startswith(f"{BEGIN}{MARKER}")
    assert 0 < len(shown) < 200


@pytest.mark.usefixtures("low_cap")
@pytest.mark.parametrize("offset", range(-12, 4))
def test_an_end_at_the_cap_is_seen_the_same_for_every_cut(offset: int, redacted: Callable[..., str]) -> None:
    """Whichever of the two comes first."""
    fill = "-" * 3 + "x "
    length = CAP_BYTES + offset - 1 - len(LINE)
    text = f"{BEGIN}\n{LINE}{(fill * length)[:length]}{END} tail"
    assert redacted(text).startswith(f"{BEGIN}{MARKER}")
    assert redacted(text).endswith("tail")
