"""Several processes that serve one address: workers that answer, and a parent that writes the logs.

The parent owns the socket, the event log and the folder of feedback, and answers no request.  A
worker calls it over a pipe, so that rows have one writer, which knows what was stored before,
whichever worker they reach.  A worker that dies is started again; one whose parent dies ends.
"""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from firstpage.core import DataError
from firstpage.serving.event_log import EventLog
from firstpage.serving.event_rows import STORED, Row
from firstpage.serving.feedback import FeedbackFolder
from firstpage.serving.limits import Refusal

log = logging.getLogger("firstpage.serving")
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # by which prometheus_client shares values
POLL_INTERVAL = 0.1  # seconds between checks of the workers
RESTART_DELAY = 1.0  # seconds after which a worker that cannot start is tried again
CALL_TIMEOUT = 60.0  # seconds for a reload by other workers
Answer = Callable[[str, Sequence[Any]], Any]


class Channel:
    """Calls between two processes; each has a future for its result.

    Parameters
    ----------
    connection : Connection
        The pipe to the other process.
    answer : callable
        Returns the result of a call, by its name and arguments, or a future of it.
    ended : callable
        Called when the other process has ended.
    """

    def __init__(
        self, connection: Connection, answer: Answer, ended: Callable[[], object] = lambda: None
    ) -> None:
        self._connection, self._answer, self._ended = connection, answer, ended
        self._lock, self._numbers = threading.Lock(), itertools.count()
        self._pending: dict[int, Future[Any]] = {}
        self.reader = threading.Thread(target=self._read, name="calls", daemon=True)
        self.reader.start()

    def call(self, name: str, *args: Any) -> Future[Any]:
        """Call the other process."""
        future, number = Future[Any](), next(self._numbers)
        self._pending[number] = future
        if not self._send((number, name, args)):
            self._fail()
        return future

    def _send(self, message: tuple[int, str | None, Any]) -> bool:
        """Send a message; return whether the other process is there."""
        try:
            with self._lock:
                self._connection.send(message)
        except (OSError, ValueError):
            return False
        return True

    def _read(self) -> None:
        """Answer calls, and set the results of own ones."""
        with suppress(OSError, EOFError):
            while True:
                number, name, content = self._connection.recv()
                if name is None:
                    _settle(self._pending.pop(number, None), content)
                    continue
                try:
                    result = self._answer(name, content)
                except Exception as error:
                    result = error
                if isinstance(result, Future):
                    result.add_done_callback(partial(self._reply_later, number))
                else:
                    self._reply(number, result)
        self._connection.close()
        self._fail()
        self._ended()

    def _reply_later(self, number: int, future: Future[Any]) -> None:
        self._reply(number, future.exception() or future.result())

    def _reply(self, number: int, result: Any) -> None:
        self._send((number, None, result))

    def _fail(self) -> None:
        """Refuse all calls that wait for an answer."""
        while self._pending:
            with suppress(KeyError):
                _, future = self._pending.popitem()
                _settle(future, Refusal("the server is being restarted; try again.", 503))


def _settle(future: Future[Any] | None, result: Any) -> None:
    """Set the result of a future that still waits for it."""
    if future is None or not future.set_running_or_notify_cancel():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)


class RemoteLog:
    """The event log of the parent, in a worker; see `EventLog`."""

    def __init__(self, channel: Channel, fields: Iterable[str] = STORED) -> None:
        self._channel, self.fields = channel, frozenset(fields)

    def submit(self, rows: Sequence[Row], urgent: bool = True) -> Future[int]:
        """Append rows whose ids are new; the result is their number, once they are on disk."""
        return self._channel.call("submit", rows, urgent)

    def counts(self) -> Mapping[str, int]:
        """Return the counts of the log for the metrics."""
        counts: Mapping[str, int] = self._channel.call("counts").result(CALL_TIMEOUT)
        return counts

    def close(self) -> None:
        """Do nothing: the parent closes the log."""


