"""The rules of tests/conftest.py apply to the suite itself."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
SKIPPED = """
import pytest

@pytest.mark.skip(reason="marked")
def test_marked(): pass

def test_called(): pytest.skip("called")

def test_passes(): pass
"""


@pytest.mark.parametrize(("skips_fail", "outcomes"), [("1", [1, 0, 3]), ("", [1, 3, 0])])
def test_a_skip_is_a_failure_where_it_is_asked_for(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    skips_fail: str,
    outcomes: list[int],
) -> None:
    """Check that a skip is a failure if `DPAUDIT_NO_SKIPS` is set.

    The test compares the numbers of tests that passed, were skipped and failed, and of files.
    """
    monkeypatch.setenv("DPAUDIT_NO_SKIPS", skips_fail)
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    absent = "import pytest\npytest.importorskip('no_such_package')"
    pytester.makepyfile(test_skipped=SKIPPED, test_absent=absent)
    found = pytester.inline_run("--continue-on-collection-errors", "-p", "no:cacheprovider")
    assert found.countoutcomes() == outcomes
