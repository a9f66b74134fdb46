"""Headers and addresses (contract C5; RFC 3986, 6750, 9110)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from supervisor.sansio.rules.spellings import LONGEST_PASSWORD

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = "p" * LONGEST_PASSWORD


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:s3cr3t@host/p", "https://user:[REDACTED:url-password]@host/p"),
        ("redis://:s3cr3t@host", "redis://:[REDACTED:url-password]@host"),
        ("https://u:p@ss@host/", "https://u:[REDACTED:url-password]@host/"),
        ("https://u:密码口令@host/", "https://u:[REDACTED:url-password]@host/"),
        ("https://u:@host/", "https://u:@host/"),
        ("https://u:pass@host/", "https://u:pass@host/"),
        ("https://u:<password>@host/", "https://u:<password>@host/"),
        ("https://u:$PASS@host/", "https://u:$PASS@host/"),
        ("https://host:8080 a@b", "https://host:8080 a@b"),
        ("https://host:8080", "https://host:8080"),
        (f"x://u:{LONG[1:]}@host/", "x://u:[REDACTED:url-password]@host/"),
        (f"x://u:{LONG[1:]}/", f"x://u:{LONG[1:]}/"),
        (f"x://u:{LONG}@host/", "x://u:[REDACTED:url-password]/"),
        (f"x://u:s3cr3t@{LONG}/", f"x://u:[REDACTED:url-password]@{LONG}/"),
        (f"x://u:{LONG}", "x://u:[REDACTED:url-password]"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [REDACTED:authorization]"),
        ("'authorization': 'Basic dXNlcjpwYXNz', x", "'authorization': '[REDACTED:quoted-assignment]', x"),
        ("Authorization: Token abcdefgh", "Authorization: Token [REDACTED:authorization]"),
        ("curl -H 'Authorization: Bearer abcd'", "curl -H 'Authorization: Bearer [REDACTED:authorization]'"),
        ("Proxy-Authorization: Basic dXNlcg==", "Proxy-Authorization: Basic [REDACTED:authorization]"),
        ("got bearer abcdefghijklmno1.", "got bearer [REDACTED:bearer]"),
        ("got bearer abcdefghijklmnopq.", "got bearer abcdefghijklmnopq."),
        ("forbearer abcdefghijklmno1", "forbearer abcdefghijklmno1"),
        ("Authorization: Bearer ", "Authorization: Bearer "),
    ],
)
def test_headers_and_addresses(text: str, shown: str, redacted: Callable[..., str]) -> None:
    """What goes and what stays."""
    assert redacted(text) == shown


def test_a_header_is_visible_before_its_value(redacted: Callable[..., str]) -> None:
    """Only the value is held (contract C3)."""
    assert redacted("Authorization: Bearer abc", end="abort") == "Authorization: Bearer [REDACTED:undecided]"
    assert redacted("https://user:s3", end="abort") == "https://user:[REDACTED:undecided]"
