"""Tests of programs in any language: data, releases, errors, and the end of processes."""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import psutil
import pytest

from dpaudit import (
    ArgumentError,
    Command,
    MechanismError,
    NeighborPair,
    Outcomes,
    PureDP,
    Settings,
    audit,
)
from dpaudit.errors import MechanismTimeout
from dpaudit.mechanisms import Watch, command, is_seeded, programs
from dpaudit.mechanisms.written import written

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng
ONE = np.zeros(1)

SERVER = """
import json, os, random, sys, time

def draw(data, random):
    kind = sys.argv[1] if len(sys.argv) > 1 else "noise"
    if kind == "noise":
        return sum(map(sum, data)) + random.expovariate(1) - random.expovariate(1)
    if kind == "sometimes":
        if random.random() < 0.3:
            raise KeyError("x")
        if random.random() < 0.3:
            os._exit(3)
        return random.random()
    if kind == "sleeps" and data:
        time.sleep(data[0])
    return os.getpid() if kind == "pid" else data

for line in sys.stdin:
    try:
        request = json.loads(line)
        source = random.Random(request["seed"])
        draws = [draw(request["data"], source) for _ in range(request["draws"])]
        answer = {"draws": draws}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Return a function that makes a server of a kind, and end all servers after the test."""
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    made: list[Command] = []

    def make(*kind: str, **options: Any) -> Command:
        made.append(Command([sys.executable, str(file), *kind], mode="server", **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def sh(text: str, **options: Any) -> Command:
    """Return a mechanism of a shell program; `$1` is the first text after the program."""
    return Command(["sh", "-c", text, "sh", *options.pop("more", ())], **options)


def draws_of(mechanism: Command, data: Any = ONE, size: int = 1, seed: int = 1) -> list[Any]:
    return mechanism.draws_one_by_one(data, size, rng=RNG(seed))


# --- data ---

FRAME = {"user": ["a", "b"], "x": [0.5, None], "ok": [True, False]}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (np.array([1, 2]), "1\n2\n"),
        (np.array([[0.5], [np.nan]]), "[0.5]\n[null]\n"),
        (np.array(["é", "b"]), '"\\u00e9"\n"b"\n'),
        (np.zeros((2, 1, 2)), "[[0.0, 0.0]]\n[[0.0, 0.0]]\n"),
        ([np.array([1]), [2, 3], []], "[1]\n[2, 3]\n[]\n"),
        ([("a", 1), ("b", None)], '["a", 1]\n["b", null]\n'),
        (np.array([(1, "a")], dtype=[("n", int), ("t", "U3")]), '{"n": 1, "t": "a"}\n'),
        ({"x": np.ones(2), "k": 2}, '{"x": [1.0, 1.0], "k": 2}\n'),
        ("word", '"word"\n'),
        (np.float32(0.5), "0.5\n"),
        (pd.DataFrame({"user": ["a"], "x": [0.5]}), '{"user": "a", "x": 0.5}\n'),
        (pl.DataFrame(FRAME)[1:], '{"user": "b", "x": null, "ok": false}\n'),
        (pd.DataFrame({"t": pd.to_datetime(["2026-01-02"])}), '{"t": "2026-01-02T00:00:00"}\n'),
        ([], ""),
    ],
)
def test_json_has_one_line_for_each_user_or_row(data: Any, text: str) -> None:
    assert written(data, "json").decode() == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (np.array([1, 2]), "user,value\n0,1\n1,2\n"),
        (np.array([[0.5, np.nan]]), "user,value\n0,0.5\n0,\n"),
        (np.zeros((1, 1, 2)), "user,x1,x2\n0,0.0,0.0\n"),
        ([[1], [], [2, 3]], "user,value\n0,1\n2,2\n2,3\n"),
        ([{"a": 1}, {"b": 'x "y"'}], 'user,a,b\n0,1,\n1,,"x ""y"""\n'),
        (np.array([(1, "a")], dtype=[("n", int), ("t", "U3")]), "user,n,t\n0,1,a\n"),
        (3.5, "value\n3.5\n"),
        ([], "user,value\n"),
        (pd.DataFrame(FRAME), "user,x,ok\na,0.5,true\nb,,false\n"),
        (pl.DataFrame(FRAME)[:0], "user,x,ok\n"),
    ],
)
def test_csv_has_one_row_for_each_item(data: Any, text: str) -> None:
    assert written(data, "csv").decode() == text


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
@pytest.mark.parametrize("frame", [pd.DataFrame(FRAME), pl.DataFrame(FRAME), [[0.5], [None, 2.0]]])
def test_arrow_and_parquet_hold_the_same_table(kind: str, frame: Any, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(written(frame, kind))
    back = pl.read_ipc(file.read_bytes()) if kind == "arrow" else pl.read_parquet(file)
    expected = {"user": [0, 1, 1], "value": [0.5, None, 2.0]} if type(frame) is list else FRAME
    assert back.to_dict(as_series=False) == expected


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (np.array([np.inf]), "json", "data must hold finite numbers.*got inf of type float"),
        (np.array([np.inf]), "csv", "data must hold finite numbers.*got inf"),
        ([object()], "json", "of type object"),
        (np.array([1j]), "json", "of type complex"),
        ({"x": [1]}, "csv", "data must be one table to be written as csv, got a dict of x"),
        (np.zeros((1, 1, 1, 2)), "csv", r"single values .* got \[0.0, 0.0\] in the column x1"),
        ([{"a": [1]}], "parquet", 'in the column a. Pass input="json"'),
        ([[1], ["a"]], "arrow", "data must be a table that can be written as arrow"),
    ],
)
def test_data_that_cannot_be_written_are_refused(data: Any, kind: str, words: str) -> None:
    with pytest.raises(MechanismError, match=words):
        written(data, kind)


