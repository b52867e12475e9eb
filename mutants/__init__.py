"""Mutants: reference algorithms with one realistic mistake each.

A mutant has the signature of the algorithm that it breaks. The docstring of a mutant describes the
**Mistake**. The docstring also names a pair (**Breaks at**) with an event at which the mutant
exceeds the claim of the original. Tests in ``tests/algorithms`` check the true epsilon of this
event by closed form or quadrature. An audit that cannot refute the mutant has no power.
"""
