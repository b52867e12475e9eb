"""Tests of `dpaudit audit --command` and `dpaudit check-command`."""

from __future__ import annotations

import shlex
import sys

import pytest

SERVER = """
import json, random, sys

scale, fault = float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
for line in sys.stdin:
    try:
        request = json.loads(line)
        seed = 1 if fault == "ignores" else request["seed"]
        source = random.Random(None if fault == "unseeded" else seed)
        count = 1 if fault == "shares" else request["draws"]
        noise = [source.expovariate(1) - source.expovariate(1) for _ in range(count)]
        total = sum(sum(user) for user in request["data"])
        noise *= request["draws"] if fault == "shares" else 1
        answer = {"draws": [total + scale * one for one in noise[fault == "fewer" :]]}
    except Exception as error:
        if fault == "dies":
            raise
        answer = {"error": str(error)} if fault != "lenient" else {"draws": []}
    print(json.dumps(answer), flush=True)
while fault == "stays":
    pass
"""

ONCE = """
import random, sys

source = random.Random(sys.argv[2] if len(sys.argv) > 2 else None)
total = sum(float(line.split(",")[1]) for line in sys.stdin.readlines()[1:])
print(total + float(sys.argv[1]) * (source.expovariate(1) - source.expovariate(1)))
"""

FEW = ("--draws", "1500", "--pair", "majority_flip:n_users=3", "--epsilon", "1")


def run_by(*words: str) -> str:
    """Return a command line that Python runs."""
    return shlex.join([sys.executable, *words])


@pytest.fixture
def home(home):
    return home.write(server=SERVER, once=ONCE)


def stored_in(home, name="found"):
    (stored,) = (home.path / name / "audits").glob("*.json")
    return str(stored.relative_to(home.path))


@pytest.mark.slow
def test_a_server_is_audited_stored_and_replayed(home):
    command = run_by("server.py", "0.5")
    found = home.dpaudit("audit", "--command", command, "--server", *FEW, "--out", "found")
    assert found.code == 1
    assert found.out.startswith(f"REFUTED  {command}")
    stored = stored_in(home)
    sources = home.json(stored)["origin"]["sources"]
    assert set(sources) == {"dpaudit", "server.py"}
    refused = home.dpaudit("replay", stored)
    assert refused.code == 4
    assert "a replay would run the command" in refused.err
    assert "Pass --trust" in refused.err
    again = home.dpaudit("replay", stored, "--trust")
    assert again.code == 0
    assert again.out.splitlines()[-1] == "the same"
    home.write(server=SERVER.replace("scale *", "9 *"))
    other = home.dpaudit("replay", stored, "--trust")
    assert other.code == 1
    assert "the code changed since, or is not here: server.py" in other.out


def test_mutants_of_a_command_are_commands(home):
    args = ("--mutant", run_by("server.py", "0.5"), "--server", *FEW)
    honest = home.dpaudit("audit", "--command", run_by("server.py", "1"), *args)
    assert honest.code == 0
    honest.matches("NOT REFUTED *server.py 1*", "*mutants * 1 of 1 killed")


@pytest.mark.slow
def test_a_program_runs_once_for_each_draw(home):
    command = "sh -c 'od -An -N1 -tu1 /dev/urandom'"
    args = ("--epsilon", "1", "--pair", "majority_flip:n_users=3", "--no-mutants")
    done = home.dpaudit("audit", "--command", command, *args, "--draws", "60", "--out", "found")
    assert done.code == 0
    assert not home.json(stored_in(home))["origin"]["replays"]
    again = home.dpaudit("replay", stored_in(home), "--trust")
    assert again.out.splitlines()[-1] == "the same verdict; its numbers need not come again"