def test_a_program_reads_its_input_or_a_file() -> None:
    data = [[1], [2]]
    for more, options in (((), {}), (("{data}",), {})):
        text = 'cat "$@" | tr "\\n" ";"; echo'
        assert draws_of(sh(text, more=more, output="text", **options), data) == ["[1];[2];"]
    assert draws_of(sh('cat "$1" | wc -l', more=["{data}"], input="csv"), data) == [3]
    (name,) = draws_of(sh('echo "$1"', more=["{data}"], input="parquet", output="text"), data)
    assert name.endswith("data.parquet")
    assert not Path(name).exists()


def test_a_server_gets_data_in_the_request_or_the_path_of_a_file(
    server: Callable[..., Command],
) -> None:
    for data in ([[1], [2, 3]], {"x": [1.5], "k": "a"}, "word"):
        assert draws_of(server("data"), data) == [data]
    (path,) = draws_of(server("data", input="arrow"), [[1]])
    assert path.endswith("data.arrow")


# --- releases ---


@pytest.mark.parametrize(
    ("line", "value"),
    [("1.5", 1.5), ('"a b"', "a b"), ("[1, 2]", [1, 2]), ('{"a": null}', {"a": None}),
     ("null", None), ("true", True), (" 3 \r", 3)],
)  # fmt: skip
def test_every_json_value_is_a_release(line: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "out").write_text(f"{line}\n", newline="")
    assert draws_of(sh('cat "$1"', more=[str(tmp_path / "out")]), size=2) == [value] * 2


def test_texts_are_lines_without_their_ends() -> None:
    made = sh(r'printf "two words\r\n\n"', more=["{draws}"], output="text")
    assert draws_of(made, size=2) == ["two words", ""]
    assert made(ONE, 2, rng=RNG(1)).tolist() == ["two words", ""]


def test_placeholders_are_replaced_everywhere_and_only_they() -> None:
    made = sh('echo "[$2, $1]"', more=["{seed}", '"d={draws}, {draw} {0}"'])
    ((text, seed),) = made.draws_one_by_one(ONE, 1, rng=RNG(1))
    assert text == "d=1, {draw} {0}"
    assert 2**40 < seed < command.SEEDS == 2**53
    assert draws_of(made) == [[text, seed]] != draws_of(made, seed=2)


def test_each_draw_has_a_process_and_a_seed_unless_the_program_takes_a_number() -> None:
    alone = draws_of(sh('echo "[$$, $1]"', more=["{seed}"]), size=3)
    assert len({process for process, _ in alone}) == len({seed for _, seed in alone}) == 3
    many = sh('for i in $(seq "$2"); do echo "[$$, $1]"; done', more=["{seed}", "{draws}"])
    together = draws_of(many, size=3)
    assert len({tuple(draw) for draw in together}) == 1
    assert together[0][1] == alone[0][1]


def test_a_program_without_a_seed_is_not_seeded(server: Callable[..., Command]) -> None:
    assert not is_seeded(sh("echo 1"))
    assert is_seeded(sh("echo 1", more=["{seed}"]))
    assert is_seeded(server())
    assert not is_seeded(server(seeded=False))
    assert not is_seeded(sh("echo {seed}", seeded=False))


