"""Queries of DuckDB, SQLite and PostgreSQL as mechanisms."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import SQL, NeighborPair, Outcomes, PureDP, Relation, Settings, Verdict, audit
from dpaudit.errors import ArgumentError, MechanismError

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[databases]'")
pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: pip install '.[databases]'")

RNG = np.random.default_rng(0)
DATA = np.array([[1.0, 2.0], [3.0, 4.0]])
NOISE = "(ln(1 - random()) - ln(1 - random()))"
PAIR = NeighborPair(
    np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), np.zeros((2, 3)), recipe="three items"
)
BY_USER = "SELECT user_id, least(greatest(sum(value), 0), 1) AS s FROM data GROUP BY user_id"


def postgres_programs() -> str:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return str(found[-1]) if found else os.path.dirname(shutil.which("initdb") or "")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A server of PostgreSQL on a socket, which is stopped afterwards."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = postgres_programs()
    if not programs:
        reason = "PostgreSQL is not installed: apt-get install postgresql"
        pytest.fail(reason) if os.environ.get("DPAUDIT_NO_SKIPS") else pytest.skip(reason)
    folder = tempfile.mkdtemp(prefix="dpaudit-postgres-")
    as_user = []
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    base = [*as_user, f"{programs}/pg_ctl", "-D", f"{folder}/data", "-w"]
    quiet: dict[str, Any] = {"check": True, "capture_output": True, "cwd": "/"}
    try:
        init = [f"{programs}/initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "postgres"]
        subprocess.run([*as_user, *init, "--no-sync"], **quiet)
        log = ["-l", f"{folder}/log"]
        subprocess.run([*base, *log, "-o", options, "start"], **quiet)
        yield f"postgresql+psycopg://postgres@/postgres?host={folder}"
    finally:
        subprocess.run(
            [*base, "-m", "immediate", "stop"], check=False, capture_output=True, cwd="/"
        )
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["duckdb", "sqlite://", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return str(request.param)


def one(query: str, data: Any = DATA, **given: Any) -> Any:
    return SQL(query, **given).draws_one_by_one(data, 1, rng=RNG)[0]


# --- data and results ---


@pytest.mark.sampled
def test_an_array_has_one_row_for_each_item(engine: str) -> None:
    query = "SELECT count(*) AS n, sum(value) AS s, sum(user_id * value) AS w FROM data"
    assert one(query, engine=engine) == {"n": 4, "s": 10.0, "w": 7.0}


@pytest.mark.parametrize(
    ("data", "query", "expected"),
    [
        ([[1, 2], [3]], "SELECT max(user_id) + sum(value) FROM data", 7),
        (np.tile([1.0, 2.0, 3.0], (2, 1, 1)), "SELECT sum(x3) - sum(x1) FROM data", 4.0),
        ([["a"], ["b", "b"]], "SELECT count(*) FROM data WHERE value = 'b'", 2),
        (np.array([[True], [False]]), "SELECT count(*) FROM data WHERE value", 1),
        ([[1, None], [2.5]], "SELECT sum(value) FROM data", 3.5),
        (np.zeros((0, 2)), "SELECT count(value) FROM data", 0),
        (np.zeros((0, 2, 2)), "SELECT count(x2) FROM data", 0),
        ([[], []], "SELECT count(value) FROM data", 0),
        (np.array([(1, "x")], dtype=[("n", int), ("t", "U2")]), "SELECT t FROM data", "x"),
    ],
)
def test_data_of_every_form_are_loaded(engine: str, data: Any, query: str, expected: Any) -> None:
    assert one(query, data, engine=engine) == expected


def test_frames_keep_their_columns_and_dicts_are_tables(engine: str) -> None:
    visits = pd.DataFrame({"who": ["a", "b", "b"], "paid": [1.5, None, 2.0], "no.": [1, 2, 3]})
    assert one('SELECT sum("no.") FROM data WHERE paid > 1', visits, engine=engine) == 4
    query = "SELECT count(*) FROM visits JOIN people ON who = name WHERE age > 3"
    tables = {"visits": visits, "people": pd.DataFrame({"name": ["a", "b"], "age": [3, 4]})}
    assert one(query, tables, engine=engine) == 2


def test_names_and_queries_may_hold_any_letters(engine: str) -> None:
    frame = pd.DataFrame({"a{}": [1, 2], "b:c": [3, 4], "d%s": [5, 6], 'e"f': [7, 8]})
    query = """SELECT sum("a{}") + sum("b:c") + sum("d%s") + sum("e""f") FROM data"""
    assert one(query, frame, engine=engine) == 36
    query = """SELECT count(*) % 3 FROM "t:{}%" WHERE 'ab' LIKE '%b' AND ':x' = ':x'"""
    assert one(query, engine=engine, table="t:{}%") == 1


def test_results_are_values_dicts_and_groups(engine: str) -> None:
    assert one("SELECT value FROM data WHERE value > 100", engine=engine) is None
    grouped = "SELECT user_id, sum(value) AS s, count(*) AS n FROM data GROUP BY user_id"
    expected = {(0, "s"): 3.0, (0, "n"): 2, (1, "s"): 7.0, (1, "n"): 2}
    assert one(grouped, engine=engine, key="user_id") == expected
    few = "SELECT user_id, sum(value) FROM data GROUP BY user_id"
    assert one(few, engine=engine, key="user_id") == {0: 3.0, 1: 7.0}
    declared = Outcomes(SQL(few, engine, key="user_id"), keys=[0, 1, 2])
    drawn = declared(DATA, 2, rng=RNG)
    assert drawn["has 2"].tolist() == [False, False]
    assert drawn["1"].tolist() == [7.0, 7.0]
    with pytest.raises(MechanismError, match=r'one row for each draw, 1 here, got 2 .*key="'):
        one(few, engine=engine)
    with pytest.raises(MechanismError, match="must return the column 'other' and another one"):
        one(few, engine=engine, key="other")
    with pytest.raises(MechanismError, match="returned the group 1 twice"):
        one("SELECT 1 AS k, value FROM data", engine=engine, key="k")


def test_decimals_and_dates_become_numbers_and_texts() -> None:
    assert one("SELECT 1.5::DECIMAL(4, 2)") == 1.5
    assert one("SELECT DATE '2026-11-28'") == "2026-11-28"


# --- draws ---


def test_each_row_is_a_draw_if_the_query_takes_their_number() -> None:
    many = SQL("SELECT random() FROM range({draws})")
    drawn = many(DATA, 50, rng=RNG)
    assert drawn.shape == (50,)
    assert len(set(drawn.tolist())) == 50
    with pytest.raises(MechanismError, match="one row for each draw, 3 here, got 1 rows$"):
        SQL("SELECT {draws}")(DATA, 3, rng=RNG)


def test_a_query_runs_once_for_each_draw(engine: str) -> None:
    drawn = SQL("SELECT random()", engine)(DATA, 20, rng=RNG)
    assert len(set(drawn.tolist())) == 20


def test_what_a_query_changes_is_undone(engine: str) -> None:
    setup = ["CREATE TABLE log (n INTEGER)", "INSERT INTO log VALUES (1)"]
    if engine == "sqlite://" or engine == "duckdb":
        query = "DELETE FROM log RETURNING n"
    else:
        query = "WITH gone AS (DELETE FROM log RETURNING n) SELECT n FROM gone"
    drawn = SQL(query, engine, setup=setup).draws_one_by_one(DATA, 3, rng=RNG)
    assert drawn == [1, 1, 1]


def test_datasets_are_loaded_apart_and_once() -> None:
    total = SQL("SELECT sum(value) FROM data")
    for shift in (0, 1, 2, 3, 4, 5, 0, 5):
        assert total(DATA + shift, 1, rng=RNG)[0] == 10 + 4 * shift
    assert len(total._loaded) == 4
    total.close()
    assert total._loaded == {}
    assert total(DATA, 1, rng=RNG)[0] == 10


def test_a_connection_of_the_user_is_taken() -> None:
    import sqlalchemy

    def connect() -> Any:
        pool = sqlalchemy.pool.NullPool  # with another pool, close() leaves the database open
        connection = sqlalchemy.create_engine("sqlite://", poolclass=pool).connect()
        connection.connection.create_function("noisy", 1, lambda x: x + 100)
        return connection

    assert one("SELECT noisy(sum(value)) FROM data", engine=connect) == 110.0


def test_schemas_of_postgresql_are_removed(postgres: str) -> None:
    import sqlalchemy

    count = SQL("SELECT count(*) FROM data", postgres)
    assert count(DATA, 2, rng=RNG).tolist() == [4, 4]
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'dpaudit%%'"
    pool = sqlalchemy.pool.NullPool
    with sqlalchemy.create_engine(postgres, poolclass=pool).connect() as connection:
        assert connection.exec_driver_sql(schemas).scalar() == 1
        count.close()
        connection.rollback()
        assert connection.exec_driver_sql(schemas).scalar() == 0


def test_queries_travel_to_workers() -> None:
    total = SQL("SELECT sum(value) FROM data")
    total(DATA, 1, rng=RNG)
    again = pickle.loads(pickle.dumps(total))
    assert again._loaded == {}
    assert again(DATA, 1, rng=RNG)[0] == 10.0


# --- errors ---


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"query": ""}, ArgumentError, "query must be a text that is not empty"),
        ({"engine": "oracle"}, ArgumentError, 'engine must be "duckdb", a URL of PostgreSQL'),
        ({"engine": "sqlite:///file.db"}, ArgumentError, 'engine must be "duckdb", a URL of'),
        ({"engine": "mysql://u:secret@h/d"}, ArgumentError, r"got 'mysql://u:\*\*\*@h/d'"),
        ({"engine": 3}, TypeError, 'engine must be "duckdb", a URL, or a function'),
        ({"table": ""}, ArgumentError, "table must be a text that is not empty"),
        ({"user": 3}, TypeError, "user must be a text"),
        ({"setup": [3]}, TypeError, "setup must be a text"),
        ({"query": "SELECT {draws}", "key": "k"}, ArgumentError, "key must be None if the query"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        SQL(**{"query": "SELECT 1", **given})


def test_errors_of_the_database_are_errors_of_the_mechanism(engine: str) -> None:
    with pytest.raises(MechanismError, match=r"SELECT nothing raised .*nothing"):
        one("SELECT nothing", engine=engine)
    with pytest.raises(MechanismError, match=r"the data of SELECT 1 cannot be loaded: .*"):
        one("SELECT 1", engine=engine, setup="CREATE VIEW broken AS")
    with pytest.raises(MechanismError, match="must hold values of one type, got int, str"):
        one("SELECT 1", [[1, "a"]], engine=engine)
    with pytest.raises(MechanismError, match="must hold single values"):
        one("SELECT 1", [[[[1]]]], engine=engine)


def test_a_database_that_cannot_be_reached_is_named() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(MechanismError, match=r"no connection for engine='postgresql\+psycopg:"):
        one("SELECT 1", engine="postgresql+psycopg://nobody@/none?host=/nowhere")


def test_errors_of_a_query_may_be_outcomes(postgres: str) -> None:
    query = "SELECT 1 / (count(*) - 4) FROM data"
    drawn = Outcomes(SQL(query, postgres), errors="outcome")(DATA, 3, rng=RNG)
    assert len(drawn) == 3
    assert all(row.size == 0 for row in drawn)
    assert one(query, DATA[:1], engine=postgres) == 0


# --- audits ---


@pytest.mark.slow
def test_a_query_that_bounds_users_is_not_refuted_and_another_one_is() -> None:
    many = f"SELECT {{}} + {NOISE} FROM range({{{{draws}}}})"
    good = SQL(many.format(f"(SELECT sum(s) FROM ({BY_USER}))"))
    bad = SQL(many.format("(SELECT sum(least(greatest(value, 0), 1)) FROM data)"))
    result = audit(good, PureDP(1.0), PAIR, draws=10_000, seed=1, mutants=[bad])
    assert result.verdict is Verdict.NOT_REFUTED
    result = audit(bad, PureDP(1.0), PAIR, draws=10_000, settings=Settings(workers=2))
    assert result.verdict is Verdict.REFUTED
    assert result.certified_epsilon > 2


@pytest.mark.slow
def test_a_view_of_postgresql_that_forgets_the_bound_is_refuted(postgres: str) -> None:
    view = f"""
        CREATE VIEW private_stats AS
        SELECT sum(least(greatest(value, 0), 1)) + {NOISE} AS total FROM data"""
    forgets = SQL("SELECT total FROM private_stats", postgres, setup=view)
    result = audit(forgets, PureDP(1.0), PAIR, draws=2_000, mutants=None)
    assert result.verdict is Verdict.REFUTED
    bounded = view.replace("sum(least(greatest(value, 0), 1))", "sum(s)").replace(
        "FROM data", f"FROM ({BY_USER}) AS users"
    )
    keeps = SQL("SELECT total FROM private_stats", postgres, setup=bounded)
    result = audit(keeps, PureDP(1.0), PAIR, draws=2_000, mutants=[forgets])
    assert result.verdict is Verdict.NOT_REFUTED


@pytest.mark.slow
def test_a_removed_user_is_audited() -> None:
    pair = NeighborPair([[1.0], [1.0]], [[1.0]], relation=Relation.ADD_REMOVE_USER)
    count = SQL(f"SELECT (SELECT count(*) FROM data) + {NOISE} / 3 FROM range({{draws}})")
    claim = PureDP(1.0, relation=Relation.ADD_REMOVE_USER)
    assert audit(count, claim, pair, draws=5_000, mutants=None).verdict is Verdict.REFUTED
