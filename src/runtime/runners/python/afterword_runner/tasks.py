"""Asynchronous functions and generators, all on one event loop in a thread of its own, so that what they
share (a client, a pool, a lock) works. Seen from a call's thread they are like the plain ones.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import traceback
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator

# How often it is seen whether the caller of a silent generator is still there.
HANG_UP_CHECK_SECONDS = 0.5

_END = object()


class TaskLoop:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def start(self) -> None:
        threading.Thread(target=self._run, name="afterword-tasks", daemon=True).start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        except BaseException:  # a task outside any call has raised SystemExit
            traceback.print_exc()
            os._exit(1)

    def wait_for(self, awaitable: Awaitable[Any]) -> Any:
        """Its result, or its error raised here. It inherits the context of this thread."""

        async def outcome() -> tuple[Any, Any]:
            # What would end the loop is an error of this call alone.
            try:
                return await awaitable, None
            except BaseException as error:
                return None, error

        value, error = asyncio.run_coroutine_threadsafe(outcome(), self._loop).result()
        if error is not None:
            raise error
        return value

    def iterate(self, stream: AsyncIterator[Any], hung_up: Callable[[], bool]) -> Iterator[Any]:
        """The values of an asynchronous iterator, which runs as one task and waits until each is taken.
        When this generator is closed or the caller has hung up, the task is cancelled and the iterator
        closed, and this waits for it.
        """
        steps: queue.SimpleQueue[Any] = queue.SimpleQueue()

        async def start() -> asyncio.Future[None]:
            task = asyncio.ensure_future(hand_over(stream, steps))
            task.add_done_callback(lambda _: steps.put(_END))
            return task

        task = self.wait_for(start())
        step = None
        try:
            while step is not _END:
                try:
                    step = steps.get(timeout=HANG_UP_CHECK_SECONDS)
                except queue.Empty:
                    if hung_up():
                        return
                    continue
                if isinstance(step, BaseException):
                    raise step
                if step is not _END:
                    value, taken = step
                    yield value
                    self._loop.call_soon_threadsafe(taken.set)
        finally:
            self._loop.call_soon_threadsafe(task.cancel)
            while step is not _END:
                step = steps.get()


async def hand_over(stream: AsyncIterator[Any], steps: queue.SimpleQueue[Any]) -> None:
    try:
        async for value in stream:
            taken = asyncio.Event()
            steps.put((value, taken))
            await taken.wait()
    except BaseException as error:
        steps.put(error)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
