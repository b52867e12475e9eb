"""GeoPrivacy 0.0.4: the optimal mechanism on a spanner has epsilon, and not epsilon / delta.

The script needs numpy and GeoPrivacy (with gurobipy). No draws are needed.
"""

import contextlib
import io
import math

from GeoPrivacy.mechanism import generate_spanner, optql_graph_spanner

PLACES = [(0.0, 0.0), (0.0, 1.0), (1.0, 2.0), (2.0, 0.5)]
EPSILON, STRETCH = 1.0, 2.0

if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        spanner = generate_spanner(PLACES, math.dist, STRETCH)
        matrix = optql_graph_spanner(PLACES, [1] * 4, spanner, math.dist, EPSILON, STRETCH)[0]
    worst = max(
        math.log(matrix[i, k] / matrix[j, k]) / math.dist(PLACES[i], PLACES[j])
        for i in range(4)
        for j in range(4)
        for k in range(4)
        if i != j and matrix[j, k] > 1e-9
    )
    print(f"promised epsilon / delta = {EPSILON / STRETCH}, largest loss per distance {worst:.3f}")
