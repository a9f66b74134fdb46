"""A capture is found by its id, read where it lies, and only our own plain files are ever read (D2, E2-E4, D6)."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.errors import StorageError, UnknownCapture
from supervisor.limits import Limits
from supervisor.sansio.page import ABSENT, PENDING, Standing
from supervisor.sansio.receipt import CaptureFacts, Receipt, Retained, StreamFacts
from supervisor.storage import Files, LocalStorage, Look, look, read_piece
from supervisor.storage.evidence import RECORD_BYTES
from supervisor.storage.faults import storage_error
from supervisor.storage.owners import this_process
from supervisor.storage.reading import LOST, NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from supervisor.storage import Piece

CAPTURE = "20260101T000000000000Z-" + "0" * 32
OTHER = "20260101T000000000000Z-" + "1" * 32
WHOLE = {"offset": 0, "count": 100}


def launch_record(owner: dict[str, Any]) -> bytes:
    """Return the launch record of a capture whose streams are merged."""
    streams: dict[Any, StreamFacts | None] = {"stdout": StreamFacts(state="pending"), "stderr": None}
    receipt = Receipt(capture_id=CAPTURE, capture=CaptureFacts(state="pending"), streams=streams)
    return json.dumps({"schema": 1, "owner": owner, "receipt": json.loads(receipt.to_json())}).encode()


class Lockless(Files):
    """A file system without locks."""

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
        """Refuse."""
        raise OSError(errno.ENOSYS, f"no locks here: {descriptor} {exclusive} {wait}")


class Site:
    """A capture made by hand, so that any of its files can be missing or wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / "tool-outputs" / ".supervisor"
        self.captures = path / "tool-outputs" / "captures"
        self.capture = self.captures / CAPTURE
        (path / "tool-outputs").mkdir(mode=0o755)
        for directory in (self.state, self.captures, self.capture):
            directory.mkdir(mode=0o700)

    def put(self, name: str, data: bytes) -> Path:
        """Write a file of the capture, as ours."""
        file = self.capture / name
        file.write_bytes(data)
        file.chmod(0o600)
        return file

    def launch(self, **owner: object) -> None:
        """Write a launch record of that owner, of a capture whose streams are merged."""
        self.put("launch.json", launch_record(owner))

    def publish(self, end: int | None = 5, *, capture_id: str = CAPTURE) -> None:
        """Write a receipt of a complete stdout of that length."""
        facts = StreamFacts(state="complete", retained=Retained(end=end))
        streams: dict[Any, StreamFacts | None] = {"stdout": facts, "stderr": None}
        receipt = Receipt(capture_id=capture_id, capture=CaptureFacts(state="complete"), streams=streams)
        self.put("receipt.json", receipt.to_json())

    def piece(self) -> Piece:
        """Read all of stdout."""
        return read_piece(Files(), self.path, CAPTURE, "stdout", **WHOLE)

    def look(self, stream: Any = "stdout") -> Look:  # noqa: ANN401 - a stream's name
        """Look at a stream."""
        return look(Files(), self.path, CAPTURE, stream, **WHOLE)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a capture without a file."""
    return Site(tmp_path)


@pytest.mark.parametrize("name", ["stdout.live", "stdout.log"])
def test_a_stream_is_read_under_either_name(site: Site, name: str) -> None:
    """Resolved by id: a reference handed out at launch stays good after the renaming (E2)."""
    site.put(name, b"hello")
    piece = site.piece()
    assert (piece.data, piece.size) == (b"hello", 5)
    part = read_piece(Files(), site.path, CAPTURE, "stdout", offset=1, count=3)
    assert (part.data, part.size, part.identity) == (b"ell", 5, piece.identity)
    past = read_piece(Files(), site.path, CAPTURE, "stdout", offset=9, count=3)
    assert (past.data, past.size) == (b"", 5)


def test_a_stream_that_is_renamed_between_two_looks_is_found(site: Site) -> None:
    """The final name is tried first; the file gets it just after, and loses the other."""

    class Renaming(Files):
        def open_existing(self, name: str, *, parent: int, flags: int = os.O_RDONLY) -> int:
            if name == "stdout.live" and (site.capture / name).exists():
                (site.capture / name).rename(site.capture / "stdout.log")
            return super().open_existing(name, parent=parent, flags=flags)

    site.put("stdout.live", b"hello")
    assert read_piece(Renaming(), site.path, CAPTURE, "stdout", **WHOLE).data == b"hello"


def test_short_reads_are_gone_on_with_and_a_shrinking_file_is_an_error(site: Site) -> None:
    """read(2) may give less than asked for; a file that ends before its size was cut by somebody."""

    class Stingy(Files):
        def read(self, descriptor: int, count: int, *, offset: int) -> bytes:
            return super().read(descriptor, min(count, 2), offset=offset)

    class Cutting(Files):
        def read(self, descriptor: int, count: int, *, offset: int) -> bytes:
            os.truncate(site.capture / "stdout.live", 3)
            return super().read(descriptor, count, offset=offset)

    site.put("stdout.live", b"hello")
    assert read_piece(Stingy(), site.path, CAPTURE, "stdout", **WHOLE).data == b"hello"
    with pytest.raises(StorageError, match="shorter"):
        read_piece(Cutting(), site.path, CAPTURE, "stdout", **WHOLE)


def test_a_missing_file_directory_or_capture_is_told_apart(site: Site, tmp_path: Path) -> None:
    """The file: StorageError. The capture: UnknownCapture. The conversation: the system's ENOENT."""
    with pytest.raises(StorageError, match="gone"):
        site.piece()
    with pytest.raises(UnknownCapture):
        read_piece(Files(), tmp_path, OTHER, "stdout", **WHOLE)
    with pytest.raises(FileNotFoundError):
        read_piece(Files(), tmp_path / "nowhere", CAPTURE, "stdout", **WHOLE)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnknownCapture):
        read_piece(Files(), tmp_path / "empty", CAPTURE, "stdout", **WHOLE)


