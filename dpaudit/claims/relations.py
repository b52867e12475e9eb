"""Neighbouring relations: what it means for two inputs to differ in one user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpaudit import _validate
from dpaudit.errors import ArgumentError

NORMS = ("l1", "l2", "linf")


@dataclass(frozen=True)
class Relation:
    """A neighbouring relation.

    Use the constants ``Relation.REPLACE_USER`` and ``Relation.ADD_REMOVE_USER`` for datasets, and
    :func:`within_sensitivity` for mechanisms that are handed query values.
    ``Relation.WITHIN_SENSITIVITY`` is the common case of queries that each move by at most 1.

    Parameters
    ----------
    name : {"replace_user", "add_remove_user", "within_sensitivity"}
        Kind of relation.
    norm : {"l1", "l2", "linf"}, optional
        For "within_sensitivity" only: the norm in which query values are close.
    radius : float, optional
        For "within_sensitivity" only: the largest distance, > 0.
    """

    name: str
    norm: str | None = None
    radius: float | None = None

    REPLACE_USER: ClassVar[Relation]
    ADD_REMOVE_USER: ClassVar[Relation]
    WITHIN_SENSITIVITY: ClassVar[Relation]

    def __post_init__(self) -> None:
        _validate.choice(("replace_user", "add_remove_user", "within_sensitivity"), name=self.name)
        if self.name == "within_sensitivity":
            _validate.choice(NORMS, norm=self.norm)
            object.__setattr__(self, "radius", _validate.positive(radius=self.radius))
        elif self.norm is not None or self.radius is not None:
            raise ArgumentError(f"norm and radius do not apply to the relation {self.name!r}")

    def __str__(self) -> str:
        if self.name == "within_sensitivity":
            return f"within_sensitivity(norm={self.norm}, radius={self.radius:g})"
        return self.name

    def to_json(self) -> dict[str, Any]:
        """Return the relation as plain data."""
        return {"name": self.name, "norm": self.norm, "radius": self.radius}


Relation.REPLACE_USER = Relation("replace_user")
Relation.ADD_REMOVE_USER = Relation("add_remove_user")
Relation.WITHIN_SENSITIVITY = Relation("within_sensitivity", "linf", 1.0)


def checked_relation(relation: Any) -> Relation:
    """Return a relation; refuse anything else, such as the name of one."""
    if not isinstance(relation, Relation):
        raise TypeError(
            f"relation must be a Relation, such as Relation.REPLACE_USER, got {relation!r}"
        )
    return relation


def within_sensitivity(radius: float = 1.0, *, norm: str = "linf") -> Relation:
    """Return the relation "query values at distance at most `radius` in `norm`".

    Examples
    --------
    >>> print(within_sensitivity(2.0, norm="l1"))
    within_sensitivity(norm=l1, radius=2)
    """
    return Relation("within_sensitivity", norm, radius)
