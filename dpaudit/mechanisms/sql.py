"""Mechanisms that are queries of a database.

Each dataset is loaded into a database or a schema of its own. The query then draws with the noise
of the database, such as ``random()``, a function or a view.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import os
import secrets
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dpaudit import _validate
from dpaudit.data import digest
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.outcomes import Array, Then, applied, as_array, attempt, unbound
from dpaudit.mechanisms.protocols import needed
from dpaudit.mechanisms.written import table_of

DUCKDB = "duckdb"

_DRAWS = "{draws}"
_KEPT = 4  # loaded datasets; an audit goes back and forth between two
_SHORT = 60
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "BOOLEAN"),
    (int, "BIGINT"),
    (float, "DOUBLE PRECISION"),
    (str, "TEXT"),
)

Rows = tuple[list[str], list[tuple[Any, ...]]]


class _Database(Protocol):
    """A connection to an empty database or schema."""

    def run(self, statement: str) -> Rows:
        """Run a statement, and return the names of its columns and its rows."""

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert at least one row into a table, whose name is quoted."""

    def restore(self) -> None:
        """Undo what happened since :meth:`keep`."""

    def keep(self) -> None:
        """Keep everything so far."""

    def close(self) -> None:
        """Remove everything, and close the connection."""


class SQL:
    """A mechanism that is a query of a database, with the database's own noise.

    The dataset is loaded into a table of a new database in memory, or of a new schema. Each draw
    begins with the loaded state, because everything that the query changes is undone.

    Parameters
    ----------
    query : str
        The query whose result is the release. If the query contains ``{draws}``, the number of
        draws replaces it, and each row of the result is one draw. Otherwise, the query runs once
        for each draw.
    engine : str or callable, optional
        "duckdb" (the default) for DuckDB in this process, or a URL of SQLAlchemy, such as
        ``"postgresql+psycopg://user@/database?host=/tmp"`` or ``"sqlite://"``. For another
        database, pass a function that returns a connection of SQLAlchemy to an empty database.
    table : str, optional
        Name of the table. The default is "data". If the dataset is a dict of frames, its keys are
        the names of the tables.
    user : str, optional
        Name of the column with the number of the user, if the dataset is an array or a list. The
        default is "user_id". The other columns are ``value``, or ``x1``, ``x2``, ... if an item has
        several values.
    setup : str or sequence of str, optional
        Statements that run after the data were loaded, such as those that create a view or a
        function.
    key : str, optional
        Column that names the groups of the result. A draw is then a dict from groups to values.
        Declare all groups by ``Outcomes(SQL(...), keys=[...])``.

    Raises
    ------
    MechanismError
        If a statement fails, or if the result does not have the described rows. If the mechanism is
        wrapped in ``Outcomes(..., errors="outcome")``, errors of the query are outcomes.

    Notes
    -----
    Databases cannot be seeded with enough bits, so `dpaudit replay` compares only verdicts. Mutants
    cannot change the noise of a database: pass mutants such as ``SQL`` with another query.

    Examples
    --------
    >>> noise = "-ln(random()) * (CASE WHEN random() < 0.5 THEN 1 ELSE -1 END)"
    >>> total = SQL(f"SELECT sum(value) + {noise} FROM data, range({{draws}}) AS r(i) GROUP BY i")
    >>> total(np.array([[1.0], [2.0]]), 3, rng=np.random.default_rng(0)).shape
    (3,)
    """

    def __init__(
        self,
        query: str,
        engine: str | Callable[[], Any] = DUCKDB,
        *,
        table: str = "data",
        user: str = "user_id",
        setup: str | Sequence[str] = (),
        key: str | None = None,
    ) -> None:
        self.query = _validate.text(query=query)
        if not isinstance(engine, str):
            _validate.function('"duckdb", a URL, or a function connect()', engine=engine)
        elif engine != DUCKDB:
            _check_url(_validate.text(engine=engine))
        self.engine = engine
        self.table, self.user = _validate.text(table=table), _validate.text(user=user)
        if not isinstance(setup, str | list | tuple):
            raise TypeError(
                f"setup must be a statement or a list of them, got {_validate.describe(setup)}"
            )
        self.setup = [setup] if isinstance(setup, str) else list(setup)
        for one in self.setup:
            _validate.text(setup=one)
        self.key = None if key is None else _validate.text(key=key)
        if key is not None and _DRAWS in query:
            raise ArgumentError(
                "key must be None if the query contains {draws}, because each row is a draw, got "
                f"{key!r}"
            )
        words = " ".join(query.split())
        self.__name__ = words if len(words) <= _SHORT else f"{words[: _SHORT - 3]}..."
        self.dpaudit_unseeded = True
        self._loaded: dict[bytes, _Database] = {}
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"SQL({self.__name__!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": {}}

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        draws = self.draws_one_by_one(data, size, rng=rng)
        return unbound(draws, as_array(draws))

    def draws_one_by_one(
        self,
        data: Any,
        size: int,
        *,
        rng: np.random.Generator,
        then: Then | None = None,
        catches: bool = False,
    ) -> list[Any]:
        """Return `size` independent draws as the database returns them."""
        database = self._database_of(data)
        is_single = catches or _DRAWS not in self.query
        sizes = [1] * size if is_single else [size]
        draws: list[Any] = []
        for count in sizes:
            if catches:
                draws.append(attempt(lambda: self._drawn(database, 1)[0]))
                continue
            try:
                draws += self._drawn(database, count)
            except MechanismError:
                raise
            except Exception as error:
                raise MechanismError(
                    f"{self.__name__} raised {type(error).__name__}: {error}"
                ) from error
        return applied(then, draws, catches=catches)

    def close(self) -> None:
        """Remove the loaded datasets, and close the connections."""
        for database in self._loaded.values():
            database.close()
        self._loaded.clear()

    def _drawn(self, database: _Database, size: int) -> list[Any]:
        """Run the query once, and return its draws."""
        try:
            names, rows = database.run(self.query.replace(_DRAWS, str(size)))
        finally:
            database.restore()
        if self.key is not None:
            return [self._groups(names, rows)]
        if len(rows) != size and (rows or _DRAWS in self.query):
            advice = "" if _DRAWS in self.query else '. Pass key="..." for the result of a GROUP BY'
            raise MechanismError(
                f"{self.__name__} must return one row for each draw, {size} here, got "
                f"{len(rows)} rows{advice}"
            )
        return [_release(names, row) for row in rows] or [None]

    def _groups(self, names: list[str], rows: list[tuple[Any, ...]]) -> dict[Any, Any]:
        """Return a result with groups as a dict."""
        if self.key not in names or len(names) < 2:
            raise MechanismError(
                f"{self.__name__} must return the column {self.key!r} and another one, got "
                f"{', '.join(names)}"
            )
        at = names.index(self.key)
        groups: dict[Any, Any] = {}
        for row in rows:
            if row[at] in groups:
                raise MechanismError(f"{self.__name__} returned the group {row[at]!r} twice")
            for name, cell in zip(names, row, strict=True):
                if name != self.key:
                    groups[row[at] if len(names) == 2 else (row[at], name)] = _plain(cell)
        return groups

    # --- loading ---

    def _database_of(self, data: Any) -> _Database:
        """Return the database with a dataset, which is loaded at the first use."""
        if self._process != os.getpid():  # the connections belong to the process that was copied
            self._loaded, self._process = {}, os.getpid()
        seen = digest(data)
        if not seen or seen not in self._loaded:
            while len(self._loaded) >= _KEPT or seen in self._loaded:
                self._loaded.pop(next(iter(self._loaded))).close()
            self._loaded[seen] = self._load(data)
        return self._loaded[seen]

    def _load(self, data: Any) -> _Database:
        tables = data if isinstance(data, Mapping) else {self.table: data}
        database = self._connected()
        try:
            for name, part in tables.items():
                columns = table_of(part, "a table", user=self.user)
                kinds = {column: _type_of(column, cells) for column, cells in columns.items()}
                listed = ", ".join(f"{_quoted(column)} {kind}" for column, kind in kinds.items())
                database.run(f"CREATE TABLE {_quoted(name)} ({listed})")
                rows = list(zip(*columns.values(), strict=True))
                if rows:
                    database.insert(_quoted(name), rows)
            for statement in self.setup:
                database.run(statement)
            database.keep()
        except MechanismError:
            database.close()
            raise
        except Exception as error:
            database.close()
            raise MechanismError(
                f"the data of {self.__name__} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        return database

    def _connected(self) -> _Database:
        if self.engine == DUCKDB:
            return _DuckDB()
        try:
            return _Alchemy(self.engine)
        except MechanismError:
            raise
        except Exception as error:
            raise MechanismError(
                f"no connection for engine={_validate.describe(self.engine)}: "
                f"{type(error).__name__}: {error}"
            ) from error


class _DuckDB:
    """A database of DuckDB in memory."""

    def __init__(self) -> None:
        self._connection = needed("duckdb", 'engine="duckdb"').connect(":memory:")
        self._connection.begin()
        self._finalizer = weakref.finalize(self, self._connection.close)

    def run(self, statement: str) -> Rows:
        result = self._connection.execute(statement)
        return [column[0] for column in result.description or ()], result.fetchall()

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        places = ", ".join("?" * len(rows[0]))
        self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)

    def restore(self) -> None:
        with contextlib.suppress(Exception):  # a query may have ended the transaction
            self._connection.rollback()
        self._connection.begin()

    def keep(self) -> None:
        self._connection.commit()
        self._connection.begin()

    def close(self) -> None:
        self._finalizer()


