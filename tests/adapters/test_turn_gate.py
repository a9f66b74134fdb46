"""The gate: when a turn is acknowledged, when the next message is accepted, and what a failed barrier does."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapters.transcript import BarrierFailed, Busy, Event, Transcript, Turn, TurnGate
from supervisor import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PATIENCE: Final = 30.0
FAULT: Final = "io-error"


class Log:
    """A transcript of which everything is noted, in one order with the events."""

    def __init__(self, noted: list[Any]) -> None:
        self.noted = noted
        self.broken: StorageError | OSError | None = None
        self.full = False

    def append(self, record: Mapping[str, Any], /) -> None:
        """Note it."""
        if self.full:
            raise StorageError("no room", reason="no-space")
        self.noted.append(record)

    def barrier(self) -> None:
        """Note it, or fail."""
        self.noted.append("barrier")
        if self.broken is not None:
            raise self.broken


@pytest.fixture
def noted() -> list[Any]:
    """Return what happened, in order."""
    return []


@pytest.fixture
def log(noted: list[Any]) -> Log:
    """Return a log."""
    return Log(noted)


def gate_of(log: Log, **hooks: Any) -> TurnGate:  # noqa: ANN401 - as `TurnGate`
    """Return a gate whose events are noted."""
    return TurnGate(log, emit=log.noted.append, **hooks)


def test_a_command_line_returns_from_a_turn_after_hooks_and_barrier(log: Log, noted: list[Any]) -> None:
    """Left without an error, the block completes the turn; then it is released."""
    hooks = [lambda: [{"by": "first"}, {"by": "first", "n": 2}], lambda: None, lambda: [{"by": "last"}]]
    with gate_of(log, turn_hooks=hooks).turn() as turn:
        noted.append("generated")
    assert turn.ended
    records = [{"by": "first"}, {"by": "first", "n": 2}, {"by": "last"}]
    assert noted == ["generated", *records, "barrier", Event("completed", 1), Event("released", 1)]


def test_a_server_completes_before_its_other_work_and_releases_after_it(log: Log, noted: list[Any]) -> None:
    """Naming the conversation comes between the two."""
    with gate_of(log).turn() as turn:
        turn.complete()
        noted.append("naming")
        with pytest.raises(RuntimeError, match="once"):
            turn.complete()
    assert noted == ["barrier", Event("completed", 1), "naming", Event("released", 1)]


def test_a_turn_that_raises_is_released_and_not_completed(log: Log, noted: list[Any]) -> None:
    """The next one gets in."""
    gate = gate_of(log)
    with pytest.raises(KeyError), gate.turn():
        raise KeyError("model")
    assert noted == [Event("released", 1)]
    with gate.turn() as turn:
        assert turn.number == 2


@pytest.mark.parametrize("error", [StorageError("the disk failed", reason=FAULT), OSError(5, "the disk failed")])
@pytest.mark.parametrize("host", ["command line", "server"])
def test_a_failed_barrier_is_an_event_and_a_message_and_no_completion(
    log: Log, noted: list[Any], host: str, error: StorageError | OSError
) -> None:
    """For both hosts; the gate is free afterwards, and the next turn can hold."""
    gate = gate_of(log)
    ends: dict[str, Callable[[Turn], None]] = {"command line": lambda _: None, "server": Turn.complete}
    log.broken = error
    with pytest.raises(BarrierFailed, match="the disk failed"), gate.turn() as turn:
        ends[host](turn)
    text = f"The transcript could not be saved: {error}"
    assert noted == ["barrier", {"role": "system", "content": text}, Event("failed", 1, text), Event("released", 1)]
    log.broken = None
    noted.clear()
    with gate.turn():
        pass
    assert noted == ["barrier", Event("completed", 2), Event("released", 2)]


def test_a_server_that_goes_on_after_a_failed_barrier_completes_nothing(log: Log, noted: list[Any]) -> None:
    """The end of the block does not try again what has failed."""
    log.broken = StorageError("no", reason=FAULT)
    with gate_of(log).turn() as turn, pytest.raises(BarrierFailed):
        turn.complete()
    assert [event.kind for event in noted if isinstance(event, Event)] == ["failed", "released"]


def test_a_log_that_takes_no_message_still_gives_the_event(log: Log, noted: list[Any]) -> None:
    """A full disk refuses the hooks' records, and the message about it."""
    log.full = True
    with pytest.raises(BarrierFailed), gate_of(log, turn_hooks=[lambda: [{"x": 1}]]).turn():
        pass
    assert [event.kind for event in noted] == ["failed", "released"]


def test_a_hook_that_raises_is_told_and_holds_up_nothing(log: Log, noted: list[Any]) -> None:
    """The others contribute, and the barrier is held."""

    def wrong() -> list[dict[str, Any]]:
        raise ZeroDivisionError("mine")

    with gate_of(log, turn_hooks=[wrong, lambda: [{"x": 1}]]).turn():
        pass
    told = Event("hook-failed", 1, "ZeroDivisionError: mine")
    assert noted == [told, {"x": 1}, "barrier", Event("completed", 1), Event("released", 1)]


