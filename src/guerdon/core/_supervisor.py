"""The parent side of `guerdon.core.workers`: one thread feeds, watches, kills and replaces all workers."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import InvalidStateError
from typing import Any

from guerdon.core._nursery_link import NurseryLink, how_it_ended
from guerdon.core._pool_jobs import Job, Worker
from guerdon.core._pool_wire import DONE, Garbage, Slate, missing_bytes, shared_file, take_frames

_SPLIT_AFTER = 0.02
_CLOSE_PATIENCE = 5.0


class Supervisor:
    """Owns the workers and the queue of jobs; all but `enqueue`, `wake` and `stop` is for its own thread."""

    def __init__(self, size: int, preload: Sequence[str], memory_bytes: int | None, name: str) -> None:
        self._size, self._preload, self._memory_bytes = size, tuple(preload), memory_bytes
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._arrivals: deque[Job[Any]] = deque()
        self._jobs: deque[Job[Any]] = deque()
        self._workers: dict[int, Worker] = {}
        self._worker_count = self._chunk_count = 0
        self._nursery: NurseryLink | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"guerdon-{name}-pool", daemon=True)
        self._thread.start()

    def enqueue(self, job: Job[Any]) -> None:
        """Queue a job (from any thread)."""
        self._arrivals.append(job)
        job.future.add_done_callback(lambda _: self.wake())
        self.wake()

    def wake(self) -> None:
        """Make the thread look at its queue and flags."""
        with contextlib.suppress(OSError):
            self._wake_write.send(b"\0")

    def alive(self) -> bool:
        """Whether it takes jobs: false after `stop` or when its thread failed."""
        return not self._stopping

    def stop(self) -> None:
        """Kill all workers, fail what is queued, join the thread."""
        self._stopping = True
        self.wake()
        self._thread.join()

    def abandon(self) -> None:
        """In a forked child: everything here is the parent's, so close the copied descriptors, no more."""
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()
        if self._nursery is not None:
            self._nursery.abandon()
        for worker in self._workers.values():
            worker.close()

    # The loop

    def _run(self) -> None:
        error: BaseException = RuntimeError("the worker pool was closed")
        try:
            while not self._stopping:
                self._turn()
        except BaseException as problem:  # noqa: BLE001 - a fault of this thread must reach the callers that wait
            error = problem
        finally:
            self._stopping = True
            self._end(error)

    def _turn(self) -> None:
        for key, events in self._selector.select(self._next_check()):
            if isinstance(key.data, Worker):
                self._attend(key.data, events)
            elif isinstance(key.data, NurseryLink):
                self._hear(key.data)
            else:
                with contextlib.suppress(BlockingIOError):
                    self._wake_read.recv(4096)
        while self._arrivals:
            self._jobs.append(self._arrivals.popleft())
        self._check_deadlines(time.monotonic())
        self._feed()

    def _next_check(self) -> float | None:
        """Seconds until something may be overdue; None when nothing runs."""
        now, waits = time.monotonic(), []
        idle = self._idle() > 0
        for worker in self._busy():
            waits.append(-worker.overdue(now))
            if worker.item is None and worker.job is not None:  # an item may start at any moment
                waits.append(worker.job.timeout)
            elif idle and len(worker.chunk) > 1:
                waits.append(_SPLIT_AFTER)
        return max(0.0, min(waits, default=0.0)) + 0.0005 if waits else None

    def _busy(self) -> list[Worker]:
        return [w for w in self._workers.values() if w.job is not None and not w.doomed]

    def _idle(self) -> int:
        return self._size - sum(w.busy or bool(w.doomed) for w in self._workers.values())

    def _check_deadlines(self, now: float) -> None:
        for worker in self._busy():
            if worker.overdue(now) < 0:
                continue
            self._attend(worker, selectors.EVENT_READ)  # its result may be on the way
            job, item = worker.job, worker.item
            late = worker.overdue(now)
            if job is None or worker.doomed or late < 0:
                continue
            self._kill(worker, "no sign of life")
            if item is not None:
                job.expire(item, job.timeout + late)

    # Feeding

    def _feed(self) -> None:
        while self._jobs and self._jobs[0].over:
            self._jobs.popleft()
        if not any(job.hungry for job in self._jobs):
            self._spread()
        for _ in range(self._idle()):
            job = self._next_job()
            if job is None:
                break
            self._give(job, job.take(self._size))
        self._keep_spare()

    def _give(self, job: Job[Any], chunk: list[int]) -> None:
        free = [w for w in self._workers.values() if w.job is None and not w.doomed]
        worker = next((w for w in free if job.key in w.known), free[0] if free else None) or self._start_worker()
        self._chunk_count += 1
        worker.assign(job, chunk, self._chunk_count)
        self._attend(worker, selectors.EVENT_WRITE)

    def _keep_spare(self) -> None:
        """A job that has cost a worker may cost more: have one ready, beyond the size, that has loaded its function.

        It does so while the others work, so that the next replacement starts without the import's delay.
        """
        job = next((j for j in self._jobs if j.kills and not j.over), None)
        alive = [w for w in self._workers.values() if not w.doomed]
        if job is None or len(alive) > self._size or any(w.job is not None and not w.chunk for w in alive):
            return
        if not any(w.job is None and job.key in w.known for w in alive):
            self._give(job, [])

    def _next_job(self) -> Job[Any] | None:
        """Take turns between the jobs, so that a small one does not wait for a large one."""
        for _ in range(len(self._jobs)):
            job = self._jobs.popleft()
            if not job.over:
                self._jobs.append(job)
                if job.hungry:
                    return job
        return None

    def _spread(self) -> None:
        """Nothing waits but workers are idle: take back what lies behind an item that runs long."""
        now = time.monotonic()
        for worker in self._busy() if self._idle() else ():
            job = worker.job
            if job is None or not worker.may_split(now, _SPLIT_AFTER):
                continue
            behind = worker.split()
            if not job.future.done():
                job.put_back(behind)

    # Workers

    def _start_worker(self) -> Worker:
        if self._nursery is None:
            self._nursery = NurseryLink(self._preload, self._memory_bytes)
            self._selector.register(self._nursery.control, selectors.EVENT_READ, self._nursery)
        self._worker_count += 1
        ours, theirs = socket.socketpair()
        page = shared_file()
        try:
            ours.setblocking(False)
            worker = self._workers[self._worker_count] = Worker(self._worker_count, ours, Slate(page))
            self._selector.register(ours, selectors.EVENT_READ, worker)
            self._nursery.fork(worker.number, theirs.fileno(), page)
        finally:
            theirs.close()
            os.close(page)
        return worker

    def _attend(self, worker: Worker, events: int) -> None:
        """Send and receive what is possible, then watch for what is left to do."""
        if not worker.watched:  # it was buried on another event of the same turn
            return
        if events & selectors.EVENT_WRITE:
            try:
                worker.push()
            except OSError:
                worker.outbox = memoryview(b"")
        if events & selectors.EVENT_READ and worker.pull() and missing_bytes(worker.inbox) == 0:
            self._accept(worker, worker.inbox)
        if worker.ended:
            self._unwatch(worker)
            self._kill(worker, "it closed its channel")
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.outbox else 0)
        if self._selector.get_key(worker.channel).events != wanted:
            self._selector.modify(worker.channel, wanted, worker)

    def _unwatch(self, worker: Worker) -> None:
        if worker.watched:
            worker.watched = False
            self._selector.unregister(worker.channel)

    def _accept(self, worker: Worker, buffer: bytearray) -> None:
        try:
            for frame in take_frames(buffer):
                job = worker.job
                worker.note(frame)
                if frame.kind == DONE and frame.chunk == worker.chunk_number and job is not None:
                    worker.job = None
                    job.put_back(worker.chunk)
        except Garbage:
            buffer.clear()
            self._kill(worker, "its function wrote to the pool's channel")

    def _kill(self, worker: Worker, why: str) -> None:
        if not worker.doomed and self._nursery is not None:
            worker.doomed = why
            if worker.job is not None:
                worker.job.kills += 1
            self._nursery.kill(worker.number)

    def _hear(self, nursery: NurseryLink) -> None:
        try:
            for number, status in nursery.ended():
                if number in self._workers:
                    worker = self._workers[number]
                    self._bury(worker, how_it_ended(status, worker.doomed))
        except EOFError:
            self._selector.unregister(nursery.control)
            cause = f"the process that forks workers ended: {nursery.close(0.0)}"
            self._nursery = None
            for worker in list(self._workers.values()):
                self._bury(worker, cause)

    def _bury(self, worker: Worker, cause: str) -> None:
        """Take what a dead worker has left behind and queue again what it had not done."""
        while worker.pull():
            pass
        self._accept(worker, worker.inbox)
        self._accept(worker, bytearray(worker.slate.waiting()))
        del self._workers[worker.number]
        self._unwatch(worker)
        job, position = worker.job, worker.position
        worker.close()
        if job is not None and not job.future.done():
            job.charge(worker.chunk, position, f"worker died ({cause})")
            job.put_back(worker.chunk)

    def _end(self, error: BaseException) -> None:
        if self._nursery is not None:
            self._nursery.close(_CLOSE_PATIENCE)
        for worker in self._workers.values():
            worker.close()
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()
        for job in {*self._jobs, *self._arrivals}:
            with contextlib.suppress(InvalidStateError):
                job.future.set_exception(error)
