"""Which functions an entry offers, and whether parameters fit one.

Offered is what `__all__` lists, where the entry has it; else what is defined in the entry itself, so that
an imported `sqrt` is not served by accident. Names that begin with `_` are private, and classes are no
functions.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any, Callable, Mapping, Optional, Sequence

from .errors import Refusal


def load(entry: str) -> ModuleType:
    """Imports a file, under the name by which the modules beside it would."""
    name = os.path.splitext(os.path.basename(entry))[0]
    spec = importlib.util.spec_from_file_location(name, entry)
    if spec is None or spec.loader is None:
        raise ImportError(f"{entry} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def functions_of(module: ModuleType) -> dict[str, Function]:
    callables = {
        name: value
        for name, value in vars(module).items()
        if callable(value) and not inspect.isclass(value) and not name.startswith("_")
    }
    public = getattr(module, "__all__", None)
    return {
        name: Function(name, value)
        for name, value in callables.items()
        if (name in public if public is not None else is_own(value, module))
    }


def is_own(value: Any, module: ModuleType) -> bool:
    return getattr(value, "__module__", None) == module.__name__


class Function:
    """A function as a call reaches it: by its name, with parameters by theirs."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        self.signature = signature_of(function)

    def __call__(self, parameters: Mapping[str, Any]) -> Any:
        return self.function(**parameters)

    def check(self, parameters: Mapping[str, Any]) -> None:
        """Refuses what Python would, before the function runs: a TypeError from within is another matter."""
        if self.signature is None:
            return
        declared = self.signature.parameters.values()
        unreachable = [p.name for p in declared if is_required(p) and p.kind is p.POSITIONAL_ONLY]
        missing = [p.name for p in declared if is_required(p) and p.name not in parameters]
        taken = {p.name for p in declared if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        takes_any = any(p.kind is p.VAR_KEYWORD for p in declared)
        unexpected = [] if takes_any else [name for name in parameters if name not in taken]
        if unreachable:
            self.refuse("takes {} by position alone, which no call can give", unreachable)
        if missing:
            self.refuse("is missing {}", missing)
        if unexpected:
            self.refuse("does not take {}", unexpected)

    def refuse(self, what: str, names: Sequence[str]) -> None:
        noun = "parameter" if len(names) == 1 else "parameters"
        listed = f"the {noun} " + ", ".join(f"'{name}'" for name in names)
        raise Refusal(400, "InvalidParameters", f"{self.name}() {what.format(listed)}")


def signature_of(function: Callable[..., Any]) -> Optional[inspect.Signature]:
    """That of a decorator's wrapper, where there is one: it may fill in what the wrapped function needs."""
    try:
        return inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        pass
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # some callables of C have none
        return None


def is_required(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variadic
