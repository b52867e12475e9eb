"""Private Geometric Median in Nearly-Linear Time (Kumar, Liu, Tian & Yang), its algorithms.

`reference` is the exact geometric median, without privacy; `radius` is Algorithm 2 (FastRadius),
`center` Algorithm 3 (FastCenter), `boosting` Algorithm 4 (StableDPSGD) and its variant in a fixed
order, `composed` Theorems 3 and 4; `baselines` are the algorithms of Haghifam, Steinke & Ullman
(2024) that the paper compares with, `datasets` its synthetic data.  Algorithm 1 and the bounded
Laplace mechanism are in `algorithms.common`.

Neighbours are datasets of n points that differ in one row.  (The paper's "symmetric difference of
size 1" is impossible at equal n; it goes on "they differ in a single element", which is meant.)
"""
