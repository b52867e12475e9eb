"""Values of the frozen events on the certifying centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.additive.candidates import joint_variance
from dpaudit.engine.additive.events import SIDES, IntegratedEvent
from dpaudit.engine.additive.plan import Plan, auxiliary_noise
from dpaudit.results import Histogram, LongProfile

Floats = NDArray[np.float64]

Fired = NDArray[np.bool_]

ESTIMATE_DRAWS = 200_000
"""Number of certifying draws on which events that serve estimates only are evaluated."""

_BINS = 48


class CentreValues:
    """The values of the frozen events on certifying centres, added call by call.

    Parameters
    ----------
    plan : Plan
        The plan that was made on exploration centres.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        draws = plan.budget.draws
        self._pairs = [np.empty((2, draws * len(q.candidate.events))) for q in plan.questions]
        self._done = 0
        k = len(plan.estimates)
        self._count = 0
        self._mean = {side: np.zeros(k) for side in SIDES}
        self._squares = {side: np.zeros(k) for side in SIDES}
        exploration = plan.centers
        self._cuts = {}
        self._edges = []
        self._bins = {}
        for i, question in enumerate(plan.questions):
            event = question.candidate.event
            along = np.concatenate([event.axis(exploration[side]) for side in SIDES])
            low, high = float(along.min()), float(along.max())
            margin = (high - low) / _BINS or max(abs(low), 1.0) * 1e-3
            self._edges.append(np.linspace(low - margin, high + margin, _BINS + 1))
            for side in SIDES:
                self._cuts[side, i] = float(np.median(event.axis(exploration[side])))
                self._bins[side, i] = np.zeros(_BINS, dtype=np.int64)

    def add(self, centers: dict[str, Floats], *, rng: np.random.Generator) -> dict[str, Fired]:
        """Add one call of each side; return which centres lay above the median of each axis."""
        plan, size = self._plan, len(centers["left"])
        candidates = [question.candidate for question in plan.questions]
        estimating = plan.estimates if self._count < ESTIMATE_DRAWS else ()
        auxiliary, apart = (
            auxiliary_noise(plan.noise, some, centers["left"], plan.budget, rng)
            for some in ([*candidates, *estimating], [c for c in candidates if c.other is not None])
        )
        above: dict[str, list[Fired]] = {side: [] for side in SIDES}
        for candidate, kept in zip(candidates, self._pairs, strict=True):
            on_right = auxiliary if candidate.other is None else apart
            noises = {"left": auxiliary, "right": on_right}

            def value(
                event: IntegratedEvent,
                side: str,
                rounded: float,
                noises: dict[str, Floats] = noises,
            ) -> Floats:
                return event.values(plan.noise, centers[side], noises[side], rounded=rounded)

            several = len(candidate.events)
            kept[:, self._done * several : (self._done + size) * several] = candidate.pairs(value)
        for side in SIDES:
            for i, candidate in enumerate(candidates):
                along = candidate.event.axis(centers[side])
                above[side].append(along > self._cuts[side, i])
                where = np.searchsorted(self._edges[i], along, side="left") - 1
                where = np.clip(where, 0, _BINS - 1)
                self._bins[side, i] += np.bincount(where, minlength=_BINS)
        if estimating:
            for side in SIDES:
                self._merge(side, centers[side], auxiliary)
            self._count += size
        self._done += size
        return {side: np.array(fired) for side, fired in above.items()}

    def _merge(self, side: str, centers: Floats, auxiliary: Floats) -> None:
        """Add a chunk to the means and sums of squares, without cancellation."""
        size, count = len(centers), self._count
        for i, candidate in enumerate(self._plan.estimates):
            values = candidate.event.values(self._plan.noise, centers, auxiliary)
            mean = float(values.mean())
            step = mean - self._mean[side][i]
            self._squares[side][i] += float(((values - mean) ** 2).sum())
            self._squares[side][i] += step**2 * count * size / (count + size)
            self._mean[side][i] += step * size / (count + size)

    def pair(self, index: int) -> tuple[Floats, Floats]:
        """Return the values of one question: those that should be large, and those to be rare."""
        x, y = self._pairs[index]
        return x, y

    def means(self, index: int) -> tuple[float, float]:
        """Return the estimated probabilities of one question's event, first on the likelier side.

        For two events, return the probabilities of a correct and of a wrong guess in randomised
        draws.
        """
        x, y = self.pair(index)
        return float(x.mean()), float(y.mean())

    def profile(self) -> LongProfile:
        """Estimate the profile from all frozen events."""
        rows = [(*_moments(x), *_moments(y)) for x, y in map(self.pair, range(len(self._pairs)))]
        for i, candidate in enumerate(self._plan.estimates):
            sides = SIDES if candidate.likelier == "left" else SIDES[::-1]
            n = max(self._count, 2)
            (p, vx), (q, vy) = (
                (self._mean[s][i], self._squares[s][i] / (n - 1) / n) for s in sides
            )
            rows.append((p, vx, q, vy))
        p, vx, q, vy = np.array(rows).T[:, :, None]
        factor = np.exp(np.minimum(self._plan.long, 700.0))
        excess = p - factor * q
        error = np.sqrt(joint_variance(vx, vy, factor))
        best = excess.argmax(axis=0)
        at = (best, np.arange(len(factor)))
        return LongProfile(
            tuple(self._plan.long.tolist()),
            tuple(np.maximum(excess[at], 0.0).tolist()),
            tuple(error[at].tolist()),
        )

    def histogram(self, index: int) -> Histogram:
        """Return where the certifying centres of both sides fell along the event's axis."""
        event, edges = self._plan.questions[index].candidate.event, self._edges[index]
        return Histogram(
            f"{event.label}, of the centres",
            tuple(f"up to {edge:.3g}" for edge in edges[1:]),
            tuple(edges.tolist()),
            tuple(self._bins["left", index].tolist()),
            tuple(self._bins["right", index].tolist()),
            tuple(event.inside((edges[1:] + edges[:-1]) / 2).tolist()),
        )


def _moments(values: Floats) -> tuple[float, float]:
    """Return the mean, and the variance of the mean."""
    if len(values) < 2:
        return float(values.mean()), 0.0
    return float(values.mean()), float(values.var(ddof=1)) / len(values)