# --- audits ---

PAIR = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])


@pytest.mark.slow
def test_a_server_is_audited_alike_by_any_number_of_workers(server: Callable[..., Command]) -> None:
    half = server()
    options: dict[str, Any] = {"draws": 600, "seed": 1, "mutants": None}
    found = audit(half, PureDP(0.3), PAIR, **options)
    assert found.verdict.words == "REFUTED"
    again = audit(half, PureDP(0.3), PAIR, settings=Settings(workers=2), **options)
    assert again.to_json()["epsilon"] == found.to_json()["epsilon"]
    assert again.pair.left.tolist() == found.pair.left.tolist()


def test_a_pickle_has_no_process_and_draws_alike(server: Callable[..., Command]) -> None:
    first = server()
    draws = draws_of(first, [[1]], 4)
    again = pickle.loads(pickle.dumps(first))
    assert draws_of(again, [[1]], 4) == draws == draws_of(first, [[1]], 4)
    again.close()


def test_a_worker_needs_the_same_program(tmp_path: Path) -> None:
    file = tmp_path / "release.sh"
    file.write_text("echo 1\n")
    made = Command(["sh", str(file)])
    assert made.__name__ == "sh release.sh"
    shipped = pickle.dumps(made)
    file.write_text("echo 2\n")
    with pytest.raises(MechanismError, match=r"release.sh must be the same file as at the start"):
        draws_of(pickle.loads(shipped))


def test_exit_statuses_are_outcomes() -> None:
    made = sh("kill -KILL $$")
    (draw,) = made.draws_one_by_one(ONE, 1, rng=RNG(1), catches=True)
    assert draw.words == "raised signal SIGKILL"
    three = sh('exit "$(wc -l)"').draws_one_by_one([[0]] * 3, 2, rng=RNG(1), catches=True)
    assert [draw.words for draw in three] == ["raised exit status 3"] * 2


def test_errors_and_exits_of_a_server_are_outcomes_of_single_draws(
    server: Callable[..., Command],
) -> None:
    made = server("sometimes")
    draws = made.draws_one_by_one(ONE, 40, rng=RNG(1), catches=True)
    words = [getattr(draw, "words", "") for draw in draws]
    assert set(words) == {"", "raised KeyError", "raised exit status 3"}
    again = made.draws_one_by_one(ONE, 40, rng=RNG(1), catches=True)
    assert [getattr(draw, "words", draw) for draw in again] == [
        getattr(draw, "words", draw) for draw in draws
    ]
    released = Outcomes(made, errors="outcome")(ONE, 40, rng=RNG(1))
    assert sum(np.size(draw) == 0 for draw in released) == 40 - words.count("")


# --- arguments and errors ---


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ([], {}, "arguments must be a list of texts, .* got none"),
        ("./release --fast", {}, "arguments must be a list of texts, .* got './release --fast'"),
        (["x", 5], {}, "arguments must hold texts, got 5 of type int"),
        (["", "x"], {}, "the first of which names a program, got ''"),
        (["x\0"], {}, "texts without NUL"),
        (["x"], {"input": "xml"}, "input must be one of json, csv, arrow, parquet, got 'xml'"),
        (["x"], {"output": "csv"}, "output must be one of json, text"),
        (["x"], {"mode": "many"}, "mode must be one of once, server"),
        (["x"], {"timeout": 0}, "timeout must be a finite number > 0, got 0"),
        (["x"], {"input": "arrow"}, r'arguments must contain \{data\} for input="arrow"'),
        (["x"], {"seeded": True}, "seeded must be False or None unless"),
        (["x", "{seed}"], {"mode": "server"}, r"arguments must not contain \{seed\}"),
        (["x"], {"mode": "server", "output": "text"}, "output must be json for"),
    ],
)
def test_bad_arguments_are_named(arguments: Any, options: Any, words: str) -> None:
    with pytest.raises((ArgumentError, TypeError), match=words):
        Command(arguments, **options)


def test_paths_are_arguments(tmp_path: Path) -> None:
    assert Command([Path("x"), "{data}"]).arguments == ("x", "{data}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo x", "line 1 of .* must be a JSON value, got 'x'"),
        ("echo NaN", "got 'NaN' .numbers must be finite.*Write null for no answer"),
        ("echo 1e999", "is too large"),
        ("printf '%0.s[' $(seq 2000); echo", "must be a JSON value"),
        ("echo 1; echo 2", "must write 1 line, one for each release, got 2: '1'"),
        ("printf '1\\n\\n'", "must write 1 line, one for each release, got 2"),
        ("true", "must write 1 line, one for each release, got 0"),
        ("printf '\\377\\n'", "must write UTF-8"),
        ("echo oops >&2; exit 3", "ended with exit status 3. Its standard error .*: oops"),
        ("kill -TERM $$", "ended with signal SIGTERM"),
    ],
)
def test_a_program_that_fails_says_why(text: str, words: str) -> None:
    with pytest.raises(MechanismError, match=words):
        draws_of(sh(text))


