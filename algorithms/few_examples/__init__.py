"""User-level privacy with few examples per user (Ghazi, Kamath, Kumar, Manurangsi, Meka & Zhang).

Approximate DP: `deletion` is Algorithm 1 (DelStab), and `pipeline` combines DelStab with Theorems
10 and 11. `items` has the item-level algorithms that DelStab can run, with known distributions.

Pure DP: `learning` is Theorem 4 and Theorem 40 (PAC learning). `learning` learns over the
`representations` of a class. `pairwise` is ClippedPairwiseEM. `hypotheses` is Theorem 41
(selection), which learns distributions from the `covers` of Theorems 43 to 46. `packings` has the
hard instances of the lower bounds.

Baselines: `reductions` is Observation 28 and group privacy. `populations` counts users by their
kinds.

Neighbours are datasets ``[n, m, ...]`` of n users with m items each that differ in one user. Most
distributions are computed exactly. Functions `..._pmf` return the distributions, and their samplers
draw from them.
"""
