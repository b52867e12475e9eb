"""Neighbouring relations: what it means for two inputs to differ in one user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dpaudit import _validate
from dpaudit.errors import ArgumentError

NORMS = ("l1", "l2", "linf")
NAMES = ("replace_user", "add_remove_user", "replace_label", "within_sensitivity", "custom")

Check = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Relation:
    """A neighbouring relation.

    Use the constants ``Relation.REPLACE_USER`` and ``Relation.ADD_REMOVE_USER`` for datasets,
    :meth:`of_group` for groups of users, :func:`replace_label` where all but one's label is public,
    :func:`custom_relation` for one of your own, and :func:`within_sensitivity` for mechanisms that
    are handed query values. ``Relation.WITHIN_SENSITIVITY`` is the common case of queries that each
    move by at most 1.

    Parameters
    ----------
    name : {"replace_user", "add_remove_user", "replace_label", "within_sensitivity", "custom"}
        Kind of relation.
    norm : {"l1", "l2", "linf"}, optional
        For "within_sensitivity" only: the norm in which query values are close.
    radius : float, optional
        For "within_sensitivity" only: the largest distance, > 0.
    users : int, optional
        For relations of users: how many may differ together, at least 1.
    label : str or int, optional
        For "replace_label" only: the column, the table of a dict, the field of a record or the
        place in an item that holds the label.
    words : str, optional
        For "custom" only: what it is called; two of the same words are one relation.
    check : callable, optional
        For "custom" only: ``check(left, right)`` returns whether they are neighbours.
    """

    name: str
    norm: str | None = None
    radius: float | None = None
    users: int = 1
    label: str | int | None = None
    words: str = ""
    check: Check | None = field(default=None, compare=False, repr=False)

    REPLACE_USER: ClassVar[Relation]
    ADD_REMOVE_USER: ClassVar[Relation]
    WITHIN_SENSITIVITY: ClassVar[Relation]

    def __post_init__(self) -> None:
        _validate.choice(NAMES, name=self.name)
        if self.name == "within_sensitivity":
            _validate.choice(NORMS, norm=self.norm)
            object.__setattr__(self, "radius", _validate.positive(radius=self.radius))
        elif self.norm is not None or self.radius is not None:
            raise ArgumentError(f"norm and radius do not apply to the relation {self.name!r}")
        _validate.integer(1, users=self.users)
        if self.users > 1 and self.name not in ("replace_user", "add_remove_user", "replace_label"):
            raise ArgumentError(f"users do not apply to the relation {self.name!r}")
        if (self.label is None) == (self.name == "replace_label"):
            said = "needs a label" if self.label is None else "has no label"
            raise ArgumentError(
                f"the relation {self.name!r} {said}, got {_validate.shown(self.label)}"
            )
        if isinstance(self.label, str):
            _validate.text(label=self.label)
        elif self.label is not None:
            _validate.integer(-_validate.LARGEST_INTEGER, label=self.label)
        _validate.text(empty=True, words=self.words)
        if (self.name == "custom") != bool(self.words):
            raise ArgumentError(
                f"words name a custom relation, got {self.words!r} for {self.name!r}"
            )
        if self.check is not None and (self.name != "custom" or not callable(self.check)):
            raise TypeError(f"check must be a function of a custom relation, got {self.check!r}")

    def __str__(self) -> str:
        if self.name == "within_sensitivity":
            return f"within_sensitivity(norm={self.norm}, radius={self.radius:g})"
        if self.name == "custom":
            return self.words
        told = [] if self.label is None else [f"label={self.label}"]
        told += [f"users={self.users}"] if self.users > 1 else []
        return f"{self.name}({', '.join(told)})" if told else self.name

    @property
    def is_of_users(self) -> bool:
        """Whether it relates datasets of users, and not query values."""
        return self.name != "within_sensitivity"

    def of_group(self, users: int) -> Relation:
        """Return the relation in which up to `users` users differ together.

        Examples
        --------
        >>> print(Relation.ADD_REMOVE_USER.of_group(3))
        add_remove_user(users=3)
        """
        return replace(self, users=users)

    def to_json(self) -> dict[str, Any]:
        """Return the relation as plain data; of a custom one its words."""
        told: dict[str, Any] = {"name": self.name, "norm": self.norm, "radius": self.radius}
        if self.users > 1:
            told["users"] = self.users
        if self.label is not None:
            told["label"] = self.label
        if self.words:
            told["words"] = self.words
        return told


Relation.REPLACE_USER = Relation("replace_user")
Relation.ADD_REMOVE_USER = Relation("add_remove_user")
Relation.WITHIN_SENSITIVITY = Relation("within_sensitivity", "linf", 1.0)


def checked_relation(relation: Any) -> Relation:
    """Return a relation; refuse anything else, such as the name of one."""
    return _validate.instance(
        Relation, "a Relation, such as Relation.REPLACE_USER", relation=relation
    )


def within_sensitivity(radius: float = 1.0, *, norm: str = "linf") -> Relation:
    """Return the relation "query values at distance at most `radius` in `norm`".

    Examples
    --------
    >>> print(within_sensitivity(2.0, norm="l1"))
    within_sensitivity(norm=l1, radius=2)
    """
    return Relation("within_sensitivity", norm, radius)


def replace_label(label: str | int) -> Relation:
    """Return the relation "one user has other labels": all else of the data is public.

    Parameters
    ----------
    label : str or int
        Column of a frame, table of a dict, field of a record, or place in an item of an array.

    Examples
    --------
    >>> print(replace_label("income"))
    replace_label(label=income)
    """
    return Relation("replace_label", label=label)


def custom_relation(words: str, check: Check) -> Relation:
    """Return a relation of your own.

    Parameters
    ----------
    words : str
        What reports call it; claims and pairs of the same words speak of the same relation.
    check : callable
        ``check(left, right)`` returns True for neighbours, and False, or a text that says why
        not, for all others.

    Examples
    --------
    >>> edges = custom_relation("one edge differs", lambda a, b: len(set(a) ^ set(b)) == 1)
    >>> print(edges)
    one edge differs
    """
    _validate.text(words=words)
    _validate.function("a function check(left, right)", check=check)
    return Relation("custom", words=words, check=check)