def test_a_program_that_is_missing_or_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    for name, words in (("no/such", "No such file"), (str(tmp_path / "text"), "Permission denied")):
        for mode in ("once", "server"):
            with pytest.raises(MechanismError, match=f"{name} cannot be started: {words}"):
                draws_of(Command([name], mode=mode))


ANSWERS = {
    '{"draws": [1]}': "must answer with 2 draws, got 1",
    '{"draws": 5}': "must be {.draws.: .*got {'draws': 5}",
    '{"draws": [1, 2], "more": 1}': "must be {.draws.: ",
    "[1, 2]": r"must be {.draws.: .*got \[1, 2\]",
    "hello": "the answer of .* must be a JSON value, got 'hello'",
    '{"error": "no data"}': "answered with an error: no data",
    '{"draws": [1, 2]}\n{"draws": [1, 2]}': "must be a JSON value",
    "": "must be a JSON value, got ''",
}


@pytest.mark.parametrize(("answer", "words"), ANSWERS.items())
def test_an_answer_that_breaks_the_protocol_is_refused(answer: str, words: str) -> None:
    made = sh('while read line; do printf "%s\\n" "$1"; done', more=[answer], mode="server")
    with pytest.raises(MechanismError, match=words):
        draws_of(made, size=2)
    made.close()


def test_output_that_no_request_asked_for_is_refused() -> None:
    twice = """while read line; do echo '{"draws": [1]}'; echo '{"draws": [2]}'; done"""
    made = sh(twice, mode="server")

    def several() -> None:
        for _ in range(5):
            draws_of(made)
            time.sleep(0.02)

    with pytest.raises(MechanismError, match="must be a JSON value|must keep running"):
        several()


def test_a_server_that_ends_is_noticed() -> None:
    with pytest.raises(MechanismError, match="ended with exit status 4 before it answered. .*bye"):
        draws_of(sh("read line; echo bye >&2; exit 4", mode="server"))
    one_answer = sh("""read line; echo '{"draws": [1]}'""", mode="server")
    assert draws_of(one_answer) == [1]
    end = time.monotonic() + 10
    while one_answer._server is not None and one_answer._server.is_running:
        assert time.monotonic() < end
    with pytest.raises(
        MechanismError, match="keep running .* before a request, but ended with exit"
    ):
        draws_of(one_answer)
    assert draws_of(one_answer) == [1]  # the next request starts another server
    one_answer.close()


