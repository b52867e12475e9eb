"""Neighbouring relations: identity, descriptions and refusals."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpaudit.claims.notions import NORMS, Relation, within_sensitivity


def test_constants_are_the_relations_of_their_names() -> None:
    assert Relation("replace_user") == Relation.REPLACE_USER
    assert Relation("add_remove_user") == Relation.ADD_REMOVE_USER
    assert within_sensitivity(1.0, norm="linf") == Relation.WITHIN_SENSITIVITY
    assert within_sensitivity(1) == within_sensitivity(1.0)
    assert len({Relation.REPLACE_USER, Relation("replace_user")}) == 1


def test_norm_and_radius_are_part_of_the_relation() -> None:
    relations = {within_sensitivity(r, norm=n) for r in (0.5, 1.0) for n in NORMS}
    assert len(relations) == 6
    assert len({str(r) for r in relations}) == 6


def test_words_and_plain_data() -> None:
    assert str(Relation.REPLACE_USER) == "replace_user"
    assert str(within_sensitivity(2.5, norm="l2")) == "within_sensitivity(norm=l2, radius=2.5)"
    relation = within_sensitivity(2.5, norm="l2")
    assert Relation(**relation.to_json()) == relation
    assert Relation.ADD_REMOVE_USER.to_json() == {
        "name": "add_remove_user",
        "norm": None,
        "radius": None,
    }


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_bad_radius_is_refused(radius: float) -> None:
    with pytest.raises(ValueError, match="^radius must be"):
        within_sensitivity(radius)


@pytest.mark.parametrize("radius", [None, "1", True])
def test_radius_of_another_type_is_refused(radius: Any) -> None:
    with pytest.raises(TypeError, match="^radius must be"):
        Relation("within_sensitivity", "l1", radius)


@pytest.mark.parametrize("norm", [None, "L1", "l3", 2, ""])
def test_unknown_norm_is_refused(norm: Any) -> None:
    with pytest.raises(ValueError, match="^norm must be one of"):
        Relation("within_sensitivity", norm, 1.0)


@pytest.mark.parametrize("name", ["replace", "", None, "REPLACE_USER"])
def test_unknown_name_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="^name must be one of"):
        Relation(name)


def test_norm_and_radius_do_not_apply_to_users() -> None:
    for arguments in ({"norm": "l1"}, {"radius": 1.0}):
        with pytest.raises(ValueError, match="must be None for the relation"):
            Relation("replace_user", **arguments)  # type: ignore[arg-type]
