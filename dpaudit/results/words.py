"""Numbers, spans and moments as people write them; certified ones never say more than is known."""

from __future__ import annotations

import datetime
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def _rounded(value: float, digits: int, rounding: str) -> str:
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(unit, rounding=rounding)):.{digits}g}"


def beyond(bound: float, claimed: float, signs: tuple[str, str] = (">=", ">")) -> str:
    """Return a lower bound beside a claim; one that is above it by a hair is "more than" the claim.

    Examples
    --------
    >>> beyond(1.4321987, 1.0), beyond(0.9, 1.0), beyond(1.000001, 1.0)
    ('>= 1.432', '>= 0.9', '> 1')
    """
    below = claimed_below(bound, claimed)
    return f"{signs[0]} {at_least(bound)}" if below is None else f"{signs[1]} {below}"


def claimed_below(bound: float, claimed: float, digits: int = 4) -> str | None:
    """Return a claim in the fewest digits, rounded up, that lie below the bound above it.

    None where so many digits of the bound show that it is above, and where it is not.

    Examples
    --------
    >>> claimed_below(1.000001, 1.0), claimed_below(1.0986134, 1.0986123), claimed_below(1.2, 1.0)
    ('1', '1.098613', None)
    """
    if not bound > claimed >= float(at_least(bound, digits)):
        return None
    texts = (at_most(claimed, more) for more in range(digits, 18))
    return next(text for text in texts if float(text) < bound)


def number(value: float) -> str:
    """Return a number with four digits, as people write it."""
    if value == math.inf:
        return "∞"
    if 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:.4g}".replace("e+0", "e")


def least(bound: float, digits: int = 4) -> str:
    """Return a certified lower bound in few digits, rounded down: more was not certified."""
    return number(float(at_least(bound, digits)))


def most(bound: float, digits: int = 4) -> str:
    """Return an upper bound in few digits, rounded up."""
    return number(float(at_most(bound, digits)))


def beside(certified: float, claimed: float, digits: int = 4, sign: str = "") -> str:
    """Return a certified number beside the claimed one, after a sign for "at least".

    Where it takes more digits to see that it is above the claim, "more than" the claim is said.

    Examples
    --------
    >>> beside(1.23456, 1.0), beside(1.23456, 1.0, sign="≥ "), beside(1.000001, 1.0, sign="≥ ")
    ('1.234', '≥ 1.234', '> 1')
    """
    below = claimed_below(certified, claimed, digits)
    return sign + least(certified, digits) if below is None else f"> {below}"


def count(value: int) -> str:
    """Return an integer with thin spaces between its thousands."""
    return f"{value:,}".replace(",", "\u202f")


def share(part: int, whole: int) -> str:
    """Return a share of a whole that may be empty."""
    return f"{part / whole:.4g}" if whole else "0"


def power_of_ten(value: float) -> str:
    """Return a decade, such as 10⁻³."""
    exponent = round(math.log10(value))
    return "1" if exponent == 0 else "10" + str(exponent).translate(_SUPERSCRIPT)


def short(text: str, length: int) -> str:
    """Return a text, cut where it is longer than `length`."""
    return text if len(text) <= length else text[: length - 1] + "…"


def plain_value(value: object) -> str:
    """Return a parameter of a search in few letters."""
    return number(value) if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Return a time span as people say it.

    Examples
    --------
    >>> duration(0.42), duration(134.7), duration(7384)
    ('0.42 s', '2 min 15 s', '2 h 3 min')
    """
    if seconds < 0.01:
        return "less than 0.01 s"
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def moment(text: str) -> str:
    """Return an ISO moment as people write it; any other text as it is."""
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = f" {when.tzname()}" if when.tzinfo is not None else ""
    return f"{when.day} {when:%B %Y, %H:%M}{zone}"
