"""One call, from its name and its body to its answer: bytes as they are, an iterator as a stream of
events, anything else as JSON. What a function raises is answered as an error and printed.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Callable, Generator, Mapping, Optional

from .errors import Refusal, UnserializableResult, describe, report
from .functions import Function
from .results import is_bytes, to_json
from .tasks import TaskLoop

JSON = "application/json"


@dataclass(frozen=True)
class Call:
    function: str
    body: bytes
    # Tells whether the caller is gone.
    hung_up: Callable[[], bool]


@dataclass(frozen=True)
class Answer:
    status: int
    content_type: str
    body: bytes
    # Of a stream: the events after the first. Whoever takes them closes them.
    more: Optional[Generator[bytes, None, None]] = None


def answer(call: Call, functions: Mapping[str, Function], tasks: TaskLoop) -> Answer:
    try:
        function = find(functions, call.function)
        parameters = parameters_of(call.body)
        function.check(parameters)
        result = function(parameters)
        if inspect.isawaitable(result):
            result = tasks.wait_for(result)
        if isinstance(result, AsyncIterator):
            result = tasks.iterate(result, call.hung_up)
        return answer_with(result)
    except Refusal as refusal:
        return Answer(refusal.status, JSON, to_json({"error": describe(refusal)}))
    except BaseException as error:  # SystemExit too: the other calls go on
        report(error)
        return Answer(500, JSON, to_json({"error": describe(error)}))


def find(functions: Mapping[str, Function], name: str) -> Function:
    if name in functions:
        return functions[name]
    known = ", ".join(functions)
    raise Refusal(404, "FunctionNotFound", f"there is no function '{name}', there are: {known}")


def parameters_of(body: bytes) -> dict[str, Any]:
    try:
        parameters = json.loads(body.decode("utf-8"), parse_constant=refuse_constant) if body else {}
    except RecursionError:
        raise Refusal(400, "InvalidParameters", "the parameters are nested too deeply") from None
    except ValueError as error:
        raise Refusal(400, "InvalidParameters", f"the parameters are not JSON: {error}") from None
    if not isinstance(parameters, dict):
        raise Refusal(400, "InvalidParameters", "the parameters are not a JSON object")
    return parameters


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def answer_with(result: Any) -> Answer:
    if is_bytes(result):
        return Answer(200, "application/octet-stream", bytes(result))
    if not isinstance(result, Iterator):
        return Answer(200, JSON, to_json(result))
    more = events(result)
    return Answer(200, "text/event-stream", next(more, b""), more)


def events(values: Iterator[Any]) -> Generator[bytes, None, None]:
    """An error before the first value is raised; one after it becomes the last event."""
    count = 0
    try:
        while True:
            event = next_event(values, count)
            if event is None:
                return
            count += 1
            yield event
    except GeneratorExit:
        raise
    except BaseException as error:
        if count == 0:
            raise
        report(error)
        yield b"event: error\ndata: " + to_json(describe(error)) + b"\n\n"
    finally:
        close(values)


def next_event(values: Iterator[Any], index: int) -> Optional[bytes]:
    for value in values:
        if is_bytes(value):
            raise UnserializableResult(f"result[{index}] is bytes, which an event cannot hold")
        return b"data: " + to_json(value, f"result[{index}]") + b"\n\n"
    return None


def close(values: Iterator[Any]) -> None:
    try:
        getattr(values, "close", lambda: None)()
    except BaseException as error:
        report(error)
