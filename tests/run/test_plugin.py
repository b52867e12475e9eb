"""Tests of the collection, the words and the exit codes of the pytest plugin."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from dpaudit.errors import drop_own_frames

AUDITS = """
import numpy as np
import pytest
from dpaudit import NeighborPair, PureDP

PAIR = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))

def laplace(scale):
    def noisy(data, size, *, rng):
        return data.sum() + rng.laplace(scale=scale, size=size)
    noisy.__name__ = f"laplace_{scale}"
    return noisy
"""

HONEST = """
def audit_honest(auditor):
    auditor.check(laplace(1.0), PureDP(1.0), PAIR, mutants=[laplace(0.1)], draws=800)
"""

BROKEN = """
def audit_broken(auditor):
    claim = PureDP(1.0, source="a paper")
    auditor.check(laplace(0.1), claim, PAIR, draws=400)
"""


@pytest.fixture
def project(home):
    """Return a function that makes a project whose audits the caller writes."""

    def make(*parts, ini=""):
        home.put("pytest.ini", f"[pytest]\ndpaudit_collect = true\n{ini}")
        return home.write(audit_case=AUDITS + "".join(parts))

    return make


def run(home, *args):
    return home.pytest(*args)


def workers(home, *args, count=2):
    """Run with workers in separate processes."""
    return home.process("-m", "pytest", "-p", "no:cacheprovider", f"-n{count}", *args)


def test_honest_mechanism_is_not_refuted(project):
    result = run(project(HONEST), "-v")
    assert result.code == 0
    result.matches("*audit_honest NOT REFUTED*", "*1 not refuted*")


@pytest.mark.slow
def test_refutation_fails_and_prints_its_witness(project):
    result = run(project(HONEST, BROKEN))
    assert result.code == 1
    result.matches(
        "*= privacy =*",
        "REFUTED  audit_case::audit_broken  (*)",
        "  The claim is epsilon = 1 (a paper), but the mechanism needs at least epsilon = *",
        "  pair                custom: replace_user, shape 1x1, user 0 differs",
        "  reproduce           python -m pytest --dpaudit audit_case.py::audit_broken *-seed=0*",
        "*1 not refuted, 1 refuted*",
    )


def test_what_a_file_imports_from_dpaudit_is_no_audit_of_its_own(project):
    result = run(project("from dpaudit import audit, audit_one_run, audit_outputs\n", HONEST))
    assert result.code == 0
    result.matches("*1 not refuted*")


@pytest.mark.slow
def test_nothing_is_collected_unless_the_project_asks(home):
    home.write(audit_case=AUDITS + HONEST).put("pytest.ini", "[pytest]")
    assert run(home).code == 5
    assert run(home, "--dpaudit").code == 0


IDLE = """
import sys

def test_idle():
    heavy = {"scipy", "sklearn", "dpaudit.engine", "dpaudit.properties", "dpaudit.store"}
    assert not heavy & set(sys.modules)
