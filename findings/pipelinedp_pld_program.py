"""PipelineDP 0.3.1: PLDBudgetAccountant gives partition selection and generic mechanisms too much.

The program needs only pipeline-dp and dp-accounting.
"""

import math

import pipeline_dp
from pipeline_dp.aggregate_params import MechanismType

DELTA = 1e-5


def released(users, weight, accountant, partitions=10_000):
    """Return how many of many equal partitions DPEngine.aggregate releases, and the budgets."""
    budget = accountant(total_epsilon=1.0, total_delta=DELTA)
    result = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend()).aggregate(
        [(part, user) for part in range(partitions) for user in range(users)],
        pipeline_dp.AggregateParams(
            metrics=[pipeline_dp.Metrics.COUNT],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            budget_weight=weight,
        ),
        pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row,  # each user is in one partition
            partition_extractor=lambda row: row[0],
            value_extractor=lambda row: 0,
        ),
    )
    budget.compute_budgets()
    return len(list(result)), budget.mechanism_specs[-1].eps


def budgets(delta, kind, **request):
    """Return what the accountant gives to one request, for a total epsilon of 1."""
    budget = pipeline_dp.PLDBudgetAccountant(total_epsilon=1.0, total_delta=delta)
    spec = budget.request_budget(kind, **request)
    budget.compute_budgets()
    return spec


if __name__ == "__main__":
    print("total epsilon 1, a COUNT with budget_weight=0.1, 10000 partitions of 3 or 2 users:")
    for name in ("NaiveBudgetAccountant", "PLDBudgetAccountant"):
        three, epsilon = released(3, 0.1, getattr(pipeline_dp, name))
        two, _ = released(2, 0.1, getattr(pipeline_dp, name))
        print(f"  {name:21}  selection gets epsilon {epsilon:.2f}; released: {three} and {two}")

    spec = budgets(DELTA, MechanismType.GENERIC, weight=3)
    given = f"({spec.eps:.2f}, {spec.delta:.0e})"
    print(f"total (1, {DELTA:g}), one generic mechanism of weight 3: {given}")
    spec = budgets(0, MechanismType.LAPLACE, count=5)
    each = math.sqrt(2) / spec.noise_standard_deviation
    print(f"total epsilon 1, delta 0, five Laplace mechanisms: epsilon {each:.2f} each")
