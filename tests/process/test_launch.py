"""What is refused before anything is opened (contract F6)."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.process import Launch


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"argv": ()}, "empty"),
        ({"argv": ("echo", "s3cret\0")}, "argument 1 .*NUL"),
        ({"argv": ("echo",), "cwd": "s3cret\0"}, "directory .*NUL"),
        ({"argv": ("echo",), "env": {"A": "s3cret\0"}}, "variable A .*NUL"),
        ({"argv": ("echo",), "env": {"A\0": "s3cret"}}, "name .*NUL"),
        ({"argv": ("echo",), "env": {"A=": "s3cret"}}, "'='"),
        ({"argv": ("echo",), "env": {"": "s3cret"}}, "empty"),
        ({"argv": ("echo", "s3cret\ud800")}, "encoding"),
    ],
)
def test_impossible_launches_are_refused_without_quoting_them(options: dict[str, Any], words: str) -> None:
    """The word says which part; neither the message nor a chained error carries the text, which may be a secret."""
    with pytest.raises(ValueError, match=words) as caught:
        Launch(**options)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"argv": (b"s3cret",)}, "argument 0 must be a string"),
        ({"argv": ("echo",), "cwd": b"s3cret"}, "directory must be a string"),
        ({"argv": ("echo",), "env": {"A": None}}, "variable A must be a string"),
        ({"argv": ("echo",), "env": {b"s3cret": "1"}}, "name must be a string"),
    ],
)
def test_what_is_no_text_is_refused_in_words(options: dict[str, Any], words: str) -> None:
    """`bytes` for a path or None for a value is a slip that the message must explain, without quoting it."""
    with pytest.raises(TypeError, match=words) as caught:
        Launch(**options)
    assert "s3cret" not in str(caught.value)


def test_undecodable_bytes_pass_as_the_system_escapes_them() -> None:
    """A file name that is no UTF-8 arrives as a surrogate escape, and goes back to the same bytes."""
    assert Launch(("cat", "\udcff")).argv[1] == "\udcff"


def test_merged_launch_has_one_output() -> None:
    """Two pipes by default, one when merged."""
    assert Launch(("a",)).outputs == (1, 2)
    assert Launch(("a",), merge=True).outputs == (1,)