"""


def test_idle_session_imports_nothing_heavy(home):
    home.write(test_idle=IDLE)
    assert home.process("-m", "pytest", "-p", "no:cacheprovider").code == 0
    assert run(home, "--dpaudit-profile=").code == 4
    assert run(home, "--dpaudit-seed=x").code == 4


def test_mutant_that_survives_fails_the_audit(project):
    blunt = HONEST.replace("laplace(0.1)", "laplace(1.0)")
    result = run(project(blunt), "-v")
    assert result.code == 1
    result.matches(
        "NO POWER  audit_case::audit_honest  (*)",
        "  reason              no violation found, but the given mutant laplace_1.0 survived too *",
        "  every mutant        survived: epsilon >= 0*, * draws  laplace_1.0",
        "  * killed: epsilon >*, * draws  the noise of line * of audit_case.py *removed",
        "  * killed: epsilon >* 1*, * draws  the noise of line * of audit_case.py *halved",
        "*1 without power*",
    )


def test_without_mutant_there_is_no_verdict_and_no_failure(project):
    result = run(project(HONEST.replace("mutants=[laplace(0.1)]", "mutants=None")))
    assert result.code == 0
    result.matches("NO POWER (allowed)  audit_case::audit_honest  (*)", "*1 no verdict*")
    assert "  mutants " not in result.out


def test_mutants_of_the_noise_show_power_where_none_was_given(project):
    here = project(HONEST.replace("mutants=[laplace(0.1)], ", ""))
    result = run(here, "-v", "--dpaudit-out=out")
    assert result.code == 0
    result.matches("*audit_honest NOT REFUTED*", "*1 not refuted*")
    (row,) = here.json("out/results.json")["audits"]
    assert row["mutation_score"] == 1.0
    line = 1 + AUDITS.splitlines().index(
        "        return data.sum() + rng.laplace(scale=scale, size=size)"
    )
    noise = f"the noise of line {line} of audit_case.py (laplace, scale 1)"
    assert [mutant["name"] for mutant in row["mutants"]] == [
        f"{noise} removed",
        f"{noise} halved",
        "sensitivity: scale divided by 2, line 10 of audit_case.py",
    ]


def test_noise_that_is_not_seen_gives_no_mutants_and_says_why(project):
    own = """
def audit_own(auditor):
    def noisy(data, size, *, rng):
        return data.sum() + np.random.Generator(rng.bit_generator).laplace(size=size)
    auditor.check(noisy, PureDP(1.0), PAIR, draws=400)
"""
    result = run(project(own))
    assert result.code == 0
    result.matches(
        "NO POWER (allowed)  audit_case::audit_own  (*)",
        "  reason              no violation found, and there is no mutant to show power: line * of "
        "audit_case.py takes rng.bit_generator, and draws made with it are not recorded. *",
        "  next                Give a mutant: *",
    )


def test_known_violation_does_not_fail(project):
    marked = BROKEN.replace("\ndef", '\n@pytest.mark.known_violation("a demonstration")\ndef')
    here = project(marked)
    result = run(here)
    assert result.code == 0
    result.matches("*1 known violations*")
    assert "REFUTED (known)" not in result.out
    shown = run(here, "-v")
    shown.matches("REFUTED (known)  audit_case::audit_broken  (*)", "*known because *a demon*")


def test_known_violation_is_strict(project):
    marked = HONEST.replace("\ndef", '\n@pytest.mark.known_violation("was broken once")\ndef')
    result = run(project(marked))
    assert result.code == 1
    result.matches(
        "VIOLATION NOT FOUND AGAIN  audit_case::audit_honest  (*)", "*1 lost violations*"
    )


@pytest.mark.slow
def test_known_violation_of_a_larger_profile_may_stay_open_below_it(project):
    marked = HONEST.replace(
        "\ndef", '\n@pytest.mark.known_violation("needs draws", profile="full")\ndef'
    )
    assert run(project(marked)).code == 0
    assert run(project(marked), "--dpaudit-profile=full").code == 1


@pytest.mark.slow
def test_what_takes_long_is_left_to_larger_profiles(project):
    marked = BROKEN.replace("\ndef", '\n@pytest.mark.from_profile("full")\ndef') + HONEST
    small = run(project(marked), "-rs")
    assert small.code == 0
    small.matches("SKIPPED*: it needs many draws: --profile full runs it")
    assert run(project(marked), "--dpaudit-profile=full").code == 1


@pytest.mark.parametrize("words", ["", '("fast")', '("full", because=1)'])
def test_a_wrong_profile_of_a_mark_is_told_in_one_line(project, words):
    result = run(project(HONEST.replace("\ndef", f"\n@pytest.mark.from_profile{words}\ndef")))
    assert result.code == 1
    result.matches("from_profile(profile): *")
    assert "Traceback" not in result.out


def test_a_bug_stays_a_failure(project):
    result = run(project("\ndef audit_bug(auditor):\n    raise RuntimeError('oops')\n"))
    assert result.code == 1
    result.matches("*RuntimeError: oops*", "*1 failed*")


def test_a_broken_contract_is_one_sentence(project):
    wrong = """
