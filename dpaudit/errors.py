"""What can go wrong, one class per party at fault.

``DpauditError``
    ``MechanismError``   the audited function breaks the contract of a mechanism
    ``ArgumentError``    an argument is out of range (also a ``ValueError``)
        ``PairError``    two datasets are not neighbours
    ``StoreError``       a result cannot be read or written

An argument of a wrong type is a plain ``TypeError``.
"""

from __future__ import annotations


class DpauditError(Exception):
    """Base of every error that dpaudit raises on its own account."""


class MechanismError(DpauditError):
    """The audited function breaks the contract ``f(data, size, *, rng) -> [size, ...]``."""


class ArgumentError(DpauditError, ValueError):
    """An argument is out of range; the message names it, its value and what is allowed."""


class PairError(ArgumentError):
    """The two datasets of a pair are not neighbours under the declared relation."""


class StoreError(DpauditError):
    """A stored result cannot be read, trusted or written."""