def test_a_session_ends_after_its_hooks_and_the_barrier_and_a_restart_holds_the_same(
    log: Log, noted: list[Any]
) -> None:
    """Neither is a turn; both raise where the barrier fails, with the message in the transcript."""
    gate = gate_of(log, session_hooks=[lambda: [{"by": "session"}]], message=lambda text: {"said": text})
    gate.end_session()
    assert noted == [{"by": "session"}, "barrier", Event("released", 0)]
    noted.clear()
    gate.before_restart()
    assert noted == ["barrier", Event("released", 0)]
    noted.clear()
    log.broken = OSError(5, "x")
    for step in (gate.end_session, gate.before_restart):
        with pytest.raises(BarrierFailed):
            step()
    kinds = [event.kind for event in noted if isinstance(event, Event)]
    assert kinds == ["failed", "released"] * 2
    assert sum("said" in entry for entry in noted if isinstance(entry, dict)) == 2


def test_a_message_in_a_turn_is_refused_with_the_turn_that_will_be_released(log: Log, noted: list[Any]) -> None:
    """So is the session's end, a restart, and a second turn in a hook."""
    gate = gate_of(log)
    with gate.turn():
        for step in (gate.turn().__enter__, gate.end_session, gate.before_restart):
            with pytest.raises(Busy, match="turn 1 is under way") as caught:
                step()
            assert caught.value.turn == 1
    assert noted[-1] == Event("released", 1)


def test_the_gate_is_free_even_if_telling_fails(log: Log) -> None:
    """Whoever writes to a client that is gone may raise."""

    def emit(event: Event) -> None:
        raise ConnectionError(event.kind)

    gate = TurnGate(log, emit=emit)
    with pytest.raises(ConnectionError), gate.turn():
        pass
    with pytest.raises(ConnectionError), gate.turn() as turn:
        pass
    assert turn.number == 2


class Client:
    """Has messages, sends each when it believes that it will be accepted, and keeps what was refused."""

    def __init__(self, server: Server, name: str, count: int, trigger: str) -> None:
        self.server, self.trigger = server, trigger
        self.events: queue.Queue[Event] = queue.Queue()
        self.messages = [f"{name}-{number}" for number in range(count)]
        self.refused: list[int] = []
        server.clients.append(self)

    def work(self) -> None:
        """Send all of them."""
        for message in self.messages:
            while True:
                try:
                    self.server.send(message)
                    break
                except Busy as busy:
                    self.refused.append(busy.turn)
                    self.wait_for(busy.turn)

    def wait_for(self, turn: int) -> None:
        """Return when a turn has come so far, as this client is told."""
        while (event := self.events.get(timeout=PATIENCE)).turn < turn or event.kind != self.trigger:
            continue


class Server:
    """Takes messages in one thread each; what follows a completion lasts until `named` is set."""

    def __init__(self, log: Log) -> None:
        self.clients: list[Client] = []
        self.named = threading.Event()
        self.threads: list[threading.Thread] = []
        self.accepted: list[str] = []
        self.gate = TurnGate(log, emit=self.tell)

    def tell(self, event: Event) -> None:
        """Tell each client."""
        for client in self.clients:
            client.events.put(event)

    def send(self, message: str) -> None:
        """Accept a message, or refuse it at once: the request of a client."""
        turn = self.gate.turn()
        running = turn.__enter__()
        self.accepted.append(message)

        def step() -> None:
            running.complete()
            self.named.wait(PATIENCE)
            turn.__exit__(None, None, None)

        thread = threading.Thread(target=step)
        self.threads.append(thread)
        thread.start()


def test_the_409_race_a_completion_is_too_early_and_a_release_is_not(log: Log) -> None:
    """The host still works after the completion; who sends then is refused, who waits for the release is not."""
    server = Server(log)
    client = Client(server, "a", 1, "completed")
    server.send("first")
    client.wait_for(1)  # completed
    with pytest.raises(Busy):
        server.send("lost by a client that infers that the server is idle")
    server.named.set()
    client.trigger = "released"
    client.wait_for(1)
    server.send("second")
    for thread in server.threads:
        thread.join(PATIENCE)
    assert server.accepted == ["first", "second"]


def test_clients_that_wait_for_the_release_lose_no_message(log: Log) -> None:
    """Several of them: a refusal is always followed by the release of the turn that it names."""
    server = Server(log)
    server.named.set()
    clients = [Client(server, name, 25, "released") for name in "abc"]
    threads = [threading.Thread(target=client.work) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    for thread in server.threads:
        thread.join(PATIENCE)
    assert sorted(server.accepted) == sorted(message for client in clients for message in client.messages)


def test_a_real_transcript_is_a_log(tmp_path: Path) -> None:
    """With the gate of a command line."""
    transcript = Transcript(tmp_path / "talk")
    gate = TurnGate(transcript, turn_hooks=[lambda: [{"role": "system", "content": "hook"}]])
    with gate.turn():
        transcript.append({"role": "user", "content": "hello"})
    gate.end_session()
    assert [record["content"] for record in transcript.read()] == ["hello", "hook"]
