"""`spoolvisor run`: output, receipt and exit code of commands that start."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine, Program

BOTH = ("sh", "-c", "echo out; printf err >&2; exit 3")


def test_output_and_code_pass_through(spoolvisor: CommandLine) -> None:
    """Each stream comes out on its own descriptor, and the code is the child's [A2]."""
    done = spoolvisor("run", "--", *BOTH)
    assert (done.code, done.out) == (3, "out\n")
    assert done.err.startswith("err\n")


def test_the_receipt_follows_the_output_on_a_fresh_line(spoolvisor: CommandLine) -> None:
    """Facts, on stderr, after output that ended without a line feed; what was just shown is not shown again."""
    done = spoolvisor("run", "--", *BOTH)
    assert done.errors[0] == "err"
    assert ": exited 3 in " in done.errors[1]
    assert "capture complete: all output is accounted for" in done.errors
    assert not [line for line in done.errors if line.startswith("| ")]


def test_what_is_shown_is_kept(spoolvisor: CommandLine) -> None:
    """The job is always a kept one: its files and receipt are there, small success or not [A7]."""
    done = spoolvisor("run", "--", "echo", "hello")
    assert done.code == 0
    assert spoolvisor.text("stdout") == b"hello\n"
    (capture,) = spoolvisor.captures()
    assert (capture / "receipt.json").is_file()


def test_json_gives_stdout_to_the_receipt(spoolvisor: CommandLine) -> None:
    """One line of JSON on stdout, all output on stderr, no rendered receipt."""
    done = spoolvisor("run", "--json", "--", *BOTH)
    assert done.code == 3
    assert (done.receipt["process"]["code"], done.receipt["capture"]["state"]) == (3, "complete")
    assert sorted(done.errors) in (["err", "out"], ["errout"])


def test_json_is_the_published_receipt(spoolvisor: CommandLine) -> None:
    """What a program reads is what lies on disk."""
    done = spoolvisor("run", "--json", "--", "true")
    (capture,) = spoolvisor.captures()
    assert done.out == (capture / "receipt.json").read_text() + "\n"


def test_quiet_shows_nothing_and_keeps_everything(spoolvisor: CommandLine) -> None:
    """No output, no receipt, the child's code."""
    done = spoolvisor("run", "--quiet", "--", *BOTH)
    assert (done.code, done.out, done.err) == (3, "", "")
    assert spoolvisor.text("stdout") == b"out\n"


def test_quiet_json_prints_the_line_alone(spoolvisor: CommandLine) -> None:
    """`--quiet` takes the output away, never the JSON."""
    done = spoolvisor("run", "--quiet", "--json", "--", *BOTH)
    assert (done.code, done.err) == (3, "")
    assert done.receipt["streams"]["stdout"]["committed"] == 4


def test_a_signal_gives_128_and_its_number(spoolvisor: CommandLine) -> None:
    """As shells do it."""
    assert spoolvisor("run", "--quiet", "--", "sh", "-c", "kill -USR1 $$").code == 128 + 10


def test_options_of_the_command_are_its_own(spoolvisor: CommandLine) -> None:
    """Nothing after the command's name is read as ours, with `--` or without."""
    assert spoolvisor("run", "--quiet", "--json", "--", "echo", "--json").receipt["command"] == ["echo", "--json"]
    assert spoolvisor("run", "echo", "--quiet").out == "--quiet\n"


def test_a_script_goes_to_the_shell_as_it_is(spoolvisor: CommandLine) -> None:
    """One argument, quotes and pipes included; the receipt shows the script [A5]."""
    done = spoolvisor("run", "--json", "--shell", "echo 'a  b' | tr a-z A-Z; exit 5")
    assert (done.code, done.err) == (5, "A  B\n")
    assert done.receipt["command"] == ["echo 'a  b' | tr a-z A-Z; exit 5"]


def test_stdin_is_empty(spoolvisor: CommandLine) -> None:
    """The command gets /dev/null, whatever we were given [F7]."""
    reading, writing = os.pipe()
    os.write(writing, b"not for the child\n")
    try:
        done = spoolvisor("run", "--", "wc", "-c", stdin=reading)
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.code, done.out) == (0, "0\n")


