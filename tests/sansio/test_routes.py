"""Where a receipt's texts are for who reads it here: never a path that leads nowhere (E7, E9, E10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from supervisor.sansio.leftover import Site
from supervisor.sansio.receipt import CaptureFacts, RawCopy, Receipt, Retained, StreamFacts
from supervisor.sansio.routes import NOT_COPIED, handed_over, names_in, reached, unreached, without_paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from supervisor.sansio.words import StreamName

ID: Final = "20260101T000000000000Z-0123456789abcdef0123456789abcdef"
HERE: Final = f"tool-outputs/captures/{ID}"
SITE: Final = Site("/new", HERE, ID)


def stream(name: str, **facts: Any) -> StreamFacts:  # noqa: ANN401 - facts of any type
    """Return a stream whose file is in `/old`, with an unsanitised copy."""
    raw_copy = RawCopy(state="complete", reference=f"{HERE}/{name}.raw", path=f"/old/{HERE}/{name}.raw", size=9)
    known = {"reference": f"{HERE}/{name}.log", "path": f"/old/{HERE}/{name}.log", "access": "local"}
    retained = Retained(end=6)
    return StreamFacts.model_validate(
        {"state": "complete", "retained": retained, "raw_copy": raw_copy, **known, **facts}
    )


def receipt(stdout: StreamFacts | None, stderr: StreamFacts | None = None) -> Receipt:
    """Return a receipt of `/old`."""
    streams: Mapping[StreamName, StreamFacts | None] = {"stdout": stdout, "stderr": stderr}
    return Receipt(capture_id=ID, conversation="/old", capture=CaptureFacts(state="complete"), streams=streams)


def route(made: Receipt, name: str = "stdout") -> tuple[str | None, str | None, str]:
    """Return reference, path and access of a stream."""
    facts = made.streams[name]  # type: ignore[index]
    assert facts is not None
    return facts.reference, facts.path, facts.access


def raw_of(made: Receipt) -> tuple[str, str | None, int | None]:
    """Return state, path and size of stdout's unsanitised copy."""
    facts = made.streams["stdout"]
    assert facts is not None
    assert facts.raw_copy is not None
    return facts.raw_copy.state, facts.raw_copy.path, facts.raw_copy.size


def test_a_receipts_names_are_those_of_its_texts_and_copies() -> None:
    """Streams without a file have none."""
    made = receipt(stream("stdout"), stream("stderr", access="inline", reference=None, path=None, raw_copy=None))
    assert names_in(made) == {"stdout.log", "stdout.raw"}
    assert names_in(receipt(None)) == frozenset()


def test_who_cannot_get_at_the_files_gets_no_path() -> None:
    """Somewhere else they need a transfer, by their reference; gone, they are unavailable and have none."""
    made = receipt(stream("stdout"), stream("stderr", access="inline", reference=None, path=None))
    away = unreached(made, gone=False)
    assert route(away) == (f"{HERE}/stdout.log", None, "needs-transfer")
    assert raw_of(away) == ("complete", None, 9)
    assert route(away, "stderr") == (None, None, "inline")
    gone = unreached(away, gone=True)
    assert route(gone) == (None, None, "unavailable")
    assert gone.streams["stderr"] == made.streams["stderr"]
    assert unreached(receipt(None), gone=True).streams == {"stdout": None, "stderr": None}


def test_who_finds_the_files_gets_their_paths() -> None:
    """Under the names that they have now, whatever the receipt says; what it says of the output stays as it is."""
    made = receipt(stream("stdout", access="needs-transfer", path=None), stream("stderr"))
    there = reached(made, SITE, {"stdout": "stdout.live", "stdout.raw": "stdout.raw", "stderr": "stderr.log"})
    assert there.conversation == "/new"
    assert route(there) == (f"{HERE}/stdout.live", f"/new/{HERE}/stdout.live", "local")
    assert route(there, "stderr") == (f"{HERE}/stderr.log", f"/new/{HERE}/stderr.log", "local")
    assert raw_of(there) == ("complete", f"/new/{HERE}/stdout.raw", 9)
    assert there.capture == made.capture


def test_a_file_that_is_not_there_is_unavailable() -> None:
    """So is an unsanitised copy; a text that was never in a file is left as it is."""
    nowhere = stream("stderr", access="unavailable", reference=None, path=None, raw_copy=None)
    there = reached(receipt(stream("stdout"), nowhere), SITE, {})
    assert route(there) == (None, None, "unavailable")
    assert raw_of(there) == ("unavailable", None, None)
    assert there.streams["stderr"] == nowhere
    inline = stream("stdout", access="inline", reference=None, path=None, raw_copy=None)
    assert reached(receipt(inline), SITE, {"stdout": "stdout.log"}).streams["stdout"] == inline
    back = reached(receipt(nowhere), SITE, {"stdout": "stdout.log"})
    assert route(back) == (f"{HERE}/stdout.log", f"/new/{HERE}/stdout.log", "local")


def test_a_directory_that_json_cannot_carry_gives_no_path() -> None:
    """The reference is good all the same."""
    there = reached(receipt(stream("stdout")), Site("/\udcff", HERE, ID), {"stdout": "stdout.log"})
    assert there.conversation is None
    assert route(there) == (f"{HERE}/stdout.log", None, "local")
    assert Receipt.parse(there.to_json()).capture_id == ID


def test_a_copy_names_the_texts_that_it_lacks() -> None:
    """Once each, and only those that could be had where it was made from."""
    never = stream("stderr", access="unavailable", reference=None, path=None)
    made = handed_over(receipt(stream("stdout"), never), SITE, {})
    assert made.limitations == (f"{NOT_COPIED}:stdout",)
    assert handed_over(made, SITE, {}).limitations == made.limitations
    whole = handed_over(receipt(stream("stdout")), SITE, {"stdout": "stdout.log"})
    assert (whole.limitations, route(whole)[2], raw_of(whole)[0]) == ((), "local", "unavailable")


def test_a_directory_that_is_given_away_has_references_alone() -> None:
    """No path of the machine that it comes from [E9]."""
    given = without_paths(receipt(stream("stdout"), None))
    assert given.conversation is None
    assert route(given) == (f"{HERE}/stdout.log", None, "local")
    assert raw_of(given) == ("complete", None, 9)
    assert "/old" not in given.to_json().decode()