def plant_symlink(file: Path) -> None:
    """Put a symlink to a good file in the file's place."""
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def plant_hard_link(file: Path) -> None:
    """Give the file a second name."""
    file.with_name("elsewhere").hardlink_to(file)


def plant_fifo(file: Path) -> None:
    """Put a FIFO without a writer in its place: opening one to read waits for ever, unless told not to."""
    file.unlink()
    os.mkfifo(file, 0o600)


def plant_directory(file: Path) -> None:
    """Put a directory in its place."""
    file.unlink()
    file.mkdir(mode=0o700)


def open_to_others(file: Path) -> None:
    """Let others read it."""
    file.chmod(0o644)


def give_away(file: Path) -> None:
    """Let it have another owner."""
    if os.geteuid() != 0:
        pytest.skip("giving a file away needs root")
    os.chown(file, 65534, -1)


def reason_of(call: Callable[[], object]) -> str:
    """Return what a receipt would call the error that a call raises."""
    try:
        call()
    except OSError as error:
        return storage_error("reading", error).reason
    raise AssertionError("it was read")


@pytest.mark.parametrize(
    "spoil", [plant_symlink, plant_hard_link, plant_fifo, plant_directory, open_to_others, give_away]
)
@pytest.mark.parametrize("name", ["stdout.log", "stdout.live", "receipt.json", "launch.json"])
def test_what_is_not_a_plain_file_of_ours_is_refused(site: Site, name: str, spoil: Callable[[Path], None]) -> None:
    """A symlink, second name, FIFO, directory, foreign owner or open mode is never read (D2)."""
    if name != "stdout.live":
        site.put("stdout.log", b"hello")
    if name in {"launch.json", "stdout.live"}:
        site.launch(name="none.owner")
        (site.capture / name).unlink(missing_ok=True)
    else:
        site.publish()
    spoil(site.put(name, b"hello"))
    assert reason_of(site.look) == "unsafe-directory"


@pytest.mark.parametrize("level", ["captures", "capture"])
@pytest.mark.parametrize("how", ["open", "symlink", "foreign"])
def test_a_directory_that_is_not_ours_alone_is_refused(site: Site, level: str, how: str) -> None:
    """From `captures` down directories are private; none is reached through a symlink (D2)."""
    site.put("stdout.log", b"hello")
    directory: Path = getattr(site, level)
    if how == "open":
        directory.chmod(0o755)
    elif how == "symlink":
        plant_symlink(directory)
    else:
        give_away(directory)
    assert reason_of(site.piece) == "unsafe-directory"


def test_a_half_done_rename_by_link_is_read(site: Site) -> None:
    """Without renameat2 a file has both of its names for a moment, or for ever after a crash (D2)."""
    site.put("stdout.live", b"hello")
    (site.capture / "stdout.log").hardlink_to(site.capture / "stdout.live")
    assert site.piece().data == b"hello"
    site.publish()
    (site.capture / ".receipt.reserved").hardlink_to(site.capture / "receipt.json")
    assert site.look().standing.state == "complete"
    (site.path / "third").hardlink_to(site.capture / "stdout.log")
    assert reason_of(site.look) == "unsafe-directory"


def test_a_rename_by_link_that_ends_between_the_two_looks_is_read(site: Site) -> None:
    """The second name is gone by the time that it is looked for."""

    class Finishing(Files):
        def status_at(self, name: str, *, parent: int) -> os.stat_result:
            (site.capture / "stdout.live").unlink()
            return super().status_at(name, parent=parent)

    site.put("stdout.live", b"hello")
    (site.capture / "stdout.log").hardlink_to(site.capture / "stdout.live")
    assert read_piece(Finishing(), site.path, CAPTURE, "stdout", **WHOLE).data == b"hello"


def test_the_receipt_decides(site: Site) -> None:
    """With a receipt state and boundary are its, whoever lives; a merged stream does not exist (B7)."""
    site.put("stdout.log", b"hello")
    site.publish()
    seen = site.look()
    assert seen.standing == Standing("complete", ended=True, end=5)
    assert seen.piece.data == b"hello"
    assert site.look("stderr") == type(seen)(ABSENT, NOTHING)


