"""User-level DP-SCO (Ghazi, Kumar, Liu & Manurangsi), both versions, its algorithms.

"Linear-Time User-Level DP-SCO via Robust Statistics" (v1) works in l-infinity; "Nearly Linear-Time
User-Level DP-SCO with Optimal Rates" (v2) in Euclidean norm, and keeps the first as an appendix.

`euclidean` is Algorithms 1 and 2 of v2, `coordinatewise` Algorithms 5 to 8 (1, 2, 3 and 5 of v1);
Algorithms 3 and 4 are in `algorithms.common.sparse_vector`. `printed` has the parameters of the
theorems, `scaled` explicit ones and `accounts` the proof that they are private; `plans` says what
parameters are, `scores` computes concentration scores. `losses`, `domains` and `problems` are what
is minimised, `baselines` what a user would run instead.

Neighbours are datasets ``[n, m, p]`` of n users with m items each that differ in one user.
"""
