"""The shared vectors: what needs only escapes and known values holds in whole, for every cut into single bytes too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer

FILE: Final = Path(__file__).parent.parent / "cases" / "sanitizer-vectors.jsonl"
VECTORS: Final[dict[str, dict[str, Any]]] = {
    vector["id"]: vector for vector in map(json.loads, FILE.read_text("utf-8").splitlines())
}
BY_VALUE: Final = (
    "ansi-osc",
    "enc-base64-shift",
    "enc-json",
    "enc-shell",
    "enc-url",
    "fp-code",
    "lit-adjacent",
    "lit-overlap",
    "lit-restart",
    "lit-split",
    "lit-whole",
    "long-secret-pieces",
    "ml-crlf",
    "ml-json-braces",
    "ml-reflow",
    "pem-mention",
    "utf8-split",
)
BY_FORM: Final = (
    "abort-pending",
    "ansi-glued",
    "ansi-inside",
    "aws-id",
    "bearer-split",
    "invalid-utf8-in-value",
    "jwt-split",
    "pem-diff",
    "pem-encrypted-no-end",
    "pem-end-split",
    "pem-json",
    "pem-no-end",
    "quote-escape-cut",
)
"""They need the rule pack: secrets that are found by their form alone (contract C5)."""


def sanitised(vector: dict[str, Any], chunks: list[bytes]) -> str:
    """Return what the vector's chunks become, quiet points between them included."""
    sanitizer = Sanitizer(NeedleSet.build(vector["secrets"]))
    text = b"".join(sanitizer.feed(chunk) + sanitizer.quiet() for chunk in chunks)
    assert vector["end"] == "eof"
    return (text + sanitizer.finish()).decode()


@pytest.mark.parametrize("name", BY_VALUE)
def test_a_vector_holds_as_given(name: str) -> None:
    """The chunks of the file give the expected text."""
    vector = VECTORS[name]
    assert sanitised(vector, [chunk.encode("latin-1") for chunk in vector["chunks"]]) == vector["expect"]


@pytest.mark.parametrize("name", BY_VALUE)
def test_a_vector_holds_bytewise_and_in_one(name: str) -> None:
    """So do single bytes, and one chunk (contract C1)."""
    vector = VECTORS[name]
    whole = "".join(vector["chunks"]).encode("latin-1")
    assert sanitised(vector, [bytes((byte,)) for byte in whole]) == vector["expect"]
    assert sanitised(vector, [whole]) == vector["expect"]


def test_no_vector_is_left_out() -> None:
    """What is run and what waits for the rules are the whole file, and share nothing."""
    assert sorted(BY_VALUE + BY_FORM) == sorted(VECTORS)