@pytest.mark.parametrize("mode", ["once", "server"])
def test_a_program_that_hangs_is_killed_with_all_its_processes(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    for start in ("", "exec >&-; "):  # the second program closes its output
        text = start + 'sleep 100 & echo "$$ $!" > "$1"; sleep 100'
        made = sh(text, more=[str(file)], mode=mode, timeout=0.3)
        late = r"must answer and end within timeout=0.3 s|must keep running"
        with pytest.raises(MechanismError, match=late):
            draws_of(made)
        started = [int(number) for number in file.read_text().split()]
        end = time.monotonic() + 10
        while any(map(is_alive, started)):  # a killed process needs a moment
            assert time.monotonic() < end


def test_too_much_data_or_output_is_refused(
    monkeypatch: pytest.MonkeyPatch, server: Callable[..., Command]
) -> None:
    monkeypatch.setattr(command, "_MOST", 1000)
    with pytest.raises(MechanismError, match="data must have at most 1,000 bytes as json, got 6,0"):
        draws_of(sh("echo 1"), np.zeros(1500))
    with pytest.raises(MechanismError, match="must write at most 1,000 bytes for a call"):
        draws_of(sh("yes 1"))
    with pytest.raises(MechanismError, match="must write at most 1,000 bytes for a call"):
        draws_of(sh("read -r line; yes 1 | tr -d '\\n'", mode="server"))
    assert draws_of(sh('wc -l < "$1"', more=["{data}"]), np.zeros(1500)) == [1500]


@pytest.mark.slow
def test_requests_and_answers_may_be_larger_than_a_pipe(server: Callable[..., Command]) -> None:
    data = np.arange(100_000)
    assert draws_of(server("data"), data) == [data.tolist()]
    assert len(draws_of(sh("cat", more=["{draws}"]), data, 100_000)) == 100_000
    assert draws_of(sh("echo 1"), data) == [1]  # this program reads nothing


def test_standard_error_is_shown_once(server: Callable[..., Command]) -> None:
    loud = sh("echo careful >&2; echo 1")
    with pytest.warns(UserWarning, match="wrote to its standard error, .* shown once: careful"):
        draws_of(loud)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draws_of(loud, size=2)


def test_only_the_end_of_a_long_standard_error_is_kept() -> None:
    loops = "while read line; do yes 'x' | head -c 3000000 >&2; echo '{\"draws\": [1]}'; done"
    made = sh(loops, mode="server")
    with pytest.warns(UserWarning, match="which is shown once: ") as caught:
        draws_of(made)
    assert len(str(caught[0].message)) < programs.TAIL + 300
    program = made._server
    assert program is not None
    assert os.fstat(program._errors.fileno()).st_size < 2**20
    made.close()


# --- the end of processes ---


def is_alive(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def words(process: psutil.Process) -> list[str]:
    try:
        return [Path(word).name for word in process.cmdline()]
    except psutil.Error:
        return []


def pid_of(made: Command) -> psutil.Process:
    return psutil.Process(int(draws_of(made, [])[0]))


def test_a_server_ends_when_it_is_closed_or_garbage(server: Callable[..., Command]) -> None:
    made = server("pid")
    process = pid_of(made)
    assert pid_of(made) == process
    made.close()
    assert not process.is_running()
    other = Command([*made.arguments], mode="server")
    process = pid_of(other)
    del other
    gc.collect()
    assert not process.is_running()


def test_a_server_that_is_finished_may_end_by_itself(server: Callable[..., Command]) -> None:
    made = server("pid")
    assert made.finish() == ""
    draws_of(made, [])
    assert made.finish() == ""
    exits = sh("while read line; do echo '{\"draws\": [1]}'; done; exit 7", mode="server")
    draws_of(exits)
    assert exits.finish() == "exit status 7"


def test_an_interrupted_call_gets_no_later_answer(server: Callable[..., Command]) -> None:
    made = server("sleeps")
    assert draws_of(made, [0.0]) == [[0.0]]
    with pytest.raises(MechanismTimeout), Watch(call_limit=0.2).call("slow"):
        draws_of(made, [0.6])
    assert draws_of(made, [0.0]) == [[0.0]]


def test_a_copy_of_this_process_starts_its_own_server(server: Callable[..., Command]) -> None:
    from dpaudit.mechanisms import in_child

    made = server("pid")
    ours = draws_of(made, [])
    theirs = in_child(lambda: draws_of(made, []), limit=30.0)
    assert theirs != ours == draws_of(made, [])
    assert not psutil.pid_exists(theirs[0]) or wait_gone([psutil.Process(theirs[0])])


def wait_gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=10)[1]


SCRIPT = """
import sys, numpy as np
from dpaudit import Command
made = Command([sys.executable, sys.argv[1], "pid"], mode="server")
print(made.draws_one_by_one([], 1, rng=np.random.default_rng(1))[0], flush=True)
once = Command(["sh", "-c", "sleep 321 & echo $!; kill -STOP $$"], timeout=300)
if sys.argv[2] == "ends":
    sys.stdin.read()
    raise SystemExit
once.draws_one_by_one([], 1, rng=np.random.default_rng(1))
"""


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["ends", "KILL", "INT"])
def test_no_process_outlives_the_process_that_started_it(
    how: str, server: Callable[..., Command]
) -> None:
    file = server("pid").arguments[1]
    run = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, file, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert run.stdout is not None
    served = psutil.Process(int(run.stdout.readline()))
    started = [served]
    if how != "ends":
        end = time.monotonic() + 20
        while ["sleep", "321"] not in map(words, started):
            assert time.monotonic() < end
            started = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(getattr(signal, f"SIG{how}"))
    run.communicate(timeout=20)
    assert wait_gone(started)


def test_the_documented_line_of_a_request_is_sent() -> None:
    made = sh('read -r line; printf \'{"draws": [%s]}\\n\' "$line"; cat', mode="server")
    (request,) = draws_of(made, [[0.5], [1]])
    assert list(request) == ["data", "draws", "seed"]
    assert json.dumps(request["data"]) == "[[0.5], [1]]"
    made.close()
