"""What a caller may ask for: refused at once, and by the argument's name alone (contract A5, F7; design, "Errors")."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

from supervisor.request import PIPE, Options, OptionsDict, checked, conversation_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SECRET = "hunter2-hunter2"


async def chunks() -> AsyncIterator[bytes]:
    """A source of stdin that nobody reads here."""
    yield b"text"


def test_a_list_is_passed_unchanged() -> None:
    """Paths become strings; nothing is appended, split or expanded (A5)."""
    request = checked(["ls", "-l", "a b", "$HOME", PurePosixPath("/x"), ""], Options())
    assert request.launch.argv == ("ls", "-l", "a b", "$HOME", "/x", "")
    assert request.shown_command == request.launch.argv
    assert checked(("ls",), Options()).launch.argv == ("ls",)


@pytest.mark.parametrize(("found", "shell"), [("/opt/bash", "/opt/bash"), (None, "/bin/sh")])
def test_a_shell_command_is_one_untouched_argument(
    monkeypatch: pytest.MonkeyPatch, found: str | None, shell: str
) -> None:
    """By bash, or by sh where there is none; the caller sees the text that was given."""
    monkeypatch.setattr(shutil, "which", {"bash": found}.__getitem__)
    command = "  echo 'a  b' | cat\n"
    request = checked(command, Options(shell=True))
    assert request.launch.argv == (shell, "-c", command)
    assert request.shown_command == (command,)


@pytest.mark.parametrize(
    ("command", "shell", "error", "text"),
    [
        ("ls -l", False, TypeError, "needs shell=True"),
        (["ls"], True, TypeError, "never goes through a shell"),
        (" \n", True, ValueError, "is empty"),
        ([], False, ValueError, "is empty"),
        (b"ls", False, TypeError, "a list"),
        (bytearray(b"ls"), False, TypeError, "a list"),
        ({"ls"}, False, TypeError, "a list"),
        (5, False, TypeError, "a list"),
        (["ls", 5], False, TypeError, None),
        (["ls", b"x"], False, TypeError, None),
        (["ls", "a\0b"], False, ValueError, "NUL"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(
    command: Any,  # noqa: ANN401 -- wrong on purpose
    *,
    shell: bool,
    error: type[Exception],
    text: str | None,
) -> None:
    """A string without a shell most of all: it would be a program of that whole name."""
    with pytest.raises(error, match=text):
        checked(command, Options(shell=shell))


@pytest.mark.parametrize("name", ["time_limit", "idle_limit"])
def test_limits_are_seconds_above_zero_or_none(name: str) -> None:
    """`inf` means none, and so does None (design, "The public API")."""
    for value in (None, 1, 0.5, math.inf):
        assert getattr(checked(["ls"], Options(**{name: value})).options, name) == value  # type: ignore[arg-type]
    for wrong in (0, -1, math.nan, -math.inf):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            checked(["ls"], Options(**{name: wrong}))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["kill_after", "drain_timeout"])
def test_graces_are_seconds_from_zero_on(name: str) -> None:
    """Zero is a choice here: kill at once, drain nothing."""
    for value in (0, 0.0, 3, math.inf):
        assert getattr(checked(["ls"], Options(**{name: value})).options, name) == value  # type: ignore[arg-type]
    for wrong in (-0.1, math.nan):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            checked(["ls"], Options(**{name: wrong}))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["time_limit", "idle_limit", "kill_after", "drain_timeout"])
@pytest.mark.parametrize("value", ["5", True, b"5"])
def test_a_duration_is_a_number(name: str, value: object) -> None:
    """True is not one second."""
    with pytest.raises(TypeError, match=f"{name} must be a number"):
        checked(["ls"], Options(**{name: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"window_bytes": -1}, ValueError, "window_bytes"),
        ({"window_bytes": "1k"}, TypeError, "window_bytes"),
        ({"capture": "all"}, ValueError, "capture"),
        ({"keep": "both"}, ValueError, "keep"),
        ({"on_exit": "kill"}, ValueError, "on_exit"),
        ({"env_policy": "none"}, ValueError, "env_policy"),
        ({"env_remove": "PATH"}, TypeError, "env_remove"),
        ({"env_remove": [5]}, TypeError, "env_remove"),
        ({"keep": "raw", "capture": "none"}, ValueError, "contradicts"),
        ({"stdin": "text"}, TypeError, "stdin"),
        ({"stdin": [b"x"]}, TypeError, "stdin"),
        ({"label": 5}, TypeError, "label"),
        ({"label": b"pytest"}, TypeError, "label"),
        ({"call_id": 7}, TypeError, "call_id"),
        ({"cwd": 5}, TypeError, None),
        ({"cwd": b"/tmp"}, TypeError, None),
        ({"cwd": "/a\0b"}, ValueError, "working directory"),
        ({"env": {"A=B": "x"}}, ValueError, "environment variable"),
        ({"env": {"A": 5}}, TypeError, None),
        ({"env": 5}, TypeError, None),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(options: Any, error: type[Exception], text: str | None) -> None:  # noqa: ANN401
    """Before anything exists: after this, only the world can say no."""
    with pytest.raises(error, match=text):
        checked(["ls"], Options(**options))


@pytest.mark.parametrize(
    ("options", "env", "told"),
    [
        ({}, None, ("inherit", (), ())),
        ({"env": {"A": "1"}}, {"A": "1"}, ("explicit", (), ("DEPLOY_TOKEN", "HOME"))),
        ({"env": {}}, {}, ("explicit", (), ("A", "DEPLOY_TOKEN", "HOME"))),
        ({"env_policy": "explicit"}, {}, ("explicit", (), ("A", "DEPLOY_TOKEN", "HOME"))),
        ({"env_policy": "scrubbed"}, {"A": "1", "HOME": "/h"}, ("scrubbed", (), ("DEPLOY_TOKEN",))),
        (
            {"env_policy": "inherit", "env": {"A": "2"}, "env_remove": ["HOME"]},
            {"A": "2", "DEPLOY_TOKEN": SECRET},
            ("inherit", ("A",), ("HOME",)),
        ),
    ],
)
def test_the_environment_is_made_by_its_policy(
    monkeypatch: pytest.MonkeyPatch,
    options: Any,  # noqa: ANN401
    env: dict[str, str] | None,
    told: tuple[object, ...],
) -> None:
    """None is the supervisor's as it is at the spawn; what was changed is told by name."""
    monkeypatch.setattr(os, "environ", {"A": "1", "HOME": "/h", "DEPLOY_TOKEN": SECRET})
    request = checked(["ls"], Options(**options))
    assert request.launch.env == env
    found = request.environment
    assert (found.policy, found.set, found.removed) == told