@pytest.mark.slow
def test_a_refuted_command_becomes_a_test(home):
    command = run_by("server.py", "0.5")
    home.dpaudit("audit", "--command", command, "--server", *FEW, "--out", "found")
    done = home.dpaudit("replay", stored_in(home), "--export-test", "test_it.py")
    assert done.code == 0, done.err
    ran = home.pytest("test_it.py")
    assert ran.code == 1
    assert "REFUTED" in ran.out
    home.write(server=SERVER.replace("scale *", "9 *"))
    assert home.pytest("test_it.py").code == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "MODULE:FUNCTION or --command must be given, got none"),
        (("m:f", "--command", "x"), "MODULE:FUNCTION or --command must be given, got both"),
        (("--command", "x 'y"), 'COMMAND must be a command line, got "x \'y": No closing'),
        (("--command", " "), "arguments must be a list of texts"),
        (("--command", "x", "--input", "xml"), "'xml' is not one of 'json', 'csv'"),
        (("--command", "x", "--input", "arrow"), "arguments must contain {data}"),
        (("--command", "x {seed}", "--server"), "arguments must not contain {seed}"),
        (("--command", "x", "--timeout", "0"), "timeout must be a finite number > 0"),
    ],
)
def test_wrong_usage_is_named(home, args, words):
    done = home.dpaudit("audit", *args, "--epsilon", "1")
    assert done.code == 4
    assert words in done.err


def test_a_command_that_is_missing_fails_the_audit(home):
    done = home.dpaudit("audit", "--command", "./nothing", *FEW)
    assert done.code == 1
    assert "./nothing cannot be started: No such file or directory" in done.err


# --- check-command ---

OK = [
    "ok      a call for 1 draw gets 1 draw",
    "ok      a call for 64 draws gets 64 draws",
    "ok      the draws of a call differ",
    "ok      equal seeds give equal draws",
    "ok      different seeds give different draws",
    "ok      a line that is no request gets an error",
    "ok      a call after an error gets its draws",
    "ok      the server ends when its input is closed",
]


def test_a_correct_server_passes_every_check(home):
    done = home.dpaudit("check-command", run_by("server.py", "1"), "--server")
    assert done.code == 0
    assert done.out.splitlines() == OK


FAULTS = {
    "fewer": (1, "must answer with 1 draw, got 0"),
    "shares": (3, "all draws are equal"),
    "unseeded": (4, "the draws differ"),
    "ignores": (5, "the draws are equal"),
    "lenient": (6, "got 0 draws"),
    "dies": (6, "ended with exit status 1 before it answered. Its standard error ended with: "),
    "stays": (8, "must answer and end within timeout=2 s"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_a_server_fails_its_check(home, fault):
    at, words = FAULTS[fault]
    command = run_by("server.py", "1", fault)
    done = home.dpaudit("check-command", command, "--server", "--timeout", "2")
    assert done.code == 1
    lines = [line for line in done.out.splitlines() if line.startswith(("ok", "FAILED"))]
    failed = [n for n, line in enumerate(lines, 1) if line.startswith("FAILED")]
    assert failed == [at]
    assert lines[at - 1].startswith(OK[at - 1].replace("ok      ", "FAILED  ") + ": ")
    assert words in done.out
    assert len(lines) == (1 if fault == "fewer" else 8)


def test_an_unseeded_server_need_not_repeat_draws(home):
    command = run_by("server.py", "1", "unseeded")
    done = home.dpaudit("check-command", command, "--server", "--unseeded")
    assert done.code == 0
    assert len(done.out.splitlines()) == 7
    assert "ok      two calls differ" in done.out


def test_equal_draws_of_a_program_without_a_seed_are_noticed(home):
    home.write(equal="import random, sys; print(*[random.random()] * int(sys.argv[1]), sep='\\n')")
    command = run_by("equal.py", "{draws}")
    done = home.dpaudit("check-command", command, "--unseeded", "--input", "csv")
    assert done.code == 1
    assert "FAILED  the draws of a call differ: all draws are equal" in done.out


@pytest.mark.slow
def test_a_program_that_runs_once_is_checked(home):
    command = run_by("once.py", "1", "{seed}")
    done = home.dpaudit("check-command", command, "--input", "csv", "--data", "[[1], [2, 3]]")
    assert done.code == 0
    assert done.out.splitlines()[1] == "ok      a call for 8 draws gets 8 draws"
    assert len(done.out.splitlines()) == 5


def test_texts_and_broken_data_are_read(home):
    texts = ("--text", "--unseeded")
    assert home.dpaudit("check-command", "sh -c 'echo $$'", *texts).code == 0
    assert home.dpaudit("check-command", "sh -c 'echo a b'", *texts).code == 1
    done = home.dpaudit("check-command", "cat", "--data", "[1")
    assert done.code == 4
    assert "--data must be JSON, got '[1'" in done.err
