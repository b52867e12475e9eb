"""Results as rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpaudit import _validate
from dpaudit.results.mutants import MutantStatus

if TYPE_CHECKING:
    from dpaudit.results.result import AuditResult

LIBRARIES = ("pandas", "polars", "pyarrow")

_TEXTS = "id", "mechanism", "claim", "pair", "verdict", "expected", "event"
_NUMBERS = (
    "claimed_epsilon",
    "claimed_delta",
    "certified_epsilon",
    "certified_delta",
    "estimated_epsilon",
    "detectable_epsilon",
    "failure_prob",
    "p_value",
    "mutation_score",
    "seconds",
)
_COUNTS = "draws", "mutants", "mutants_killed"


def to_frame(results: Sequence[AuditResult], library: str) -> Any:
    """Return a DataFrame with a row for each result; see :meth:`AuditResult.to_frame`."""
    import narwhals.stable.v2 as nw

    backend: Any = _validate.choice(LIBRARIES, library=library)
    rows = [_row(result) for result in results]
    kinds: dict[str, Any] = dict.fromkeys(_TEXTS, nw.String)
    kinds |= dict.fromkeys(_NUMBERS, nw.Float64) | dict.fromkeys(_COUNTS, nw.Int64)
    kinds["seed"] = nw.String  # a seed may exceed 64 bits
    columns = [
        nw.new_series(name, [row[name] for row in rows], kind, backend=backend)
        for name, kind in kinds.items()
    ]
    return nw.concat([column.to_frame() for column in columns], how="horizontal").to_native()


def _row(result: AuditResult) -> dict[str, Any]:
    row = {name: getattr(result, name) for name in _NUMBERS}
    return row | {
        "id": result.id,
        "mechanism": result.mechanism,
        "claim": result.claim["words"],
        "pair": result.pair_words,
        "verdict": result.verdict.value,
        "expected": result.expected and result.expected.value,
        "event": result.witness.event,
        "draws": sum(result.draws.values()),
        "mutants": len(result.mutants),
        "mutants_killed": sum(m.status is MutantStatus.KILLED for m in result.mutants),
        "seed": str(result.seed),
    }
