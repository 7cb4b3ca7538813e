"""What the suite of the runners calls: main.ts has the same functions, as far as its language has them."""

import asyncio
import logging
import os
import sys
import time
from datetime import date
from math import sqrt  # not to be served

import beside


def _arrive(folder, name):
    """Tells the test how far a function is."""
    open(os.path.join(folder, name), "w").close()


def _wait(folder, name):
    """Waits until the test, or another call, is as far."""
    while not os.path.exists(os.path.join(folder, name)):
        time.sleep(0.005)


async def _wait_async(folder, name):
    while not os.path.exists(os.path.join(folder, name)):
        await asyncio.sleep(0.005)


class OutOfStock(Exception):
    pass


constant = 42
root = sqrt(4)


class Thing:
    pass


def echo(value):
    return value


async def echoAsync(value):
    await asyncio.sleep(0)
    return value


def nothing():
    pass


def teapot():
    return {"status_code": 418, "message": "short and stout"}


def deny():
    raise OutOfStock("no more pears")


async def denyAsync():
    raise OutOfStock("no more pears")


def misuse():
    raise TypeError("raised inside")


def leave():
    sys.exit(3)


async def leaveAsync():
    sys.exit(3)


def binary():
    return bytearray([0, 255, 10, 128])


def neighbour():
    return beside.NAME


def _hidden():
    return "never"


def greet(name, *, greeting="Hello", **more):
    return [greeting, name, more]


def pair(left, right):
    return [left, right]


def positional(left, /, right=None):
    return left


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def flawed(kind):
    circle = {"name": "circle"}
    circle["parts"] = [1, {"whole": circle}]
    return {
        "nan": {"scores": [1, 2, float("nan")]},
        "infinity": float("-inf"),
        "set": {"items": [0, 1, {2}]},
        "object": {"on a day": date(2024, 1, 1)},
        "bytes": [b"raw"],
        "key": {"table": {(1, 2): 3}},
        "digits": [10**5000],
        "circle": circle,
    }[kind]


def count(to, failAfter=None):
    for number in range(1, to + 1):
        if failAfter is not None and number > failAfter:
            raise OutOfStock(f"no more than {failAfter}")
        yield {"number": number}


async def countAsync(to, failAfter=None):
    for value in count(to, failAfter):
        await asyncio.sleep(0)
        yield value


def flawedStream():
    yield 1
    yield {"bad": [float("nan")]}


def gated(folder):
    yield "first"
    _wait(folder, "go")
    yield "second"


def endless(folder):
    try:
        number = 0
        while True:
            yield number
            number += 1
    finally:
        _arrive(folder, "closed")


async def silent(folder):
    try:
        yield "and now nothing"
        await asyncio.sleep(60)
    finally:
        _arrive(folder, "closed")


_floods = 0


def flood():
    global _floods
    for _floods in range(1, 1001):
        yield "x" * 64 * 1024


def flooded():
    return _floods


def slow(folder):
    _arrive(folder, "started")
    _wait(folder, "go")
    return "done"


def meet(folder, me, other):
    print(me, "waits,", end=" ")
    _arrive(folder, me)
    _wait(folder, other)
    print("and has met", other)
    return me


async def meetAsync(folder, me, other):
    print(me, "waits,", end=" ")
    _arrive(folder, me)
    await _wait_async(folder, other)
    print("and has met", other)
    return me


async def chatter():
    print("two\nlines")
    print("to stderr", file=sys.stderr)
    logging.warning("from the log")

    async def task():
        print("from a task")

    await asyncio.create_task(task())
    await asyncio.to_thread(print, "from a thread")
    sys.stdout.buffer.write(b"without an end")


def exit(code):
    os._exit(code)
