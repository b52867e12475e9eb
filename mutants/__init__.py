"""Mutants: reference algorithms with one realistic mistake each.

A mutant has the signature of the algorithm that it breaks. The docstring of a mutant describes the
**Mistake**. The docstring also names a pair (**Breaks at**) and an event at which the mutant
exceeds the claim of the original. Tests in ``tests/algorithms`` check the true epsilon at this
event, in closed form or by quadrature. An audit that cannot refute the mutant has no power.
"""
