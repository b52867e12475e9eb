"""PipelineDP 0.3.1, where one NaN among the values makes a DP sum NaN, with certainty.

The script needs only pipeline-dp.
"""

import math

import pipeline_dp


def dp_sum(rows, epsilon=1.0):
    """Return a DP sum of values in [0, 1] in one public partition."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    result = engine.aggregate(
        rows,
        pipeline_dp.AggregateParams(
            metrics=[pipeline_dp.Metrics.SUM],
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0.0,
            max_value=1.0,
        ),
        pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: "all",
            value_extractor=lambda row: row[1],
        ),
        public_partitions=["all"],
    )
    accountant.compute_budgets()
    return dict(result)["all"].sum


if __name__ == "__main__":
    users = [(user, 0.5) for user in range(100)]
    runs = 1000
    for name, rows in (
        ("100 users", users),
        ("and one whose value is NaN", [*users, (100, math.nan)]),
        ("and one whose value is infinite", [*users, (100, math.inf)]),
    ):
        count = sum(math.isnan(dp_sum(rows)) for _ in range(runs))
        print(f"{name:32} NaN in {count} of {runs} runs")
