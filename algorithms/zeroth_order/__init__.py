"""Private zeroth-order nonsmooth nonconvex optimisation (Zhang, Tran & Cutkosky), its algorithms.

`estimators` is Algorithms 1 and 2 (Grad and Diff), `conversion` Algorithm 3, `oracles` Algorithms 4
and 6; Algorithm 5, the tree mechanism, is in `algorithms.common.tree`. `printed` has the parameters
of Corollary 4.4, Theorem 4.9 and Appendix E, `scaled` derived ones, `accounts` the proof that they
are private and `bounds` how stationary the output is; `plans` says what parameters are. `losses`
and `problems` are what is minimised, `smoothing` and `stationarity` judge what was found.

Neighbours are datasets ``[M, p]`` of M items, one for each user, that differ in one of them.
"""
