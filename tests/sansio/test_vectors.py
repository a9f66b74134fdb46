"""The shared vectors hold in whole, for every cut into single bytes too."""

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


def sanitised(vector: dict[str, Any], chunks: list[bytes]) -> str:
    """Return what the vector's chunks become, quiet points between them included."""
    sanitizer = Sanitizer(NeedleSet.build(vector["secrets"]))
    text = b"".join(sanitizer.feed(chunk) + sanitizer.quiet() for chunk in chunks)
    return (text + (sanitizer.finish() if vector["end"] == "eof" else sanitizer.abort())).decode()


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_holds_as_given(name: str) -> None:
    """The chunks of the file give the expected text."""
    vector = VECTORS[name]
    assert sanitised(vector, [chunk.encode("latin-1") for chunk in vector["chunks"]]) == vector["expect"]


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_holds_bytewise_and_in_one(name: str) -> None:
    """So do single bytes, and one chunk (contract C1)."""
    vector = VECTORS[name]
    whole = "".join(vector["chunks"]).encode("latin-1")
    assert sanitised(vector, [bytes((byte,)) for byte in whole]) == vector["expect"]
    assert sanitised(vector, [whole]) == vector["expect"]
