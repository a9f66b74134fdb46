"""The words of a receipt's limitations, said to a person."""

from __future__ import annotations

import re

import pytest

from supervisor.sansio.limitations import SENTENCES, plain


@pytest.mark.parametrize("word", SENTENCES)
def test_a_word_is_said_as_a_sentence(word: str) -> None:
    """Without the word itself, which is for programs; they are joined by semicolons, so none begins or ends alone."""
    sentence = plain(word)
    assert word not in sentence
    assert " " in sentence
    assert sentence[0].islower()
    assert not re.search(r"[.;]$", sentence)


def test_what_is_a_sentence_already_stays_one() -> None:
    """A fault of the storage, or a word with a variable's name."""
    assert plain("secret-not-searched: PIN") == "secret-not-searched: PIN"
