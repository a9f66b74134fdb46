"""Reports of known values that are missed in another form, or that mask what is no secret (C5, C6)."""

from __future__ import annotations

import base64
import json
import math
import shlex
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pytest

from supervisor.sansio.needles import NeedleSet, credential_values

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER: Final = "[REDACTED:key]"
BODY: Final = [f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAA{number:02d}x" for number in range(12)]
KEY: Final = "\n".join(["-----BEGIN OPENSSH " + "PRIVATE KEY-----", *BODY, "-----END OPENSSH " + "PRIVATE KEY-----\n"])


def test_red_003_a_key_of_many_lines_is_one_marker(masked: Callable[..., str]) -> None:
    """RED-003 (buildkite/agent#2062): a redactor by lines cannot match a value with line ends (C5)."""
    assert masked({"key": KEY}, f"+ echo\n{KEY}done\n") == f"+ echo\n{MARKER}\ndone\n"


def test_red_004_a_terminals_line_ends_hide_nothing(masked: Callable[..., str]) -> None:
    r"""RED-004 (buildkite/agent f7e923c57 (2024-10)): printed through a PTY it has \r\n (C1)."""
    secret = "first-half\nsecond-half"
    assert masked({"key": secret}, "<first-half\r\nsecond-half>\r\n") == f"<{MARKER}>\n"
    assert masked({"key": secret.replace("\n", "\r\n")}, f"<{secret}>") == f"<{MARKER}>"


@pytest.mark.parametrize("secrets", [{"a": "hunter2sec", "b": "secret9-"}, {"b": "secret9-", "a": "hunter2sec"}])
def test_red_015_overlaps_are_united(masked: Callable[..., str], secrets: dict[str, str]) -> None:
    """RED-015 (gitlab-runner masker.go HEAD d79f3e7b (overlap)): the first mask destroys the second match (C6)."""
    assert masked(secrets, "<hunter2secret9->") == "<[REDACTED:a]>"


@pytest.mark.parametrize("prefix", ["", "    ", "> ", "key: |  ", "+ ", "12: "])
def test_red_018_each_line_of_a_value_is_known(masked: Callable[..., str], prefix: str) -> None:
    """RED-018 (actions/runner#161): a multi-line value never matches where output goes line by line (C5)."""
    secret = "first-line-of-it\nsecond-line-of-it"
    lines = "".join(f"{prefix}{line}\n" for line in secret.split("\n"))
    assert masked({"key": secret}, lines) == (f"{prefix}{MARKER}\n" * 2 if prefix else f"{MARKER}\n")


def test_red_019_braces_of_a_value_mask_nothing(masked: Callable[..., str]) -> None:
    """RED-019 (actions/runner#326): "{" and "}" become secrets, short base64 forms mask every "e" and "f" (C5)."""
    text = "{\n}\nif (e) { f(e); }\newogfQ\n"
    assert masked({"key": "{\n}"}, text) == text
    assert masked({"key": '{\n  "id": "long-enough-id"\n}'}, text) == text
    assert masked({"key": '{\n  "id": "long-enough-id"\n}'}, '["id": "long-enough-id"]') == f"[{MARKER}]"


@pytest.mark.parametrize("before", ["", "x", "xy", "user:"])
@pytest.mark.parametrize("after", ["", "\n", "xy"])
def test_red_020_base64_of_more_than_the_value_is_known(masked: Callable[..., str], before: str, after: str) -> None:
    """RED-020 (actions/runner#291): base64 of a value and what follows it differs from the value's own (C5)."""
    secret = "s3cret-pass+word"
    encoded = base64.b64encode(f"{before}{secret}{after}".encode()).decode()
    text = masked({"key": secret}, encoded)
    assert text.count(MARKER) == 1
    head, tail = text.split(MARKER)
    assert encoded.startswith(head)
    assert encoded.endswith(tail)
    # What stays has the neighbours' own characters, one at each side that they share with the value, and the padding.
    assert len(head) <= math.ceil(len(before) * 8 / 6) + 1
    assert len(tail) <= math.ceil(len(after) * 8 / 6) + 1 + 2


@pytest.mark.parametrize("layout", [{"indent": 2}, {"indent": "\t", "sort_keys": True}, {"separators": (",", ":")}, {}])
@pytest.mark.parametrize("given", [{}, {"indent": 4}])
def test_red_021_a_json_value_is_known_in_another_layout(
    masked: Callable[..., str], given: dict[str, Any], layout: dict[str, Any]
) -> None:
    """RED-021 (actions/runner#1488, #2232): pretty-printed, only its braces are masked, all values readable (C5)."""
    document = {"id": 123, "password": "foobar", "inner": {'pass "phrase"': "grün/9"}, "enabled": True}
    text = masked({"key": json.dumps(document, **given)}, json.dumps(document, **layout))
    assert not any(value in text for value in ("foobar", "gr"))
    assert MARKER in text


def test_red_022_a_percent_sign_is_known_as_it_is_and_encoded(masked: Callable[..., str]) -> None:
    """RED-022 (actions/runner#2960): the mask is registered unescaped, and the text is still escaped (C5)."""
    secret = "aa%25bb/cc%0Add"
    assert masked({"key": secret}, f"{secret} {quote(secret, safe='')} {quote(secret)}") == " ".join([MARKER] * 3)
    assert masked({"key": secret}, quote(secret, safe="").replace("%2F", "%2f")) == MARKER


def test_red_024_a_line_end_after_a_value_is_no_fragment(masked: Callable[..., str]) -> None:
    """RED-024 (concourse/concourse#4656): an empty fragment puts a mask between all characters (C5)."""
    assert masked({"key": "key\n"}, "keys and locks\n") == "keys and locks\n"
    assert masked({"key": "opaque-key\n\n"}, "<opaque-key> and locks\n\n") == f"<{MARKER}> and locks\n\n"


def test_red_026_lines_of_a_key_are_known(masked: Callable[..., str]) -> None:
    """RED-026 (woodpecker-ci/woodpecker#388): a multi-line secret is printed in clear (C5)."""
    quoted = "".join(f"  | {line}\n" for line in BODY)  # behind a BEGIN line they would be known by their form
    text = masked({"key": KEY}, f"{quoted}done\n")
    assert not any(line in text for line in BODY)
    assert text.count(f"  | {MARKER}\n") == len(BODY)
    assert masked({"key": KEY}, "mentions -----BEGIN OPENSSH\n") == "mentions -----BEGIN OPENSSH\n"


def test_red_027_short_lines_of_a_value_mask_nothing(masked: Callable[..., str]) -> None:
    """RED-027 (woodpecker-ci/woodpecker#7103): the minimum is checked before the split into lines (C5)."""
    text = '[{vsn,"0.12.1"}]\n{ ] "foo": [\n'
    assert masked({"key": '{\n"foo": [\n"a-long-enough-line"\n]\n}'}, text) == text


@pytest.mark.parametrize("secret", ["it's-foo'bar", "foo'bar'baz"])
def test_red_030_a_shells_trace_is_known(masked: Callable[..., str], secret: str) -> None:
    """RED-030 (jenkinsci/credentials-binding-plugin#59 (JENKINS-42950)): `bash -x` quotes it another way (C5)."""
    bash = "'" + secret.replace("'", "'\\''") + "'"
    assert masked({"key": secret}, f"+ echo {bash} {shlex.quote(secret)}\n") == f"+ echo '{MARKER}' '{MARKER}'\n"


@pytest.mark.parametrize("value", ["a", "", "ab", "1234567", "\n", "00000000", "changeme"])
def test_red_031_a_value_too_short_or_common_is_refused_by_name(masked: Callable[..., str], value: str) -> None:
    """RED-031 (jenkinsci/credentials-binding-plugin#284 (JENKINS-72412)): its empty base64 form masks all (C5)."""
    text = "a bit of 1234567 changeme text, 00000000 aaaa YQ== MTIzNDU2Nw==\n"
    needles = NeedleSet.build({"key": value})
    assert needles.values == ()
    assert [refusal.partition(":")[0] for refusal in needles.refused] == ["key"]
    assert masked({"key": value}, text) == text


def test_red_032_a_doubled_dollar_is_known(masked: Callable[..., str]) -> None:
    """RED-032 (jenkinsci/credentials-binding-plugin SECURITY-1835 (77681e0)): `$` printed as `$$` is missed (C5)."""
    assert masked({"key": "pa$$word$9"}, "a=pa$$$$word$$9 b=pa$$word$9") == f"a={MARKER} b={MARKER}"


def test_red_055_what_a_removed_nul_joins_is_masked(masked: Callable[..., str]) -> None:
    """RED-055 (trufflesecurity/trufflehog#3223): removing bytes makes one match of two strings: the cheap side (C1)."""
    assert masked({"key": "left-part-right-part"}, b"<left-part-\0right-part>") == f"<{MARKER}>"
    assert masked({"key": "left-part-right-part"}, b"<left-part-\x1b[1m\0\x07right-part>") == f"<{MARKER}>"


def test_red_010_plural_names_count_and_short_values_are_named() -> None:
    """RED-010 (buildkite/agent#3588): FAKE_SECRETS is not matched by *_SECRET, short values go in silence (C5)."""
    environment = {"FAKE_SECRETS": "this-must-not-leak", "API_TOKENS": "short", "PATH": "/usr/bin:/bin:/sbin"}
    values = credential_values(environment)
    assert set(values) == {"FAKE_SECRETS", "API_TOKENS"}
    needles = NeedleSet.build(values)
    assert b"this-must-not-leak" in needles.values
    assert needles.refused == ("API_TOKENS: shorter than 8 characters",)
    assert "short" not in needles.refused[0].removesuffix("shorter than 8 characters")