def test_a_label_is_sanitised(spoolvisor: CommandLine) -> None:
    """Escapes are gone, a line feed cannot forge a line of the receipt, and 200 characters are enough [A6]."""
    done = spoolvisor("run", "--label", "\x1b[31mred\x07\nforged: line " + "x" * 300, "--", "true")
    assert done.code == 0
    assert "\x1b" not in done.err
    assert "\x07" not in done.err
    assert not [line for line in done.errors if line.startswith("forged")]
    assert done.errors[0].startswith("red")
    assert len(done.errors[0]) < 260


def test_bytes_that_are_not_utf_8_are_no_obstacle(spoolvisor: CommandLine) -> None:
    """An argument and a label of any bytes give a receipt that is UTF-8."""
    odd = os.fsdecode(b"caf\xe9")
    done = spoolvisor("run", "--json", "--label", odd, "--", "printf", "%s", odd)
    assert done.code == 0
    assert done.err == "caf�"
    assert done.receipt["label"]


def test_a_named_secret_is_redacted(spoolvisor: CommandLine) -> None:
    """`--secret` adds a variable whose name does not give it away [C5]; nothing shows the value."""
    value = "correct-horse-battery"
    done = spoolvisor(
        "run", "--secret", "DEPLOY_PIN", "--", "sh", "-c", 'echo "pin=$DEPLOY_PIN"', variables={"DEPLOY_PIN": value}
    )
    assert done.out == "pin=[REDACTED:DEPLOY_PIN]\n"
    assert value not in done.err
    assert value.encode() not in spoolvisor.text("stdout")


def test_without_it_the_same_variable_is_ordinary(spoolvisor: CommandLine) -> None:
    """The test above could not pass by a name that is known anyway."""
    done = spoolvisor("run", "--", "sh", "-c", "echo $DEPLOY_PIN", variables={"DEPLOY_PIN": "correct-horse-battery"})
    assert done.out == "correct-horse-battery\n"


def test_a_secret_that_cannot_be_searched_for_is_named(spoolvisor: CommandLine) -> None:
    """One line even with --quiet, with the reason and without the value."""
    done = spoolvisor("run", "--quiet", "--secret", "PIN", "--", "true", variables={"PIN": "4711"})
    assert done.code == 0
    assert done.errors == [
        "spoolvisor: warning: the value of PIN is not redacted: shorter than 8 characters",
    ]


def test_a_time_limit_gives_124(spoolvisor: CommandLine) -> None:
    """Whatever the child makes of the TERM: here it exits 0 [F4]."""
    script = "trap 'exit 0' TERM; while :; do sleep 0.01; done"
    done = spoolvisor("run", "--quiet", "--json", "--time-limit", "300ms", "--", "sh", "-c", script)
    assert done.code == 124
    assert (done.receipt["process"]["state"], done.receipt["process"]["reason"]) == ("timeout", "time-limit")


def test_an_idle_limit_gives_124(spoolvisor: CommandLine) -> None:
    """Output so far is shown."""
    done = spoolvisor("run", "--idle-limit", "0.3", "--", "sh", "-c", "echo begun; exec sleep 1000")
    assert (done.code, done.out) == (124, "begun\n")


def test_kill_after_zero_kills_at_once(spoolvisor: CommandLine, program: Program) -> None:
    """A command that ignores TERM ends by KILL, and the code is still the limit's."""
    done = spoolvisor(
        "run", "--quiet", "--json", "--idle-limit", "500ms", "--kill-after", "0", "--", *program("stubborn")
    )
    assert (done.code, done.receipt["process"]["signal"]) == (124, 9)


def test_drain_timeout_bounds_the_wait_for_a_held_pipe(spoolvisor: CommandLine, program: Program) -> None:
    """A descendant that keeps the pipe open delays nothing [F1]; a partial capture is not its code."""
    done = spoolvisor("run", "--json", "--drain-timeout", "0", "--", *program("descendant"))
    try:
        assert done.code == 3
        assert (done.receipt["capture"]["state"], done.receipt["capture"]["reason"]) == ("partial", "drain-timeout")
    finally:
        os.kill(int(done.err), 9)


