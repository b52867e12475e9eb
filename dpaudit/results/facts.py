"""What the mappings of stored records hold, as far as anything reads it again."""

from __future__ import annotations

from typing import Any, TypedDict

from dpaudit._json import Count, Name, Nonnegative, Probability


class _Claim(TypedDict):
    notion: str
    epsilon: Nonnegative
    delta: Probability
    relation: str
    source: str
    words: str


class ClaimFacts(_Claim, total=False):
    """The claim of an audit as plain data."""

    parameters: dict[str, Any]


class Origin(TypedDict, total=False):
    """How a record was made, as far as a replay needs it."""

    kind: str
    path: Name
    item: str
    profile: str
    failure_prob: Probability
    sequential: bool
    versions: dict[str, str]
    sources: dict[str, str]
    records: Count
    replays: bool
    reason: str
    target: Name
    draws: Count
    method: str
    epsilon: float | None
    delta: float | None
    mu: float | None
    rho: float | None
    relation: str | None
    pair: str | None
    like: Name | None
    users: int | None
    m: int | None
    dim: int | None
    range: tuple[int | float, ...] | None
    mutants: tuple[Name, ...] | None
    score: Name | None
    errors: str
    float_attack: bool
