"""Program that runs the mechanism of a `Subprocess` in the environment of another Python.

The program runs under any Python from version 3.7 on. The program imports nothing of dpaudit and
needs only numpy. The class `Subprocess` also uses the functions below, which read and write
messages.
"""
# ruff: noqa
# mypy: ignore-errors

import importlib
import importlib.util
import io
import json
import os
import random
import sys
import threading
import time
from typing import Any

import numpy as np


def load(target):
    module, _, name = target.rpartition(":")
    sys.path.insert(0, os.getcwd())
    if module.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
        spec = importlib.util.spec_from_file_location(os.path.basename(module)[:-3], module)
        found = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = found
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def data_of(facts, arrays):
    kind = facts["form"]
    if kind == "array":
        return arrays[""]
    if kind == "constant":
        return facts["value"]
    if kind == "sequence":
        parts = np.split(arrays[""], np.cumsum(arrays["counts"])[:-1])
        return [part.astype(dtype) for part, dtype in zip(parts, facts["dtypes"])]
    if kind == "tables":
        return {
            key: data_of(
                part,
                {
                    name[len(key) + 1 :]: array
                    for name, array in arrays.items()
                    if name.startswith(key + "/")
                },
            )
            for key, part in facts["parts"].items()
        }
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "data must not be a DataFrame, because pandas is not installed in this environment"
        )
    return pandas.DataFrame(facts["columns"])


def plain(value):
    """Return a draw in the types that JSON has."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def one(function, data, style, rng):
    if style == "rng":
        return function(data, rng=rng)
    number = int(rng.integers(2**32)) if style != "none" else 0
    if style == "integer":
        return function(data, seed=number)
    if style == "legacy":
        np.random.seed(number)
        random.seed(number)
    return function(data)


def answer(function, style, facts, arrays):
    rng = np.random.default_rng(facts["seed"])
    size = facts["size"]
    if style == "vectorised":
        outputs = function(data_of(facts["data"], arrays), size, rng=rng)
        try:
            array = np.asarray(outputs)
        except ValueError:
            array = np.empty(0, dtype=object)
        if array.dtype != object:
            return {}, {"array": array}
        return {"draws": [["value", plain(draw)] for draw in outputs]}, {}
    draws = []
    for _ in range(size):
        data = data_of(facts["data"], arrays)
        try:
            draws.append(["value", plain(one(function, data, style, rng))])
        except Exception as error:
            if not facts["catches"]:
                raise
            draws.append(["failure", {"raised": type(error).__name__}])
    return {"draws": draws}, {}


def read(stream: Any) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    content = stream.read(int.from_bytes(head, "big"))
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        facts = json.loads(str(file["facts"]))
        return facts, {name[2:]: file[name] for name in file.files if name.startswith("a/")}


def write(stream: Any, facts: Any, arrays: Any) -> None:
    file = io.BytesIO()
    named = {"a/" + name: array for name, array in arrays.items()}
    np.savez(file, facts=np.array(json.dumps(facts)), **named)
    content = file.getvalue()
    stream.write(len(content).to_bytes(8, "big") + content)
    stream.flush()


def end_with_parent():
    """End this process soon after its parent has died, even if a call is running."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main():
    end_with_parent()
    target, style = sys.argv[1:]
    # Output that the mechanism prints must not be read as an answer.
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    del sys.path[0]  # the folder that contains this file
    try:
        function = load(target)
    except BaseException as error:
        write(stream, {"error": "%s: %s" % (type(error).__name__, error)}, {})
        return
    write(stream, {"ready": True}, {})
    while True:
        try:
            facts, arrays = read(sys.stdin.buffer)
        except EOFError:
            return
        try:
            reply = answer(function, style, facts, arrays)
        except Exception as error:
            reply = {"error": "%s: %s" % (type(error).__name__, error)}, {}
        write(stream, *reply)


if __name__ == "__main__":
    main()
