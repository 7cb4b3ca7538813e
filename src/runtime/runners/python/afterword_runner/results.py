"""A function's result as JSON: compact UTF-8. What JSON cannot hold is refused, with the path of the
offending value.
"""

from __future__ import annotations

import json
import math
from typing import Any, Iterator, Optional

from .errors import UnserializableResult

_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def is_bytes(value: Any) -> bool:
    """Bytes are a result of their own kind, and not JSON."""
    return isinstance(value, (bytes, bytearray, memoryview))


def to_json(value: Any, path: str = "result") -> bytes:
    """`path` is what the value is called in the message of a refusal."""
    try:
        # A lone surrogate has no UTF-8; its escape is the same in Python and in JSON.
        return _encoder.encode(value).encode("utf-8", "backslashreplace")
    except RecursionError:
        flaw = find_flaw(value, path) or f"{path} is nested too deeply for JSON"
    except (TypeError, ValueError) as error:
        flaw = find_flaw(value, path) or f"{path} cannot be written as JSON: {error}"
    raise UnserializableResult(flaw)


def find_flaw(root: Any, path: str) -> Optional[str]:
    """What is wrong with a value that could not be encoded. Without recursion: it may be deep."""
    members = iter([("", root)])
    outer: list[Iterator[tuple[str, Any]]] = []  # what is left of the containers around these members
    trail: list[str] = []  # the step into each of them
    around: dict[int, int] = {}  # how deep each of them is, by its identity
    while True:
        for step, value in members:
            flaw = flaw_of(value)
            if flaw is None and id(value) in around:
                flaw = f"refers back to {path}{''.join(trail[: around[id(value)]])}"
            if flaw is not None:
                return f"{path}{''.join(trail)}{step} {flaw}, which JSON cannot hold"
            if isinstance(value, (dict, list, tuple)):
                outer.append(members)
                trail.append(step)
                around[id(value)] = len(trail)
                members = members_of(value)
                break
        else:
            if not outer:
                return None
            members = outer.pop()
            trail.pop()
            around.popitem()


def members_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        return ((step_to(key), member) for key, member in value.items())
    return ((f"[{index}]", item) for index, item in enumerate(value))


def step_to(key: Any) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{json.dumps(key)}]"


def flaw_of(value: Any) -> Optional[str]:
    """What is wrong with the value itself, not with what it contains."""
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {json.dumps(value)}"
    if isinstance(value, dict):
        bad = (key for key in value if not is_key(key))
        return next((f"has a key that is {a_type(key)}" for key in bad), None)
    if isinstance(value, int):
        return None if is_printable(value) else "is an int of too many digits"
    if value is None or isinstance(value, (str, list, tuple)):
        return None
    return f"is {a_type(value)}"


def is_key(key: Any) -> bool:
    return key is None or (isinstance(key, (str, int, float)) and flaw_of(key) is None)


def is_printable(value: int) -> bool:
    """Python refuses to write out an int of some thousand digits, since it takes so long."""
    try:
        return bool(str(int(value)))
    except ValueError:
        return False


def a_type(value: Any) -> str:
    if isinstance(value, float):
        return json.dumps(value)
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
