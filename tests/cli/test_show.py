"""`show`, and how an id is given to any command."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import click
import pytest

from supervisor.cli import looking, main
from supervisor.cli.looking import chosen

if TYPE_CHECKING:
    from conftest import CommandLine

COMMANDS = ("show", "logs", "wait", "rm")
IDS = tuple(f"2026013{day}T000000000000Z-{'0' * 32}" for day in range(7))


def test_the_receipt_is_rendered_with_its_preview(spoolvisor: CommandLine) -> None:
    """As `run` renders it, and with what the command printed."""
    ran = spoolvisor("run", "--label", "it", "--", "sh", "-c", "seq 3; exit 3")
    done = spoolvisor("show", spoolvisor.captures()[0].name)
    assert (done.code, done.err) == (0, "")
    assert done.out == ran.err + "| 1\n| 2\n| 3\n"


def test_json_is_the_published_receipt(spoolvisor: CommandLine) -> None:
    """One line, the same facts."""
    spoolvisor("run", "-q", "--", "seq", "3")
    (capture,) = spoolvisor.captures()
    assert spoolvisor("show", "--json", capture.name).receipt == json.loads((capture / "receipt.json").read_text())


def test_a_running_command_has_a_receipt_too(spoolvisor: CommandLine) -> None:
    """It is pending, and says how much can be read."""
    process = spoolvisor.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    done = spoolvisor("show", spoolvisor.captures()[0].name[:20])
    process.send_signal(signal.SIGINT)
    assert spoolvisor.finish(process).code == 130
    assert ": running, pid " in done.out.splitlines()[0]
    assert "capture pending: it still grows and is no evidence yet" in done.out


def test_an_unknown_or_ambiguous_id_is_a_mistake(spoolvisor: CommandLine, capfd: pytest.CaptureFixture[str]) -> None:
    """One line that lists what could be meant, from every command that takes an id; nothing is removed by it."""
    done = spoolvisor("show", "20")
    assert (done.code, done.out, done.errors) == (2, "", ["spoolvisor: there is no capture '20'"])
    captures = spoolvisor.kept / "tool-outputs" / "captures"
    captures.mkdir(0o700, parents=True)
    for capture_id in IDS[:2]:  # no more than their names is looked at
        (captures / capture_id).mkdir(0o700)
    for command in COMMANDS:
        for given in ("20", "x"):
            with pytest.raises(SystemExit) as ended:
                main([command, "--dir", str(spoolvisor.kept), given])
            out, err = capfd.readouterr()
            assert (ended.value.code, out, len(err.splitlines())) == (2, "", 1)
            assert all(capture_id in err for capture_id in IDS[:2])
    assert len(spoolvisor.captures()) == 2


def test_the_beginning_of_an_id_stands_for_it() -> None:
    """If it stands for no other; a complaint lists five at most."""
    assert chosen(IDS, "20260134") == chosen(IDS, IDS[4]) == IDS[4]
    with pytest.raises(click.ClickException, match="'2026' may be ") as ambiguous:
        chosen(IDS, "2026")
    assert [capture_id in str(ambiguous.value) for capture_id in IDS] == [False] * 2 + [True] * 5
    assert str(ambiguous.value).endswith(" and 2 more")
    with pytest.raises(click.ClickException, match="there is no capture 'x'; the newest are ") as unknown:
        chosen(IDS, "x")
    assert str(unknown.value).count("Z-") == 5


def test_the_empty_id_is_never_the_only_capture() -> None:
    """`rm "$UNSET"` must remove nothing."""
    with pytest.raises(click.ClickException, match="there is no capture ''"):
        chosen(IDS[:1], "")


def test_without_a_home_a_directory_has_to_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's arbitrary user has none; nothing is made in the working directory instead."""
    monkeypatch.setattr(looking, "conversation_directory", lambda *_: None)
    with pytest.raises(click.ClickException, match="there is no home directory; give --dir"):
        looking.directory_of(None)
