"""User-level privacy with few examples per user (Ghazi, Kamath, Kumar, Manurangsi, Meka & Zhang).

For approximate DP, `deletion` is Algorithm 1 (DelStab), and `pipeline` combines DelStab with
Theorems 10 and 11. `items` has the item-level algorithms that DelStab can run, with known
distributions.

For pure DP, `learning` is Theorem 4 and Theorem 40 (PAC learning). `learning` learns over the
`representations` of a class. `pairwise` is ClippedPairwiseEM. `hypotheses` is Theorem 41
(selection), which learns distributions from the `covers` of Theorems 43 to 46. `packings` has the
hard instances of the lower bounds.

As baselines, `reductions` has Observation 28 and group privacy. `populations` counts users by their
kinds.

Neighbours are datasets ``[n, m, ...]`` that differ in one user. A dataset has n users with m items
each. Most distributions are computed exactly. Functions `..._pmf` return the distributions, and
samplers draw from these distributions.
"""
