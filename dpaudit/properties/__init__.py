"""Tests of properties of deterministic functions: sensitivity, Lipschitz constants, contraction.

Falsifiers search a :class:`Domain`, or any hypothesis strategy, for a case that violates
``lhs <= rhs``. The ledger uses falsifiers to test the statements of papers.

Names are imported when they are first used. Therefore stored attempts can be read without importing
hypothesis, which takes a second.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