def test_what_is_not_retained_is_shown_all_the_same(spoolvisor: CommandLine) -> None:
    """After the job's limit the output goes on to the screen, and the code is the child's [B5]."""
    done = spoolvisor("run", "--job-bytes", "8KiB", "--", "sh", "-c", "seq 20000; exit 4")
    assert done.code == 4
    assert done.out == "".join(f"{number}\n" for number in range(1, 20001))
    assert len(spoolvisor.text("stdout")) < 8192
    assert any(line.startswith("capture partial, job-limit") for line in done.errors)


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_full_allowance_is_said_in_one_line_with_the_remedy(spoolvisor: CommandLine, quiet: tuple[str, ...]) -> None:
    """Earlier captures count, none is deleted, and the command runs to its end [D5]."""
    assert spoolvisor("run", "--quiet", "--", "seq", "2000").code == 0
    done = spoolvisor("run", *quiet, "--conversation-bytes", "8KiB", "--", "seq", "2000")
    assert done.code == 0
    said = [line for line in done.errors if line.startswith("spoolvisor: ")]
    remedy = "remove captures (rm) or raise --conversation-bytes"
    assert said == [f"spoolvisor: the conversation's allowance of 8KiB is used up; {remedy}"]
    assert len(spoolvisor.captures()) == 2


def test_no_durability_is_passed_on(spoolvisor: CommandLine) -> None:
    """`--durability none` skips the barrier, and the receipt says so [D4]."""
    assert spoolvisor("run", "--json", "--durability", "none", "--", "true").receipt["durability"]["barrier"] is False
    assert spoolvisor("run", "--json", "--", "true").receipt["durability"]["barrier"] is True


def test_inf_is_no_limit(spoolvisor: CommandLine) -> None:
    """Every limit takes it."""
    options = ("time-limit", "idle-limit", "kill-after", "drain-timeout", "job-bytes", "conversation-bytes")
    done = spoolvisor("run", *(part for name in options for part in (f"--{name}", "inf")), "--", "echo", "x")
    assert (done.code, done.out) == (0, "x\n")


def test_the_directory_is_made_with_its_parents(spoolvisor: CommandLine) -> None:
    """Each 0700 under any umask [D2]; what was there stays as it is."""
    spoolvisor.place.chmod(0o755)
    directory = spoolvisor.place / "a" / "b" / "c"
    done = spoolvisor("run", "--dir", str(directory), "--", "true", umask=0o277)
    assert done.code == 0
    assert "capture complete: all output is accounted for" in done.errors
    assert len(spoolvisor.captures(directory)) == 1
    made = [directory, directory.parent, directory.parent.parent]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 3
    assert stat.S_IMODE(spoolvisor.place.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SPOOLVISOR_DIR": "chosen", "XDG_STATE_HOME": "{place}/xdg"}, "chosen"),
        ({"SPOOLVISOR_DIR": "", "XDG_STATE_HOME": "{place}/xdg"}, "xdg/spoolvisor"),
        ({"SPOOLVISOR_DIR": "", "XDG_STATE_HOME": "relative"}, ".local/state/spoolvisor"),
        ({"SPOOLVISOR_DIR": "", "XDG_STATE_HOME": ""}, ".local/state/spoolvisor"),
    ],
)
def test_without_dir_the_environment_decides(spoolvisor: CommandLine, variables: dict[str, str], expected: str) -> None:
    """`$SPOOLVISOR_DIR`, else the user's state directory."""
    given = {name: value.format(place=spoolvisor.place) for name, value in variables.items()}
    assert spoolvisor("run", "--quiet", "--", "true", variables=given).code == 0
    assert len(spoolvisor.captures(spoolvisor.place / expected)) == 1


def test_the_loop_is_uvloop_where_there_is_one() -> None:
    """And asyncio's own elsewhere (design, "Layout")."""
    from supervisor.cli.run import loop_factory  # noqa: PLC0415 - the rest of this file knows the process only

    uvloop = pytest.importorskip("uvloop")
    assert loop_factory() is uvloop.new_event_loop


def test_another_working_directory_is_no_other_conversation(spoolvisor: CommandLine) -> None:
    """A relative --dir is under the working directory, and the receipt names it absolutely."""
    done = spoolvisor("run", "--json", "--dir", "here", "--", "true")
    assert Path(done.receipt["conversation"]) == spoolvisor.place / "here"


def test_the_members_of_a_pipeline_are_told(spoolvisor: CommandLine) -> None:
    """In the receipt, for a script; without one there is nothing to ask for."""
    done = spoolvisor("run", "--pipestatus", "--shell", "false | true | (exit 3)")
    assert done.code == 3
    assert "pipe status: 1 0 3" in done.errors
    wrong = spoolvisor("run", "--pipestatus", "true")
    assert wrong.code == 2
    assert "--pipestatus needs --shell" in wrong.err