class RemoteFeedback:
    """The folder of feedback of the parent, in a worker; see `FeedbackFolder`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def add_preference(self, row: Row) -> bool:
        """Store a preference; return False if one with its `id` is stored already."""
        return bool(self._channel.call("add_preference", row).result())

    def add_query(self, text: str, documents: Iterable[Row]) -> bool:
        """Store a query to judge and its documents; return False if it is stored already."""
        return bool(self._channel.call("add_query", text, list(documents)).result())

    def close(self) -> None:
        """Do nothing: the parent closes the files."""


class WorkerGroup:
    """The processes of a server, and what they call.

    Parameters
    ----------
    work : callable
        Serves on a socket, in a worker; it calls the parent over the connection, first "started" or
        "failed".
    listener : socket
        The socket.
    events, feedback : EventLog, FeedbackFolder or None
        What the workers write.
    """

    def __init__(
        self,
        work: Callable[[socket.socket, Connection], object],
        listener: socket.socket,
        events: EventLog | None,
        feedback: FeedbackFolder | None,
    ) -> None:
        self._work, self._listener, self._events = work, listener, events
        self._answers: dict[str, Callable[..., Any]] = {}
        if events is not None:
            self._answers |= {"submit": events.submit, "counts": events.counts}
        if feedback is not None:
            self._answers |= {
                name: getattr(feedback, name) for name in ("add_preference", "add_query")
            }
        self._running: dict[BaseProcess, Channel] = {}
        self._reloads = ThreadPoolExecutor(1, "reload")
        self._stopped = threading.Event()

    def run(self, count: int, ready: Callable[[], object], grace: float) -> None:
        """Start the workers, and keep them running until this process is asked to stop."""
        for kind in (signal.SIGINT, signal.SIGTERM):
            signal.signal(kind, lambda *_: self._stopped.set())
        signal.signal(signal.SIGHUP, lambda *_: self._signal(signal.SIGHUP))
        with ExitStack() as resources:
            folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="firstpage-"))
            os.environ[METRICS_FOLDER] = folder  # before a worker imports prometheus_client
            resources.callback(self._stop, grace)
            while len(self._running) < count and not self._stopped.is_set():
                problem = self._start()
                if problem is not None:
                    raise DataError(problem)
            ready()
            self._watch(count, folder)

    def _watch(self, count: int, folder: str) -> None:
        """Start a worker for each that ends."""
        from prometheus_client.multiprocess import mark_process_dead

        refused, next_start = None, 0.0
        while not self._stopped.wait(POLL_INTERVAL):
            for process in [each for each in self._running if not each.is_alive()]:
                log.error("a worker ended (exit code %s), and is replaced.", process.exitcode)
                del self._running[process]
                mark_process_dead(process.pid, folder)  # type: ignore[no-untyped-call]
            if len(self._running) < count and time.monotonic() > next_start:
                problem = self._start()
                if problem is not None and problem != refused:
                    log.error("a worker cannot start, and is tried again: %s", problem)
                refused, next_start = problem, time.monotonic() + RESTART_DELAY * bool(problem)

    def _start(self) -> str | None:
        """Start a worker; return why it cannot serve."""
        copies = multiprocessing.get_context("forkserver")
        copies.set_forkserver_preload(["firstpage.serving.process"])
        ours, theirs = copies.Pipe()
        process = copies.Process(target=self._run_worker, args=(self._work, self._listener, theirs))
        process.start()
        theirs.close()
        started = Future[str | None]()

        def answer(name: str, args: Sequence[Any]) -> Any:
            if name == "started":
                return started.set_result(args[0])
            if name == "reload":
                return self._reloads.submit(self._reload_others, process)
            return self._answers[name](*args)

        def ended() -> None:
            if not started.done():
                started.set_result("a worker ended before it could serve; see its error above.")

        channel = Channel(ours, answer, ended)
        problem = started.result()
        if problem is None:
            self._running[process] = channel
        return problem

    @staticmethod
    def _run_worker(work: Any, listener: socket.socket, connection: Connection) -> None:
        """Serve in a worker.  (A method of an object with threads cannot be sent to a process.)"""
        work(listener, connection)

    def _reload_others(self, process: BaseProcess) -> Collection[str]:
        """Reload the model in all other workers; return why they refuse it."""
        calls = [c.call("reload") for each, c in list(self._running.items()) if each is not process]
        reasons = []
        for call in calls:
            try:
                reasons.append(call.result(CALL_TIMEOUT))
            except Refusal:
                pass  # it has ended, and the next one reads the file
            except TimeoutError:
                reasons.append("it does not answer.")
        return [reason for reason in reasons if reason is not None]

    def _signal(self, number: int) -> None:
        for process in self._running:
            with suppress(ProcessLookupError):
                os.kill(process.pid or 0, number)

    def _stop(self, grace: float) -> None:
        """Let the workers end the requests in progress, and end them."""
        self._listener.close()
        self._signal(signal.SIGTERM)
        for process, channel in self._running.items():
            process.join(grace)
            process.kill()
            channel.reader.join(grace)  # its last rows are in the pipe
        self._reloads.shutdown(wait=False)