def audit_wrong(auditor):
    auditor.check(lambda data, size, *, rng: np.zeros((size + 1,)), PureDP(1.0), PAIR)
"""
    result = run(project(wrong))
    assert result.code == 1
    result.matches("<lambda> must return an array whose first axis has length size=64*")
    assert "Traceback" not in result.out


@pytest.mark.slow
def test_an_error_in_a_plain_test_shows_the_code_of_the_user_only(home):
    home.put(
        "test_plain.py",
        AUDITS
        + """
from dpaudit import audit

def typo(data, size, *, rng):
    return data.meen()

def test_typo():
    audit(typo, PureDP(1.0), PAIR, draws=400)
""",
    )
    result = run(home, "test_plain.py")
    assert result.code == 1
    result.matches(
        "*test_plain.py:*AttributeError*", "*MechanismError: typo raised AttributeError*"
    )
    assert "sampler.py" not in result.out
    assert "sampler.py" in run(home, "test_plain.py", "--full-trace").out


def test_an_exception_that_is_its_own_cause_ends_no_run():
    error = ValueError("a mechanism may raise it from itself")
    error.__cause__ = error
    assert drop_own_frames(error) is error


def test_all_checks_of_a_function_are_made_and_judged(project):
    both = HONEST + BROKEN.split(":\n", 1)[1]
    result = run(project(both))
    assert result.code == 1
    result.matches("REFUTED  audit_case::audit_honest#2  (*)")


def test_an_audit_that_checks_nothing_fails(project):
    result = run(project("\ndef audit_nothing(auditor):\n    pass\n"))
    assert result.code == 1
    result.matches("*audit_nothing must call auditor.check at least once*")


def test_a_check_that_was_finished_is_kept_when_the_next_one_breaks(project):
    here = project(BROKEN + "    raise RuntimeError('disk on fire')\n")
    result = run(here, "--dpaudit-out=out")
    assert result.code == 1
    document = here.json("out/results.json")
    assert [row["verdict"] for row in document["audits"]] == ["refuted"]
    assert "disk on fire" in document["run"]["problems"][0]
    result.matches("REFUTED  audit_case::audit_broken  (*)", "*1 failed*")


def test_xfail_does_not_swallow_a_verdict(project):
    result = run(project(BROKEN.replace("\ndef", "\n@pytest.mark.xfail\ndef")))
    assert result.code == 1
    result.matches("xfail does not apply to audits: mark it known_violation*")


CHECK = """
from dpaudit import statement

@statement("p.first")
def first(ledger):
    '''one is one'''
    ledger.sweep(x=1.0)(lambda x: (x, x))
"""


@pytest.mark.slow
def test_two_audits_of_one_id_are_refused(project):
    here = project(HONEST)
    for folder in ("a", "b"):
        (here.path / folder).mkdir()
        (here.path / folder / "audit_same.py").write_text(AUDITS + HONEST)
    result = run(here, "--import-mode=importlib")
    assert result.code == 4
    assert fnmatch(result.err, "*two audits have the id audit_same::audit_honest*")
    here.put("p/ledger_p.py", CHECK)
    here.put("p/ledger_q.py", CHECK)
    clash = workers(here, "--import-mode=importlib", count=1)
    assert clash.code == 1
    assert "two audits have the id audit_same::audit_honest" in clash.out
    assert "two checks have the id p.first" in clash.out


def test_skipped_audits_are_told(project):
    here = project(HONEST.replace("\ndef", "\n@pytest.mark.skip(reason='no library')\ndef"))
    run(here, "--dpaudit-out=out")
    document = here.json("out/results.json")
    assert document["run"]["skipped"] == ["audit_case.py::audit_honest: no library"]
    assert "no library" in (here.path / "out" / "index.html").read_text()


def test_parametrize_and_k_work(project):
    many = """
@pytest.mark.parametrize("scale", [1.0, 2.0])
def audit_many(auditor, scale):
    auditor.check(laplace(scale), PureDP(1.0), PAIR, mutants=[laplace(0.1)], draws=800)
