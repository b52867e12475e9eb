"""Mutants: reference algorithms with one realistic mistake each.

A mutant has the signature of the algorithm it breaks.  Its docstring names the **Mistake**, and a
pair (**Breaks at**) with an event at which it exceeds the claim of the original; the true
epsilon there is checked by closed form or quadrature in ``tests/algorithms``.  An audit that
cannot refute the mutant has no power.
"""
