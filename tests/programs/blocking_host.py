"""A threaded host that leaves its supervisors open: argv is a mode and a directory for each supervisor.

Modes: `leave` ends with jobs running, some of them waited for by daemon threads; `stubborn` with a job that ignores
TERM; `fork` forks and ends both; `interrupt` is interrupted while it waits, and goes on.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from adapters.blocking import BlockingSupervisor, WrongProcess
from adapters.blocking import loop as loop_module

if TYPE_CHECKING:
    from supervisor import Receipt

LONG = ["sleep", "1000"]


def leave(directories: list[str]) -> None:
    """Start a job in each, and end."""
    for directory in directories:
        supervisor = BlockingSupervisor(directory).open()
        job = supervisor.start(LONG)
        print(job.pid, flush=True)
        supervisor.on_completion(print)
        ready = threading.Event()
        for wait in (
            job.wait,
            supervisor.join,
            lambda job=job: list(job.follow()),
            lambda s=supervisor: list(s.completions()),
        ):

            def work(wait: object = wait, ready: threading.Event = ready) -> None:
                ready.set()
                wait()  # type: ignore[operator]

            threading.Thread(target=work, daemon=True).start()
            ready.wait()


def stubborn(directories: list[str]) -> None:
    """Leave a job that has to be killed, and longer than the exit waits."""
    loop_module.EXIT_SECONDS = 0.2  # type: ignore[misc]
    supervisor = BlockingSupervisor(directories[0]).open()
    job = supervisor.start(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"], kill_after=1000.0)
    with job.follow() as pages:
        assert next(pages).text == "ready\n"
    print(job.pid, flush=True)


def fork(directories: list[str]) -> None:
    """Use what was made before the fork in it, and something new."""
    supervisor = BlockingSupervisor(directories[0]).open()
    job = supervisor.start(LONG)
    pages, ends = job.follow(), supervisor.completions()
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
        print("parent", supervisor.run(["echo", "goes on"]).stdout, end="", flush=True)
        print(job.done, flush=True)
        return
    steps = [job.wait, supervisor.close, job.terminate, lambda: job.receipt, lambda: job.done, lambda: next(pages)]
    steps += [
        lambda: next(ends),
        lambda: supervisor.start(LONG),
        lambda: supervisor.jobs,
        lambda: supervisor.on_completion(print),
    ]
    for step in steps:
        try:
            step()
        except WrongProcess:
            continue
        raise AssertionError(step)
    pages.close()
    with BlockingSupervisor(directories[1]) as mine:
        print("fork", mine.run(["echo", "starts anew"]).stdout, end="", flush=True)


def interrupt(directories: list[str]) -> None:
    """Press Ctrl-C while the main thread waits, at each of the waits."""
    with BlockingSupervisor(directories[0]) as supervisor:
        job = supervisor.start(["sh", "-c", "read line; echo $line"], stdin="pipe")
        pages = job.follow()
        ends = supervisor.completions()
        ran: list[Receipt] = []
        for wait in (
            job.wait,
            supervisor.join,
            lambda: next(pages),
            lambda: next(ends),
            lambda: ran.append(supervisor.run(LONG)),
        ):
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            try:
                wait()
            except KeyboardInterrupt:
                timer.join()
            else:
                raise AssertionError(wait)
        running = next(each for each in supervisor.jobs if each.id != job.id)
        print("run", running.wait().process.reason, flush=True)
        job.write(b"still here\n")
        print("job", job.wait().process.code, next(pages).text, end="", flush=True)
        end = next(ends)
        end.acknowledge()
        print("end", end.receipt.capture_id == job.capture_id, flush=True)


if __name__ == "__main__":
    {"leave": leave, "stubborn": stubborn, "fork": fork, "interrupt": interrupt}[sys.argv[1]](sys.argv[2:])