@pytest.mark.asyncio
async def test_without_a_receipt_the_owner_decides(tmp_path: Path) -> None:
    """A held lock means pending, a released one lost, whatever the clock says (D6)."""
    conversation = await LocalStorage().open(tmp_path, limits=Limits(), durability="none")
    capture = await conversation.create_capture(CAPTURE, ("stdout",))
    assert look(Files(), tmp_path, CAPTURE, "stderr", **WHOLE).standing == PENDING
    await capture.record_launch(launch_record({"name": conversation.owner.name}))
    await capture.spools["stdout"].write([b"hello"])
    seen = look(Files(), tmp_path, CAPTURE, "stdout", **WHOLE)
    assert (seen.standing, seen.piece.data) == (PENDING, b"hello")
    assert look(Files(), tmp_path, CAPTURE, "stderr", **WHOLE).standing is ABSENT
    await conversation.close()
    seen = look(Files(), tmp_path, CAPTURE, "stdout", **WHOLE)
    assert (seen.standing, seen.piece.data) == (LOST, b"hello")
    assert Standing("partial", "supervisor-lost", ended=True) == LOST


def test_a_capture_whose_owner_is_unknown_is_lost_unless_one_lives(site: Site) -> None:
    """No record, a bad one, or one with a name that leads elsewhere: nobody is found who could publish it."""
    site.put("stdout.live", b"hello")
    assert site.look().standing == LOST
    for record in (b"", b"[" * 5000, b"[]", b'{"owner": 7}', b'{"owner": {"name": "../x.owner"}}'):
        site.put("launch.json", record)
        assert site.look().standing == LOST
    site.state.rmdir()
    assert site.look().standing == LOST


def test_a_receipt_that_comes_between_the_looks_wins(site: Site) -> None:
    """Its owner published and ended after the first look for it: that is no loss."""

    class Publishing(Files):
        def names(self, directory: int) -> list[str]:
            site.publish()
            return super().names(directory)

    site.put("stdout.log", b"hello")
    assert look(Files(), site.path, CAPTURE, "stdout", **WHOLE).standing == LOST
    assert look(Publishing(), site.path, CAPTURE, "stdout", **WHOLE).standing.state == "complete"


@pytest.mark.parametrize(("change", "lives"), [({}, True), ({"boot_id": "x"}, False), ({"start_time": 1}, False)])
def test_where_no_lock_can_be_asked_the_identity_decides(site: Site, change: dict[str, Any], *, lives: bool) -> None:
    """Boot, pid namespace, pid and start time together name a process; a bare pid does not (D6)."""
    if this_process()["boot_id"] is None:
        pytest.skip("this system does not tell")
    site.put("stdout.live", b"hello")
    (site.state / "one.owner").touch(0o600)
    site.launch(name="one.owner", **{**this_process(), **change})
    seen = look(Lockless(), site.path, CAPTURE, "stdout", **WHOLE)
    assert seen.standing == (PENDING if lives else LOST)


def test_where_no_lock_can_be_asked_a_capture_without_a_record_may_be_just_being_made(site: Site) -> None:
    """Any owner may be its own, and none can be shown to be dead: nothing says that the text has ended (D6, E2)."""
    site.put("stdout.live", b"hello")
    (site.state / "one.owner").touch(0o600)
    assert site.look().standing == LOST
    assert look(Lockless(), site.path, CAPTURE, "stdout", **WHOLE).standing == PENDING


def test_a_lost_capture_without_its_file_is_failed(site: Site) -> None:
    """It was launched with one; nothing of it is retained, and that is no empty text (A3, E3)."""
    site.launch(name="none.owner")
    assert site.look() == Look(Standing("failed", "supervisor-lost", ended=True), NOTHING)


@pytest.mark.asyncio
async def test_a_live_capture_that_lost_its_file_is_an_error(tmp_path: Path) -> None:
    """It was launched with one, so somebody removed it: never an empty text (E3)."""
    conversation = await LocalStorage().open(tmp_path, limits=Limits(), durability="none")
    capture = await conversation.create_capture(CAPTURE, ("stdout",))
    await capture.record_launch(launch_record({"name": conversation.owner.name}))
    (capture.path / "stdout.live").unlink()
    with pytest.raises(StorageError, match="gone"):
        look(Files(), tmp_path, CAPTURE, "stdout", **WHOLE)
    await conversation.close()


def test_a_receipt_that_cannot_be_used_is_an_error(site: Site) -> None:
    """Damaged, of another capture, or too long to be ours: its stream is neither complete nor lost."""
    site.put("stdout.log", b"hello")
    site.put("receipt.json", b'{"schema": 1')
    with pytest.raises(StorageError, match="damaged"):
        site.look()
    site.publish(capture_id=OTHER)
    with pytest.raises(StorageError, match="another capture"):
        site.look()
    site.put("receipt.json", b" " * (RECORD_BYTES + 1))
    with pytest.raises(StorageError, match="longer"):
        site.look()
