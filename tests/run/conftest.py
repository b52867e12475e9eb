"""Fixtures for projects that run inside this process.

Only tests of processes start new processes.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.pytester import LineMatcher

from dpaudit.run.cli import main
from dpaudit.store.files import CHECKSUM, write_sealed

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    def matches(self, *lines: str) -> None:
        """Fail unless the output contains these lines, in order. Lines may contain wildcards."""
        LineMatcher(self.out.splitlines()).fnmatch_lines(lines)


@dataclass(frozen=True)
class Home:
    """A directory with a project."""

    path: Path

    def write(self, **files: str) -> Home:
        """Write Python files, whose names are given without .py."""
        for name, text in files.items():
            self.put(f"{name}.py", text)
        return self

    def put(self, name: str, text: str) -> Path:
        """Write one file, and make its folders."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def json(self, name: str) -> dict[str, Any]:
        """Read a stored file."""
        return json.loads((self.path / name).read_text())

    def reseal(self, name: str, **changes: Any) -> None:
        """Change a stored file and update its checksum, as the writer of the file could."""
        data = {**self.json(name), **changes}
        data.pop(CHECKSUM)
        write_sealed(self.path / name, data)

    def dpaudit(self, *args: str) -> Done:
        """Run a command of dpaudit, in this process unless the command uses workers."""
        return _inside(self.path, lambda: _run_main(args))

    def pytest(self, *args: str) -> Done:
        """Run pytest in this process, as ``python -m pytest``."""

        def call() -> int:
            sys.path.insert(0, str(self.path))
            return int(pytest.main([*args, "-p", "no:cacheprovider", *_ALONE]))

        return _inside(self.path, call)

    def process(self, *args: str, stdin: str = "") -> Done:
        """Run Python in a separate process, as a user would."""
        dropped = ("PYTEST", "PYTHONPATH")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        ran = subprocess.run(
            [sys.executable, "-W", "error::RuntimeWarning", *args],
            cwd=self.path,
            capture_output=True,
            text=True,
            env={**clean, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)},
            input=stdin,
            check=False,
        )
        return Done(ran.returncode, ran.stdout, ran.stderr)

    def dpaudit_process(self, *args: str, stdin: str = "") -> Done:
        """Run a command of dpaudit in a separate process."""
        return self.process("-c", "from dpaudit.run.cli import main; main()", *args, stdin=stdin)


_ALONE = ("-p", "no:xdist", "-p", "no:faulthandler", "-p", "no:timeout")


def _run_main(args: tuple[str, ...]) -> int:
    before, sys.argv = sys.argv, ["dpaudit", *args]
    try:
        main()
    except SystemExit as done:
        return int(done.code or 0)
    finally:
        sys.argv = before
    raise AssertionError("main() returned")


def _inside(path: Path, call: Any) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with (
        _restored(path),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.resetwarnings()  # a user has none of the filters of these tests
        warnings.simplefilter("error", RuntimeWarning)
        gc.freeze()  # pytest collects garbage after a session, and skips frozen objects
        try:
            code = call()
        finally:
            gc.unfreeze()
    return Done(int(code), out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _restored(path: Path) -> Iterator[None]:
    """Restore the modules, paths and environment of this process after a project has run."""
    where, paths, environment = os.getcwd(), list(sys.path), dict(os.environ)
    known = set(sys.modules)
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(where)
        sys.path[:] = paths
        os.environ.clear()
        os.environ.update(environment)
        sys.dont_write_bytecode = bytecode
        ours = (ROOT, sys.prefix, sys.base_prefix)
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and not any(Path(file).is_relative_to(place) for place in ours):
                del sys.modules[name]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return an empty directory."""
    return Home(tmp_path)
