"""Adapters of PipelineDP and SmartNoise SQL, whose aggregations and queries become mechanisms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.adapters.drawing import Drawn, Given, Release, with_options
from dpaudit.data import is_frame
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import needed

Then = Callable[[Any], Any]

_ALL = "all"


# --- PipelineDP ---


def pipeline_dp(
    params: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    partitions: Sequence[Hashable] | None = (_ALL,),
    user: str = "user",
    partition: str | None = None,
    value: str | None = None,
    given: Given | None = None,
    then: Then | None = None,
) -> Callable[..., Any]:
    """Return a mechanism that runs an aggregation of PipelineDP on the local backend.

    Parameters
    ----------
    params : pipeline_dp.AggregateParams or callable
        The parameters, or a function without arguments that makes the parameters.
    epsilon, delta : float
        Privacy budget of the aggregation. PipelineDP refuses a `delta` of 0 if the noise is
        Gaussian or partitions are private.
    partitions : sequence, optional
        Public partitions. None means private partitions, which PipelineDP selects. The draws are
        then dicts, and ``Outcomes(..., keys=[...])`` declares the possible partitions.
    user, partition, value : str, optional
        Columns of a frame. Without `partition`, all rows are in one partition.
    given : optional
        A function of the data that returns a list of rows (user, partition, value); see
        :class:`Drawn`. The default is the rows of a frame; for an array, all items of all users in
        one partition.
    then : callable, optional
        Function of the release. The release is a dict from partitions to metrics, and the
        function's value is the draw. By default, if only one partition is public, the draw is the
        list of its metrics. If this partition also has only one metric, the draw is a number. In
        all other cases, the draw is a dict. The keys of the dict are partitions, or pairs of a
        partition and the name of a metric.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``. PipelineDP draws from its own entropy and cannot be
        seeded.

    Raises
    ------
    MechanismError
        If PipelineDP is not installed when the mechanism is called.
    """
    for name, column in {"user": user, "partition": partition, "value": value}.items():
        if column is not None or name == "user":
            _validate.text(**{name: column})
    budget = {
        "epsilon": _validate.positive(epsilon=epsilon),
        "delta": _validate.delta(delta=delta),
    }
    public = None
    if partitions is not None:
        public = list(_validate.items("a list of public partitions", partitions=partitions))
    if not callable(params) and not hasattr(params, "metrics"):
        raise TypeError(
            f"params must be an AggregateParams or a function, got {_validate.describe(params)}"
        )
    rows = functools.partial(_rows, user=user, partition=partition, value=value)
    prepare = functools.partial(_prepared_pipeline, params, public)
    kept = functools.partial(_metrics, public) if then is None else then
    mechanism = Drawn(
        "pipeline_dp",
        prepare,
        given=rows if given is None else given,
        then=kept,
        seeded=False,
    )
    return with_options(mechanism, budget)


def _prepared_pipeline(
    params: Any, public: list[Hashable] | None, epsilon: float, delta: float
) -> Release:
    library = needed("pipeline_dp", package="pipeline-dp")
    asked = params() if callable(params) else params
    extractors = library.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )

    def release(given: Any, rng: np.random.Generator) -> Any:
        # Each draw gets a new accountant, because a budget can be spent only once.
        accountant = library.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
        engine = library.DPEngine(accountant, library.LocalBackend())
        result = engine.aggregate(given, asked, extractors, public_partitions=public)
        accountant.compute_budgets()
        return dict(result)

    return release


def _rows(data: Any, user: str, partition: str | None, value: str | None) -> list[Any]:
    if is_frame(data):
        cells = [
            [fixed] * len(data) if name is None else list(data[name])
            for name, fixed in ((user, None), (partition, _ALL), (value, 0.0))
        ]
        return list(zip(*cells, strict=True))
    return [(at, _ALL, one) for at, held in enumerate(data) for one in np.ravel(held).tolist()]


def _metrics(public: list[Hashable] | None, release: dict[Hashable, Any]) -> Any:
    if public is not None and len(public) == 1:
        (found,) = release.values()
        values = list(found)
        return values[0] if len(values) == 1 else values
    flat = {}
    for name, found in release.items():
        metrics = found._asdict()
        for metric, one in metrics.items():
            flat[name if len(metrics) == 1 else (name, metric)] = one
    return flat


# --- SmartNoise SQL ---


def smartnoise_sql(
    query: str,
    metadata: Any,
    *,
    epsilon: float,
    delta: float,
    given: Given | None = None,
    then: Then | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return a mechanism that runs a query of SmartNoise SQL on a frame of pandas.

    Parameters
    ----------
    query : str
        A query, such as ``"SELECT COUNT(*) AS n FROM s.t"``.
    metadata : dict or str
        Argument of ``snsql.from_df``: the tables, their columns, bounds, ``private_id``,
        ``max_ids``.
    epsilon, delta : float
        Arguments of ``snsql.Privacy``, which apply to *each column* of the query. SmartNoise's
        ``get_privacy_cost`` returns the cost of the whole query. Use that cost as the claim of an
        audit of the query.
    given, then : optional
        See :class:`Drawn`. By default, the input is the data, which must be a frame. The release is
        a frame. If the frame has one cell, the draw is the number in that cell. Other results need
        ``Outcomes(..., keys=[...])`` if groups can be present or absent.
    **options
        Further arguments of ``snsql.Privacy``.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``. SmartNoise draws from OpenDP and SQLite and cannot be
        seeded. A query takes tenths of a second, and most of this time goes to parsing its text.

    Raises
    ------
    MechanismError
        If SmartNoise is not installed when the mechanism is called, or if the data are not a frame
        of pandas.
    """
    if not isinstance(metadata, Mapping) or not metadata:
        _validate.text(metadata=metadata)
    budget = {
        "epsilon": _validate.positive(epsilon=epsilon),
        "delta": _validate.delta(delta=delta),
    }
    prepare = functools.partial(_prepared_query, _validate.text(query=query), metadata)
    mechanism = Drawn("smartnoise_sql", prepare, given=given, then=then, seeded=False)
    return with_options(mechanism, {**budget, **options})


def _prepared_query(query: str, metadata: Any, **options: Any) -> Release:
    library = needed("snsql", package="smartnoise-sql")

    def release(given: Any, rng: np.random.Generator) -> Any:
        if not is_frame(given) or not hasattr(given, "iloc"):
            raise MechanismError(
                "the data of smartnoise_sql must be a frame of pandas, got data of type "
                f"{type(given).__name__}. Pass given=function of the data"
            )
        reader = library.from_df(given, privacy=library.Privacy(**options), metadata=metadata)
        result = reader.execute_df(query)
        return result.iloc[0, 0] if result.shape == (1, 1) else result

    return release