"""
    result = run(project(many), "-k", "2.0", "-v")
    assert result.code == 0
    result.matches("*audit_many?2.0? NOT REFUTED*", "*1 deselected, 1 not refuted*")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--dpaudit-profile=fast", "*profile must be one of quick, full, release, got 'fast'*"),
        ("--dpaudit-seed=-1", "*seed must be an integer >= 0, got -1*"),
        ("--dpaudit-seed=x", "*invalid literal*'x'*"),
        ("--dpaudit-failure-prob=2", "*failure_prob must be a number strictly between 0 and 1*"),
        ("--dpaudit-failure-prob=nan", "*failure_prob must be a number strictly between 0 and 1*"),
    ],
)
def test_bad_options_are_usage_errors(project, option, words):
    result = run(project(HONEST), option)
    assert result.code == 4
    assert fnmatch(result.err, words)


def test_a_selection_keeps_the_results_of_the_others(project):
    here = project(HONEST, BROKEN)
    run(here, "--dpaudit-out=out")
    run(here, "--dpaudit-out=out", "-k", "honest")
    marked = run(here, "--dpaudit-out=out", "-m", "nothing")
    assert marked.code == pytest.ExitCode.NO_TESTS_COLLECTED
    document = here.json("out/results.json")
    assert len(document["audits"]) == 2


@pytest.mark.slow
def test_results_are_the_same_with_any_number_of_workers_and_any_selection(project):
    here = project(HONEST, BROKEN)
    rows = {}
    ways = [("one", run, []), ("two", workers, []), ("some", run, ["-k", "broken"])]
    for name, how, args in ways:
        how(here, f"--dpaudit-out={name}", *args)
        document = here.json(f"{name}/results.json")
        rows[name] = {
            row["id"]: {k: v for k, v in row.items() if k != "seconds"}
            for row in document["audits"]
        }
    assert rows["one"] == rows["two"]
    assert rows["some"] == {k: v for k, v in rows["one"].items() if "broken" in k}


def test_results_have_the_documented_fields(project):
    here = project(HONEST)
    run(here, "--dpaudit-out=out")
    document = here.json("out/results.json")
    (row,) = document["audits"]
    assert set(row) == {
        "id", "mechanism", "claim", "pair", "verdict", "expected", "certified_epsilon",
        "certified_delta", "estimated_epsilon", "failure_prob", "draws", "event", "mutants",
        "mutation_score", "seed", "seconds", "detectable_epsilon", "certified_mu", "p_value",
        "stored",
    }  # fmt: skip
    assert {"notion", "epsilon", "delta", "relation", "source"} <= set(row["claim"])
    assert set(row["draws"]) == {"explore", "certify"}
    assert row["mutation_score"] == 1.0
    assert len(row["mutants"]) == 4
    for mutant in row["mutants"]:
        assert set(mutant) == {"name", "status", "certified_epsilon"}
        assert mutant["status"] == "killed"
        assert mutant["certified_epsilon"] > 1
    assert document["run"]["family_wise_error"] == pytest.approx(3e-6)
    assert document["run"]["complete"] is True
    assert (here.path / "out" / "index.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_resume_takes_over_whole_results_and_redoes_the_rest(project):
    here = project(HONEST, BROKEN)
    run(here, "--dpaudit-out=out")
    broken = here.path / "out" / "audits" / "audit_case.audit_broken.json"
    honest = "out/audits/audit_case.audit_honest.json"
    before = here.json(honest)
    broken.write_text(broken.read_text()[:200])
    result = run(here, "--dpaudit-out=out", "--dpaudit-resume")
    assert result.code == 1  # a refutation remains a refutation
    assert here.json(honest)["seconds"] == before["seconds"]
    assert here.json("out/audits/audit_case.audit_broken.json")["verdict"] == "refuted"
    assert broken.with_suffix(".corrupt").exists()
    document = here.json("out/results.json")
    assert len(document["audits"]) == 2


@pytest.mark.slow
def test_resume_does_not_trust_results_of_another_seed(project):
    here = project(HONEST)
    run(here, "--dpaudit-out=out")
    run(here, "--dpaudit-out=out", "--dpaudit-resume", "--dpaudit-seed=5")
    document = here.json("out/results.json")
    assert [row["seed"] for row in document["audits"]] == [5]


@pytest.mark.slow
def test_only_audits_whose_imports_changed_run_again(home):
    imports = "from dpaudit import NeighborPair, PureDP\nPAIR = NeighborPair([[0.0]], [[1.0]])\n"
    audit = "def audit_it(auditor): auditor.check({}, PureDP(1.0), PAIR, draws=3000)\n"
    noisy = "def noisy(data, size, *, rng): return data.sum() + rng.laplace(size=size)\n"
    home.write(mine=noisy)
    home.put("audits/audit_mine.py", "from mine import noisy\n" + imports + audit.format("noisy"))
    home.put("audits/audit_alone.py", imports + noisy + audit.format("noisy"))
    home.dpaudit("run", "--jobs", "0")

    def rerun():
        said = home.dpaudit("run", "--jobs", "0", "--changed").out
        kept = [line.split()[2] for line in said.splitlines() if line.endswith("  unchanged")]
        return [id.partition("::")[0] for id in kept], said

    both = ["audit_alone", "audit_mine"]
    kept, said = rerun()
    assert kept == both
    assert "2 unchanged results kept: settings, files, imports and versions are" in said
    home.write(mine=noisy + "# changed")
    assert rerun()[0] == ["audit_alone"]
    assert rerun()[0] == both
    home.put("audits/conftest.py", "")  # a new file, which no earlier result knows
    assert rerun()[0] == []
    assert rerun()[0] == both
    home.put("audits/__init__.py", "SCALE = 1")  # Python runs it before the audits
    assert rerun()[0] == []
    assert rerun()[0] == both
    home.write(mine=noisy + "import importlib\nimportlib.import_module('ma' + 'th')\n")
    assert [rerun()[0], rerun()[0]] == [["audit_alone"]] * 2


@pytest.mark.slow
def test_a_result_of_code_that_changes_during_the_run_is_not_kept(home):
    audit = (
        "from pathlib import Path\nfrom dpaudit import NeighborPair, PureDP\n"
        "from mine import noisy\nPAIR = NeighborPair([[0.0]], [[1.0]])\n"
        "def audit_it(auditor):\n"
        "    Path('mine.py').write_text(Path('mine.py').read_text() + '# changed')\n"
        "    auditor.check(noisy, PureDP(1.0), PAIR, draws=3000)\n"
    )
    home.write(mine="def noisy(data, size, *, rng): return data.sum() + rng.laplace(size=size)\n")
    home.put("audits/audit_mine.py", audit)
    home.dpaudit("run", "--jobs", "0")
    origin = home.json("reports/audits/audit_mine.audit_it.json")["origin"]
    assert origin["unseen"] == "mine.py changed while the audit ran"
    assert "unchanged" not in home.dpaudit("run", "--jobs", "0", "--changed").out


def test_directory_that_cannot_be_written_is_refused_before_any_work(project):
    here = project(HONEST)
    (here.path / "taken").write_text("a file")
    result = run(here, "--dpaudit-out=taken")
    assert result.code == 4
    assert fnmatch(result.err, "*cannot write taken*")
    assert (here.path / "taken").read_text() == "a file"


def test_a_slow_audit_is_told_and_fails_nothing_where_warnings_are_errors(pytester):
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    pytester.makepyfile(
        audit_slow="""
import warnings
from dpaudit import NeighborPair, PureDP, SlowAuditWarning

def audit_slow(auditor):
    warnings.warn("slow", SlowAuditWarning)
    pair = NeighborPair([[0.0]], [[1.0]])
    mechanism = lambda data, size, *, rng: rng.laplace(size=size)
    auditor.check(mechanism, PureDP(1.0), pair, mutants=None, draws=100)
"""
    )
    run = pytester.runpytest("--dpaudit", "-p", "no:cacheprovider", "-k", "slow")
    assert run.ret == 0
    assert "SlowAuditWarning: slow" in run.stdout.str()
