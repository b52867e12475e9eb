"""Algorithms of "Private Geometric Median in Nearly-Linear Time" (Kumar, Liu, Tian & Yang).

`reference` computes the exact geometric median, without privacy. `radius` is Algorithm 2
(FastRadius) and `center` is Algorithm 3 (FastCenter). `boosting` is Algorithm 4 (StableDPSGD) and a
variant that visits the data in a fixed order. `composed` implements Theorems 3 and 4. `baselines`
has the algorithms of Haghifam, Steinke & Ullman (2024), which the paper uses as baselines.
`datasets` has the paper's synthetic data. Algorithm 1 and the bounded Laplace mechanism are in
`algorithms.common`.

Neighbours are datasets of n points that differ in one row. (The paper's "symmetric difference of
size 1" is impossible at equal n. The paper continues "they differ in a single element", which is
the intended meaning.)
"""
