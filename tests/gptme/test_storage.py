"""`save_large_output`: the same answer, another way of writing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("gptme", reason="gptme is not installed")

from adapters.gptme import names, storage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

SECRET = "q7Zr-secret-of-the-test-91"


def save(*arguments: object, **options: object) -> tuple[str, Path]:
    """Call gptme's name."""
    answer: tuple[str, Path] = importlib.import_module(names.STORAGE).save_large_output(*arguments, **options)
    return answer


@pytest.mark.parametrize("module", names.SAVERS)
def test_everybody_who_saves_has_it(background: ModuleType, module: str) -> None:
    """The tools have the name by value."""
    assert background
    assert importlib.import_module(module).save_large_output.__module__ == "adapters.gptme.storage"


def test_the_answer_is_gptmes(background: ModuleType, conversation: Path, no_secret: Callable[[Path], None]) -> None:
    """Summary and path; the text is whole, private and masked."""
    assert background
    summary, path = save(f"a\n{SECRET}\nz\n", conversation, "shell", "Command: make", 12_345)
    assert summary.splitlines() == [
        "[Large shell output saved]",
        "Command: Command: make",
        "Original: 12345 tokens",
        f"Full output: {path}",
    ]
    assert path.is_relative_to(conversation / "tool-outputs")
    assert path.read_text() == "a\n[REDACTED:MY_API_TOKEN]\nz\n"
    no_secret(conversation)


def test_equal_outputs_are_two_files(background: ModuleType, conversation: Path) -> None:
    """The one of gptme would write the second one over the first."""
    assert background
    assert save("same", conversation)[1] != save("same", conversation)[1]


@pytest.mark.parametrize("kind", ["../x", "/etc", "process", "", "Ünïcode", "a" * 100, "9lives"])
def test_a_kind_is_never_part_of_a_path(background: ModuleType, conversation: Path, kind: str) -> None:
    """The one of gptme would leave the directory with it."""
    assert background
    _, path = save("text", conversation, kind)
    assert path.is_relative_to(conversation / "tool-outputs")
    assert path.read_text() == "text"


def test_text_that_is_none_is_saved(background: ModuleType, conversation: Path) -> None:
    """A lone surrogate, of a JSON string for one, is no character."""
    assert background
    _, path = save("a\udc80b", conversation)
    assert path.read_text().replace("\ufffd", "") == "ab"


def test_what_cannot_be_saved_is_not_removed(background: ModuleType, conversation: Path) -> None:
    """Whoever would replace the text by the path is told by an error, as without the plug-in."""
    assert background
    conversation.chmod(0o777)
    with pytest.raises(OSError, match="unsafe-directory"):
        save("text", conversation)
    summary = importlib.import_module(names.STORAGE).create_tool_result_summary
    with pytest.raises(OSError, match="unsafe-directory"):
        summary("line\n" * 20, 50, conversation, "shell")
    assert list(conversation.iterdir()) == []


def test_a_result_is_not_lost_with_the_disk(background: ModuleType, conversation: Path) -> None:
    """A shortened result says that the rest was not saved, and no path is made up."""
    assert background
    shell = importlib.import_module(names.SHELL)
    text = "\n".join(map(str, range(100)))
    conversation.chmod(0o777)
    shown = shell._shorten_stdout(text, pre_lines=5, post_lines=5, logdir=conversation, cmd="seq 99")
    assert shown.startswith("0\n1\n")
    assert shown.endswith("\n98\n99")
    assert "not saved (unsafe-directory)" in shown
    conversation.chmod(0o700)
    shown = shell._shorten_stdout(text, pre_lines=5, post_lines=5, logdir=conversation, cmd="seq 99")
    (saved,) = (conversation / "tool-outputs/captures").glob("*/stdout.log")
    assert str(saved) in shown


def test_a_directory_is_made_as_gptme_makes_it(background: ModuleType, conversation: Path) -> None:
    """A conversation may save before its directory is there; a file in its place is an error."""
    assert background
    _, path = save("text", conversation / "new" / "one")
    assert path.read_text() == "text"
    (conversation / "file").touch()
    with pytest.raises(OSError, match="could not be saved"):
        save("text", conversation / "file")


def test_a_symlink_is_not_followed(background: ModuleType, conversation: Path, tmp_path: Path) -> None:
    """The one of gptme would write where it leads."""
    assert background
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (conversation / "tool-outputs").symlink_to(elsewhere)
    with pytest.raises(OSError, match="unsafe-directory"):
        save("text", conversation)
    assert list(elsewhere.iterdir()) == []


def test_the_summary_of_a_removed_result_names_the_file(background: ModuleType, conversation: Path) -> None:
    """The compaction goes the same way."""
    assert background
    text = importlib.import_module(names.STORAGE).create_tool_result_summary("line\n" * 20, 50, conversation, "shell")
    (path,) = [word for word in text.split() if "tool-outputs" in word]
    assert importlib.import_module("pathlib").Path(path).read_text() == "line\n" * 20


def test_a_disk_that_does_not_answer_is_given_up(
    background: ModuleType, conversation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool's result does not wait for it for ever."""
    assert background

    def late(*_: object) -> object:
        raise TimeoutError

    monkeypatch.setattr(storage, "call", late)
    with pytest.raises(OSError, match="disk does not answer"):
        save("text", conversation)
