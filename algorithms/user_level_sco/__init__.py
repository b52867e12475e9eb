"""Algorithms of both versions of user-level DP-SCO (Ghazi, Kumar, Liu & Manurangsi).

"Linear-Time User-Level DP-SCO via Robust Statistics" (v1) uses the l-infinity norm. "Nearly
Linear-Time User-Level DP-SCO with Optimal Rates" (v2) uses the Euclidean norm, and has v1 as an
appendix.

- `euclidean` implements Algorithms 1 and 2 of v2. Algorithms 3 and 4 are in
  `algorithms.common.sparse_vector`.

- `coordinatewise` implements Algorithms 5 to 8 of v2 (1, 2, 3 and 5 of v1).

- `printed` has the parameters of the theorems. `scaled` has explicit parameters, and `accounts`
  proves that the explicit parameters are private.

- `plans` defines the types of the parameters and `PlanWarning`, and `scores` computes
  concentration scores.

- `losses`, `domains` and `problems` define the problems that are minimised.

- `baselines` has the algorithms that a user would run instead of the paper's algorithms.
  `private_means` has the means of previous algorithms, for which `baselines` runs SGD.

Neighbours are datasets ``[n, m, p]`` that differ in one user. A dataset has n users with m items
each.
"""
