"""Each encoding gives what the program that it imitates writes (facts part 4)."""

from __future__ import annotations

import base64
import json
import shlex
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.encodings import encoded_forms, json_pairs, raw_bytes

VALUE = "p@ss w0rd/9&<é>'\"\\$`~\t"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=24)


@given(TEXTS)
def test_what_the_standard_library_writes_is_among_the_forms(value: str) -> None:
    """Quoting functions of the library, their quotes taken off."""
    forms = encoded_forms(value.encode())
    for written in (
        value,
        urllib.parse.quote(value),
        urllib.parse.quote(value, safe=""),
        urllib.parse.quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        repr("'\"" + value)[len("'\\'\"") : -1],
        repr(value.encode())[2:-1],
        value.encode().hex(),
        value.encode().hex().upper(),
    ):
        assert written.encode() in forms, written
    quoted = shlex.quote(value)
    assert (quoted[1:-1] if quoted != value else value).encode() in forms


@given(TEXTS.map(str.encode), st.binary(max_size=7), st.binary(max_size=7))
def test_base64_of_a_longer_text_contains_one_of_the_forms(value: bytes, before: bytes, after: bytes) -> None:
    """Whatever stands around the value, in both alphabets; at most five characters of it are not determined."""
    forms = encoded_forms(value)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(before + value + after)
        assert any(form in whole for form in forms if len(form) >= len(value) * 4 // 3 - 3)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("it's-a-secret", r"it'\''s-a-secret"),
        ("it's-a-secret", r"it\'s-a-secret"),
        ('a b$c`d"e\\f', r"a b\$c\`d\"e\\f"),
        ('a b$c`d"e\\f', r"a\ b\$c\`d\"e\\f"),
        ("one\ntwo\x1b'\x01", r"one\ntwo\E\'\001"),
        ("a/b+c=d&e", r"a\/b+c=d&e"),
        ("a/b+c=d&e", r"a/b+c=d\u0026e"),
        ("a/b+c=d&e", "a%2fb%2bc%3dd%26e"),
        ("a(b)*c!'d/", "a(b)*c!'d%2F"),
        ("cost$9$", "cost$$9$$"),
    ],
)
def test_what_other_programs_write_is_among_the_forms(value: str, written: str) -> None:
    """Bash's traces, `declare -p` and `%q`; PHP's and Go's JSON; lower-case percent; `encodeURIComponent`."""
    assert written.encode() in encoded_forms(value.encode())


def test_pairs_of_a_json_document_are_its_texts_with_their_names() -> None:
    """At any depth, with the space and without; a character as itself and escaped; no numbers, words or names."""
    pairs = json_pairs('{"n": 1, "a": "é", "b": {"on": true, "c": ["d", 2]}, "e": null}'.encode())
    assert pairs == [rb'"a": "\u00e9"', b'"d"', '"a": "é"'.encode(), rb'"a":"\u00e9"', '"a":"é"'.encode()]


@pytest.mark.parametrize("value", [b"", b"plain", b'"text"', b"{", b'{"a": 1}', b"[" * 16384, b'{"a": \xff}', b"[]"])
def test_what_is_no_json_document_with_a_text_has_no_pairs(value: bytes) -> None:
    """However deep and broken it is."""
    assert json_pairs(value) == []


def test_a_plain_value_has_few_forms() -> None:
    """Where every textual encoding is the value itself only hex and base64 are added, and nothing twice."""
    assert encoded_forms(b"plain-value_1")[0] == b"plain-value_1"
    assert len(encoded_forms(b"plain-value_1")) == 6
    forms = encoded_forms(VALUE.encode())
    assert len(forms) == len(set(forms))
    assert forms[0] == VALUE.encode()


@pytest.mark.parametrize(
    ("given", "raw"),
    [(b"\xff", b"\xff"), ("\udcff", b"\xff"), ("é", b"\xc3\xa9"), ("\ud800", b"\xed\xa0\x80")],
)
def test_a_string_is_the_bytes_that_the_system_handed_over(given: str | bytes, raw: bytes) -> None:
    """PEP 383 for what came from the environment; no surrogate raises."""
    assert raw_bytes(given) == raw


def test_a_value_that_is_not_utf8_has_forms() -> None:
    """No encoding raises, and Python's own literal is among them."""
    assert rb"caf\xe9/caf\xe9" in encoded_forms(b"caf\xe9/caf\xe9")
