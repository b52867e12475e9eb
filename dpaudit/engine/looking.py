"""One look at one mechanism: by counts, by bets, with its noise integrated out, or exactly."""

from __future__ import annotations

from typing import Any

from dpaudit.engine import bets, counts, exact
from dpaudit.engine.additive import certify as additive
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.task import Task
from dpaudit.mechanisms import AdditiveNoise, ExactMechanism, mechanism_name


def look(task: Task, mechanism: Any, role: str) -> Certificate:
    """Look at one mechanism in the way that suits its kind.

    Parameters
    ----------
    task : Task
        What is asked.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The mechanism, its mutant, or a variant.
    role : str
        Which of them; names the streams of random numbers.
    """
    with task.data_unchanged(mechanism_name(mechanism)):
        if isinstance(mechanism, ExactMechanism):
            return exact.look(task, mechanism, role)
        if isinstance(mechanism, AdditiveNoise):
            return additive.look(task, mechanism, role)
        if task.sequential:
            return bets.look(task, mechanism, role)
        return counts.look(task, mechanism, role)