class _Alchemy:
    """A connection of SQLAlchemy: a schema of PostgreSQL, or an empty database."""

    def __init__(self, engine: Any) -> None:
        self._sql = needed("sqlalchemy", "an engine other than DuckDB")
        self._schema = ""
        if callable(engine):
            self._connection = engine()
        else:
            made = self._sql.create_engine(engine, poolclass=self._sql.pool.NullPool)
            self._connection = made.connect()
        if self._connection.dialect.name == "postgresql" and not callable(engine):
            self._schema = _quoted(f"dpaudit_{os.getpid()}_{secrets.token_hex(4)}")
            self.run(f"CREATE SCHEMA {self._schema}")
            self.run(f"SET search_path TO {self._schema}, public")
            self._connection.commit()
        self._finalizer = weakref.finalize(
            self, _remove, self._connection, self._schema, os.getpid()
        )

    def run(self, statement: str) -> Rows:
        # Without parameters, a driver does not read % in a statement as a place of one.
        plain = {"no_parameters": True}
        result = self._connection.exec_driver_sql(statement, execution_options=plain)
        if not result.returns_rows:
            return [], []
        return list(result.keys()), [tuple(row) for row in result.fetchall()]

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        names = [f"c{at}" for at in range(len(rows[0]))]
        places = ", ".join(f":{name}" for name in names)
        escaped = table.replace("\\", "\\\\").replace(":", "\\:")
        statement = self._sql.text(f"INSERT INTO {escaped} VALUES ({places})")
        self._connection.execute(statement, [dict(zip(names, row, strict=True)) for row in rows])

    def restore(self) -> None:
        self._connection.rollback()

    def keep(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        self._finalizer()


def _remove(connection: Any, schema: str, owner: int) -> None:
    """Remove a schema, and close its connection, unless another process opened it."""
    if owner != os.getpid():
        return
    with contextlib.suppress(Exception):
        connection.rollback()
        if schema:
            connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
            connection.commit()
    connection.close()


def _check_url(engine: str) -> None:
    """Refuse a URL of a database that is neither new nor has schemas."""
    sqlalchemy = needed("sqlalchemy", "an engine other than DuckDB")
    allowed = '"duckdb", a URL of PostgreSQL, "sqlite://", or a function connect()'
    try:
        url = sqlalchemy.make_url(engine)
    except sqlalchemy.exc.ArgumentError as error:
        raise ArgumentError(f"engine must be {allowed}, got {engine!r}") from error
    name = url.get_backend_name()
    if name != "postgresql" and not (name == "sqlite" and url.database in (None, "", ":memory:")):
        raise ArgumentError(
            f"engine must be {allowed}, got {url.render_as_string()!r}. The function returns a "
            "connection to an empty database"
        )


def _quoted(name: str) -> str:
    escaped = str(name).replace('"', '""')
    return f'"{escaped}"'


def _type_of(column: str, cells: Sequence[Any]) -> str:
    """Return the type of a column; missing cells have any type."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int, float}:
        kinds = {float}
    for kind, words in _TYPES:
        if kinds <= {kind}:
            return words if kinds else "DOUBLE PRECISION"
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise MechanismError(f"the column {column!r} must hold values of one type, got {names}")


def _release(names: Sequence[str], row: Sequence[Any]) -> Any:
    """Return a row as a draw: one value, or a dict of several."""
    if len(row) == 1:
        return _plain(row[0])
    return {name: _plain(cell) for name, cell in zip(names, row, strict=True)}


def _plain(cell: Any) -> Any:
    if isinstance(cell, decimal.Decimal):
        return float(cell)
    if isinstance(cell, datetime.date | datetime.time | datetime.timedelta):
        return str(cell)
    return cell
