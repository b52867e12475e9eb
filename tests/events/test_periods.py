"""Tests that residues and fractional parts are found if they are planted, and only then."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.events.features import periodic

Floats = NDArray[np.float64]
SIZE = 6000


def _found(left: Floats, right: Floats) -> dict[str, Floats]:
    probe = np.array([0.0, 3.0, 7.25, -1.0, 12345.678, np.nan])
    return {column.name: read(probe) for column, read in periodic("output", left, right)}


def _integers(modulus: int, residue: int, scale: float, rng: np.random.Generator) -> Floats:
    whole = np.rint(rng.laplace(scale=scale, size=SIZE))
    told = np.where(rng.random(SIZE) < 0.7, residue, rng.integers(modulus, size=SIZE))
    return np.asarray(modulus * whole + told)


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e12])
@pytest.mark.parametrize("modulus", [2, 7, 10, 16])
def test_a_residue_is_found_under_noise_of_any_scale(modulus: int, scale: float) -> None:
    rng = np.random.default_rng(0)
    left, right = (_integers(modulus, r, scale, rng) for r in (0, modulus - 1))
    found = _found(left, right)
    name = f"output mod {modulus}"
    assert name in found
    assert found[name][[0, 1, 3]].tolist() == [0.0, 3.0 % modulus, modulus - 1.0]
    assert np.isnan(found[name][5])


def test_a_residue_of_rounded_numbers_is_found_in_their_last_digits() -> None:
    rng = np.random.default_rng(0)
    left, right = (np.round(_integers(3, r, 1e4, rng) / 1000, 3) for r in (0, 1))
    found = _found(left, right)
    assert found["output / 0.001 mod 3"][[0, 1, 4]].tolist() == [0.0, 0.0, 12345678 % 3]


@pytest.mark.parametrize("period", [0.01, 0.0372, 0.25, 1e-7, 2.0**-30])
def test_a_comb_is_found_at_its_period(period: float) -> None:
    rng = np.random.default_rng(0)
    left, right = (
        period * (np.rint(rng.normal(size=SIZE) * 3 / period) + low + rng.random(SIZE) / 2)
        for low in (0.0, 0.4)
    )
    periods = [float(name.partition(" / ")[2]) for name in _found(left, right)]
    assert any(abs(p / period - 1) < 1e-6 for p in periods), periods


def test_a_fractional_part_lies_between_0_and_1() -> None:
    rng = np.random.default_rng(0)
    left, right = (np.rint(rng.normal(size=SIZE) * 300) / 100 + at for at in (0.001, 0.004))
    left, right = (side + 1e-4 * rng.random(SIZE) for side in (left, right))  # no lattice
    ((name, values),) = _found(left, right).items()
    assert name == "fractional part of output / 0.01"
    assert np.all((values[:5] >= 0) & (values[:5] < 1))
    assert values[4] == pytest.approx(0.8, abs=1e-6)


DRAWS = {
    "Laplace": lambda rng, shift: rng.laplace(size=SIZE) + shift,
    "Gaussian": lambda rng, shift: rng.normal(size=SIZE) + shift,
    "Cauchy": lambda rng, shift: rng.standard_cauchy(size=SIZE) + shift,
    "uniform": lambda rng, shift: rng.random(SIZE) * (1 + shift),
    "discrete": lambda rng, shift: np.rint(1000 * (rng.laplace(size=SIZE) + shift)),
    "rounded": lambda rng, shift: np.round(rng.normal(size=SIZE) + shift, 4),
    "few values": lambda rng, shift: rng.integers(20, size=SIZE) + np.rint(shift),
    "huge": lambda rng, shift: 1e300 * (rng.normal(size=SIZE) + shift),
    "gaps": lambda rng, shift: np.where(rng.random(SIZE) < 0.5, np.nan, rng.normal(size=SIZE)),
    "constant": lambda rng, shift: np.full(SIZE, shift),
}


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("name", DRAWS)
def test_smooth_noise_has_no_period(name: str, shift: float) -> None:
    """Check that smooth noise has no period.

    A chance peak has probability below 1e-5 in each of 20 cases, and the seed is fixed.
    """
    rng = np.random.default_rng(3)
    assert _found(DRAWS[name](rng, shift), DRAWS[name](rng, 0.0)) == {}


def test_few_draws_are_not_looked_at() -> None:
    rng = np.random.default_rng(0)
    assert _found(2.0 * rng.integers(10**6, size=50), 1 + 2.0 * rng.integers(10**6, size=50)) == {}
