"""Bounds in few digits, rounded so that nothing is said that was not certified."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def at_least(bound: float, digits: int = 4) -> str:
    """Return a lower bound with few digits, rounded down: more was not certified.

    Examples
    --------
    >>> at_least(1.4), at_least(0.93766, 3)
    ('1.4', '0.937')
    """
    text = f"{bound:.{digits}g}"
    return text if float(text) <= bound else _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float, digits: int = 4) -> str:
    """Return an upper bound with few digits, rounded up."""
    text = f"{bound:.{digits}g}"
    return text if float(text) >= bound else _rounded(bound, digits, ROUND_CEILING)


def beyond(bound: float, claimed: float, signs: tuple[str, str] = (">=", ">")) -> str:
    """Return a lower bound beside a claim; one that is above it by a hair is "more than" the claim.

    Examples
    --------
    >>> beyond(1.4321987, 1.0), beyond(0.9, 1.0), beyond(1.000001, 1.0)
    ('>= 1.432', '>= 0.9', '> 1')
    """
    if by_a_hair(bound, claimed):
        return f"{signs[1]} {claimed_below(bound, claimed)}"
    return f"{signs[0]} {at_least(bound)}"


def by_a_hair(bound: float, claimed: float, digits: int = 4) -> bool:
    """Whether a bound is above a claim by less than so many digits show."""
    return bound > claimed >= float(at_least(bound, digits))


def claimed_below(bound: float, claimed: float, digits: int = 4) -> str:
    """Return a claim in the fewest digits, rounded up, that still lie below the bound above it.

    Examples
    --------
    >>> claimed_below(1.000001, 1.0), claimed_below(1.0986134, 1.0986123)
    ('1', '1.098613')
    """
    texts = (at_most(claimed, more) for more in range(digits, 18))
    return next(text for text in texts if float(text) < bound)


def _rounded(value: float, digits: int, rounding: str) -> str:
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(unit, rounding=rounding)):.{digits}g}"