def test_the_profile_is_added_to_what_is_inherited() -> None:
    """For programs that nobody sits in front of."""
    request = checked(["ls"], Options(noninteractive=True, env_policy="inherit", env={"NO_COLOR": ""}))
    assert request.launch.env is not None
    assert (request.launch.env["PAGER"], request.launch.env["NO_COLOR"]) == ("cat", "")
    assert request.launch.env["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(
    ("stdin", "launched"), [(None, "null"), (b"", "pipe"), (b"text", "pipe"), (PIPE, "pipe"), (chunks(), "pipe")]
)
def test_stdin_is_nothing_bytes_an_iterable_or_an_open_pipe(stdin: Any, launched: str) -> None:  # noqa: ANN401
    """Whatever is given needs a pipe; nothing is `/dev/null` (F7)."""
    assert checked(["ls"], Options(stdin=stdin)).launch.stdin == launched


def test_what_concerns_the_process_is_in_the_launch() -> None:
    """The environment is a copy: a caller who changes theirs later changes nothing."""
    env = {"A": "1"}
    launch = checked(["ls"], Options(cwd=Path("/x"), env=env, merge=True)).launch
    env["A"] = "2"
    assert (launch.cwd, launch.env, launch.merge) == ("/x", {"A": "1"}, True)
    inherited = checked(["ls"], Options()).launch
    assert (inherited.cwd, inherited.env, inherited.merge) == (None, None, False)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["ls", SECRET + "\0"], {}),
        (["ls"], {"env": {"TOKEN": SECRET + "\0"}}),
        (["ls"], {"env": {SECRET + "=": "x"}}),
        (["ls"], {"cwd": SECRET + "\0"}),
        (SECRET, {}),
    ],
)
def test_no_refusal_quotes_what_it_refuses(command: Any, options: Any) -> None:  # noqa: ANN401
    """An error text gets into logs; a command or a variable may hold a secret."""
    with pytest.raises((TypeError, ValueError)) as caught:
        checked(command, Options(**options))
    assert SECRET not in str(caught.value)


def test_the_keywords_are_the_options() -> None:
    """`start` takes what `Options` knows, no more and no less, of the same types."""
    assert get_type_hints(OptionsDict) == get_type_hints(Options)


def test_a_conversations_path_is_absolute_and_its_links_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storage has to see a symlink, so that it can refuse it (D2)."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    assert conversation_path("link") == tmp_path / "link"
    assert conversation_path(tmp_path / "real" / os.pardir / "link") == tmp_path / "link"
    assert conversation_path(None) is None


def test_a_call_id_that_no_receipt_could_carry_is_refused_at_once() -> None:
    """Before the command runs: afterwards its receipt would not fit its room [A6, B5]."""
    assert checked(["true"], Options(call_id="x" * 200)).options.call_id == "x" * 200
    with pytest.raises(ValueError, match="call_id has more than 200"):
        checked(["true"], Options(call_id="x" * 201))


def test_an_environment_that_is_no_mapping_is_refused_at_once() -> None:
    """A list of pairs is what other languages take."""
    with pytest.raises(TypeError, match="env must be a mapping"):
        checked(["true"], Options(env=[("A", "b")]))  # type: ignore[arg-type]
