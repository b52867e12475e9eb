"""What the mappings of stored records hold, as far as anything reads it again."""

from __future__ import annotations

from typing import Any, TypedDict


class _Claim(TypedDict):
    notion: str
    epsilon: float
    delta: float
    relation: str
    source: str
    words: str


class ClaimFacts(_Claim, total=False):
    """The claim of an audit as plain data."""

    parameters: dict[str, Any]


class Origin(TypedDict, total=False):
    """How a record was made, as far as a replay needs it."""

    kind: str
    path: str
    item: str
    profile: str
    failure_prob: float
    sequential: bool | None
    versions: dict[str, str]
    sources: dict[str, str]
    records: int
    replays: bool
    reason: str
    target: str
    draws: int
    epsilon: float | None
    delta: float | None
    mu: float | None
    rho: float | None
    relation: str | None
    pair: str | None
    like: str | None
    users: int | None
    m: int | None
    dim: int | None
    range: tuple[int | float, ...] | None
    mutants: tuple[str, ...] | None
    score: str | None
    errors: str
    float_attack: bool
