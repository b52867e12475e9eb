"""Algorithms of private zeroth-order nonsmooth nonconvex optimisation (Zhang, Tran & Cutkosky).

`estimators` implements Algorithms 1 and 2 (Grad and Diff). `conversion` implements Algorithm 3, and
`oracles` implements Algorithms 4 and 6. Algorithm 5, the tree mechanism, is in
`algorithms.common.tree`.

`printed` has the parameters of Corollary 4.4, Theorem 4.9 and Appendix E. `scaled` has parameters
with derived constants. `accounts` computes how private the algorithms are, and `bounds` computes
how stationary the output is. `plans` defines the types of the parameters. `losses` and `problems`
define the minimisation problems. `smoothing` and `stationarity` evaluate the output.

Neighbours are datasets ``[M, p]`` that differ in one item. A dataset has M items, one item for each
user.
"""
