"""What can go wrong, one class per party at fault.

``DpauditError``
    ``MechanismError``   the audited function breaks the contract of a mechanism
    ``PairError``        two datasets are not neighbours (also a ``ValueError``)
    ``StoreError``       a result cannot be read or written

A bad argument is a plain ``ValueError`` or ``TypeError``.
"""

from __future__ import annotations


class DpauditError(Exception):
    """Base of every error that dpaudit raises on its own account."""


class MechanismError(DpauditError):
    """The audited function breaks the contract ``f(data, size, *, rng) -> [size, ...]``."""


class PairError(DpauditError, ValueError):
    """The two datasets of a pair are not neighbours under the declared relation."""


class StoreError(DpauditError):
    """A stored result cannot be read, trusted or written."""
