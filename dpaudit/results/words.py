"""Numbers, durations and dates as text.

Certified bounds are rounded so that they remain true. Lower bounds are rounded down, and upper
bounds are rounded up.
"""

from __future__ import annotations

import datetime
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

DIGITS = 3
"""Significant digits of a number in a report."""

LARGEST_RATIO = 1000.0
"""Largest ratio to a claim or a bound that is given as a number."""

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def at_least(bound: float, digits: int = DIGITS) -> str:
    """Return a lower bound in `digits` significant digits, rounded down.

    Examples
    --------
    >>> at_least(1.4), at_least(0.93766), at_least(1239.5)
    ('1.4', '0.937', '1230')
    """
    text = _text(bound, digits)
    return text if float(text) <= bound else _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float, digits: int = DIGITS) -> str:
    """Return an upper bound in `digits` significant digits, rounded up."""
    text = _text(bound, digits)
    return text if float(text) >= bound else _rounded(bound, digits, ROUND_CEILING)


def _text(value: float, digits: int) -> str:
    """Return a number in `digits` significant digits, without an exponent below a million."""
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e" in text and 1 <= abs(float(text)) < 1e6 else text


def _rounded(value: float, digits: int, rounding: str) -> str:
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return _text(float(exact.quantize(unit, rounding=rounding)), digits)


def beyond(bound: float, claimed: float, signs: tuple[str, str] = (">=", ">")) -> str:
    """Return a sign and a lower bound as text.

    If the bound exceeds the claim only in digits that are not shown, return "> claim".

    Examples
    --------
    >>> beyond(1.4321987, 1.0), beyond(0.9, 1.0), beyond(1.000001, 1.0)
    ('>= 1.43', '>= 0.9', '> 1')
    """
    below = claimed_below(bound, claimed)
    return f"{signs[0]} {at_least(bound)}" if below is None else f"{signs[1]} {below}"


def claimed_below(bound: float, claimed: float, digits: int = DIGITS) -> str | None:
    """Return the claim, rounded up to the fewest digits for which it stays below the bound.

    Return None if the bound exceeds the claim in its first `digits` digits, or if the bound does
    not exceed the claim.

    Examples
    --------
    >>> claimed_below(1.000001, 1.0), claimed_below(1.0986134, 1.0986123), claimed_below(1.2, 1.0)
    ('1', '1.098613', None)
    """
    if not bound > claimed >= float(at_least(bound, digits)):
        return None
    texts = (at_most(claimed, more) for more in range(digits, 18))
    return next(text for text in texts if float(text) < bound)


def number(value: float, digits: int = DIGITS) -> str:
    """Return a number in `digits` significant digits; give integers below a million in full.

    Examples
    --------
    >>> number(2024), number(0.12345), number(0.0000123456), number(1.5e7)
    ('2024', '0.123', '1.23e-5', '1.5e7')
    """
    if value == math.inf:
        return "∞"
    if 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    if abs(value) < 1e6 and value == int(value):
        return str(int(value))
    return _text(value, digits).replace("e+0", "e")


def least(bound: float, digits: int = DIGITS) -> str:
    """Return a certified lower bound, rounded down."""
    return number(float(at_least(bound, digits)))


def most(bound: float, digits: int = DIGITS) -> str:
    """Return an upper bound, rounded up."""
    return number(float(at_most(bound, digits)))


def beside(certified: float, claimed: float, digits: int = DIGITS, sign: str = "") -> str:
    """Return a certified lower bound after `sign`.

    If the bound exceeds the claim only in digits that are not shown, return "> claim".

    Examples
    --------
    >>> beside(1.23456, 1.0), beside(1.23456, 1.0, sign="≥ "), beside(1.000001, 1.0, sign="≥ ")
    ('1.23', '≥ 1.23', '> 1')
    """
    below = claimed_below(certified, claimed, digits)
    return sign + least(certified, digits) if below is None else f"> {below}"


def count(value: int) -> str:
    """Return an integer whose thousands are separated by commas."""
    return f"{value:,}"


def share(part: int, whole: int) -> str:
    """Return `part / whole`, or 0 if `whole` is 0."""
    return f"{part / whole:.{DIGITS}g}" if whole else "0"


def power_of_ten(value: float) -> str:
    """Return the nearest power of ten, such as 10⁻³."""
    exponent = round(math.log10(value))
    return "1" if exponent == 0 else "10" + str(exponent).translate(_SUPERSCRIPT)


def short(text: str, length: int) -> str:
    """Return a text, cut to at most `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def plain_value(value: object) -> str:
    """Return the value of a search parameter as text."""
    return number(value) if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Return a duration as text.

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
    """Return an ISO 8601 time in words; any other text is returned unchanged."""
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = f" {when.tzname()}" if when.tzinfo is not None else ""
    return f"{when.day} {when:%B %Y, %H:%M}{zone}"
