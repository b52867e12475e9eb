"""Tests of events as source code: the code gives the same answers as the event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.events import Encoder, Event, event_code
from dpaudit.events.features import all_features
from dpaudit.events.scores import FeatureScore, OutcomeScore, Score, TableScore
from dpaudit.stats import Target

rng = np.random.default_rng(0)
N = 400
GAPPED = np.where(rng.random((2, N, 3)) < 0.2, np.nan, rng.normal(size=(2, N, 3)))
RECORDS = np.zeros((2, N), dtype=[("a", float), ("b", float, 2)])
RECORDS["a"], RECORDS["b"] = rng.normal(size=(2, N)), rng.normal(size=(2, N, 2))
OUTPUTS: dict[str, Any] = {
    "numbers": rng.normal(size=(2, N)),
    "whole numbers": rng.integers(-3, 4, size=(2, N)),
    "large and small": 10.0 ** rng.integers(-30, 30, size=(2, N)),
    "gaps": np.where(rng.random((2, N)) < 0.3, np.nan, rng.normal(size=(2, N))),
    "vectors": rng.normal(size=(2, N, 3)),
    "vectors with gaps": GAPPED,
    "matrices": rng.normal(size=(2, N, 2, 2)),
    "streams": rng.integers(0, 2, size=(2, N, 5)),
    "few outcomes": rng.integers(0, 3, size=(2, N, 2)),
    "texts": rng.choice(["yes", "no", "it's", "perhaps"], size=(2, N)),
    "records": RECORDS,
}


def events_on(outputs: Any, *, fresh: Any) -> list[Event]:
    """Return events of all plain features and tables, with thresholds of all kinds."""
    encoder = Encoder.learn(*outputs, sides=(outputs[0], outputs[1]))
    left, right = (encoder(side) for side in outputs)
    scores: list[Score] = []
    for feature in all_features(encoder, left, right):
        scores += FeatureScore.learn(feature, feature(np.concatenate([left, right])))
        scores.append(TableScore.learn(feature, feature(left), feature(right)))
    outcomes = OutcomeScore.learn(encoder, left, right)
    scores += [] if outcomes is None else [outcomes]
    events = []
    for score in scores:
        values = np.unique(score(encoder(fresh)))
        values = values[np.isfinite(values)]
        for at in [*values[:: max(len(values) // 5, 1)].tolist(), -1e308]:
            target = Target(delta=0.0)
            events += [Event(score, at, above, "left", encoder, target) for above in (True, False)]
    return events


@pytest.mark.parametrize("kind", OUTPUTS)
def test_code_gives_the_answers_of_the_event(kind: str) -> None:
    outputs = OUTPUTS[kind]
    fresh = outputs[1][::-1][:150]
    found = 0
    for event in events_on(outputs, fresh=fresh):
        if code := event_code(event):
            found += 1
            x = fresh if fresh.dtype.kind in "UV" else np.asarray(fresh, dtype=float)
            with np.errstate(invalid="ignore"):
                answers = eval(code, {"np": np, "x": x})
            np.testing.assert_array_equal(answers, event(fresh), err_msg=code)
    assert found >= 6
