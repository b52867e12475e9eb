"""Check an installed dpaudit in an environment without other packages.

`make dist` runs this check. `python .ci/check_install.py WHEEL` makes an empty environment and
installs the wheel into it without extras. Then the script audits from outside of the checkout.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

MODULE = """
from dpaudit import NeighborPair, PureDP

PAIR = NeighborPair([[1.0]], [[0.0]])


def total(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


def audit_total(auditor):
    auditor.check(total, PureDP(1.0), PAIR, draws=3000)


def audit_too_much(auditor):
    auditor.check(total, PureDP(0.2), PAIR, draws=3000)
"""
WITHOUT_EXTRAS = """
import importlib.util
from audit_mine import PAIR, PureDP, total
from dpaudit import audit

for extra in ("matplotlib", "hypothesis", "pandas", "distributed", "dp_accounting", "pyarrow"):
    assert importlib.util.find_spec(extra) is None, extra
result = audit(total, PureDP(1.0), PAIR, draws=2000, seed=1)
result.assert_not_refuted()
assert result.summary().startswith("NOT REFUTED")
try:
    result.plot()
except ModuleNotFoundError as error:
    assert "dpaudit[plot]" in str(error), error
else:
    raise AssertionError("there are plots without matplotlib")
try:
    from dpaudit import check_sensitivity
except ModuleNotFoundError as error:
    assert "dpaudit[ledger]" in str(error), error
else:
    raise AssertionError("cases are generated without hypothesis")
"""


def main(wheel: str) -> int:
    """Install a wheel in an empty environment, and print the size of the environment."""
    with tempfile.TemporaryDirectory() as folder:
        home, place = Path(folder) / "empty", Path(folder) / "project"
        venv.create(home, with_pip=True)
        python, pages = home / "bin" / "python", home / "lib"
        before = _bytes(pages)
        install = [python, "-m", "pip", "install", "--quiet", Path(wheel).resolve()]
        subprocess.run(install, check=True)
        size = _bytes(pages) - before
        place.mkdir()
        (place / "audit_mine.py").write_text(MODULE)
        subprocess.run([python, "-c", WITHOUT_EXTRAS], cwd=place, check=True)
        dpaudit = [home / "bin" / "dpaudit", "run", "audit_mine.py", "--jobs", "0"]
        ran = subprocess.run(dpaudit, cwd=place, capture_output=True, text=True, check=False)
        wanted = ("1 NOT REFUTED", "1 REFUTED", "report: reports/index.html")
        missing = [words for words in wanted if words not in ran.stdout]
        if ran.returncode != 1 or missing or not (place / "reports" / "index.html").is_file():
            print(ran.stdout, ran.stderr, f"missing: {missing}", sep="\n")
            return 1
        new = Path(folder) / "new"
        subprocess.run([home / "bin" / "dpaudit", "init", new], check=True)
        subprocess.run([home / "bin" / "dpaudit", "run", "--strict"], cwd=new, check=True)
    print(f"{Path(wheel).name} works by itself; with all that it needs it is {size / 1e6:.0f} MB")
    return 0


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
