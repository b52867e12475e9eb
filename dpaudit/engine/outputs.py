"""Audits of outputs that were drawn elsewhere.

No mechanism is called.
"""

from __future__ import annotations

import reprlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB, DEFAULT_SEED
from dpaudit.claims import Claim
from dpaudit.engine.concluding import conclude
from dpaudit.engine.driver import certificate_of_stored
from dpaudit.engine.families import Outcomes
from dpaudit.engine.mutation import MutantRuns
from dpaudit.engine.reading import Outputs, read, refuse_other_kinds
from dpaudit.engine.task import Task, check_same_at_all_pairs, divide
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms import Sampler, generator, words_of_draws
from dpaudit.neighbors import NeighborPair, family
from dpaudit.results import AuditResult, MutantResult, MutantStatus

UNCHECKED = (
    "dpaudit did not draw these outputs. The certified numbers assume that the two datasets are "
    "neighbours, that the draws are independent, that none is missing, and that all come from one "
    "mechanism."
)


def audit_outputs(
    left: Outputs,
    right: Outputs,
    claim: Claim,
    *,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    seed: int = DEFAULT_SEED,
    mutants: Mapping[str, tuple[Outputs, Outputs]] | None = None,
    id: str = "outputs",
) -> AuditResult:
    """Audit outputs, or scores of outputs, that were drawn elsewhere.

    The function shuffles and splits the outputs. An event is learnt on one part and counted on the
    other part. So earlier uses of the outputs need not be known.

    Parameters
    ----------
    left, right : array_like ``[draws, ...]`` or path
        Independent outputs of the mechanism on two neighbouring datasets, at least 20 each. Outputs
        are numbers, texts or records of numbers and texts. NaN stands for no answer; in lists, None
        stands for no answer, too. Instead of an output, any function of that output alone may be
        given, such as a score. Arrays hold outputs of one shape. Lists may hold outputs of
        different lengths. In a list, the length of an output is part of the outcome. Paths may lead
        to .npy files or, if pyarrow is installed, to .parquet files.
    claim : Claim
        The privacy guarantee that the mechanism claims.
    failure_prob : float, optional
        Probability that any certified number of the result is wrong, in (0, 1). The default is
        1e-6.
    seed : int, optional
        Seed of the split, at least 0. Choose the seed before you see results. The default is 0.
    mutants : mapping of str to (left, right), optional
        Outputs of mutants by name, on the same two datasets. A mutant is the mechanism with a
        realistic mistake. If the audit finds no violation, the mutants show its power. All mutants
        share one `failure_prob`. The default is None, for no mutants.
    id : str, optional
        Name of the result.

    Returns
    -------
    AuditResult
        The notes of the result list what could not be checked. Without mutants, an audit that finds
        no violation ends in NO_POWER.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, or if the outputs are not as described.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import PureDP, audit_outputs
    >>> rng = np.random.default_rng(1)
    >>> left, right = 1 + rng.laplace(scale=0.5, size=5000), rng.laplace(scale=0.5, size=5000)
    >>> result = audit_outputs(left, right, PureDP(1.0))
    >>> result.verdict.words
    'REFUTED'
    """
    start = time.perf_counter()
    if not isinstance(claim, Claim):
        raise TypeError(f"claim must be a claim such as PureDP(1.0), got {claim!r}")
    failure_prob = _validate.failure_prob(failure_prob=failure_prob)
    seed = _validate.seed(seed=seed)
    _validate.text(id=id)
    given = _checked_mutants(mutants)
    task, sampler = _prepared(claim, failure_prob, seed, id, id, left, right)
    found = certificate_of_stored(task, sampler, "outputs")
    results = (
        ()
        if found.refuted
        else tuple(
            _mutant_result(task, sampler, name, *both, len(given)) for name, both in given.items()
        )
    )
    result = conclude(
        task,
        found,
        MutantRuns(results, wanted=bool(given)),
        mechanism="outputs drawn elsewhere",
        family=None if found.refuted else Outcomes.of(found),
        pair_words=f"drawn elsewhere: {len(sampler.left)} and {len(sampler.right)} outputs",
        notes=(UNCHECKED,),
    )
    return replace(result, seconds=time.perf_counter() - start)


class StoredDraws(Sampler):
    """A sampler that returns stored outputs in shuffled order, each output once.

    Parameters
    ----------
    name : str
        Name used in messages.
    left, right : ndarray ``[draws, ...]``
        The stored outputs. The outputs are shuffled, so that the exploration uses a random part of
        them.
    seed : int
        Seed of the shuffle.
    """

    def __init__(self, name: str, left: NDArray[Any], right: NDArray[Any], *, seed: int) -> None:
        super().__init__(_nothing, seed=seed, labels=(name,))
        self.name = name
        order = {
            side: generator(seed, name, "order", side).permutation(len(rows))
            for side, rows in (("left", left), ("right", right))
        }
        self.left, self.right = left[order["left"]], right[order["right"]]
        self._taken = {"left": 0, "right": 0}

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of outputs of each side that have not been returned yet."""
        return {side: len(getattr(self, side)) - taken for side, taken in self._taken.items()}

    def _probe(self, data: Any, side: str) -> None:
        rows = getattr(self, side)
        self._checked(rows, len(rows), side)

    def call(
        self,
        data: Any,
        size: int,
        *labels: str | int,
        side: str = "left",
        is_copy: bool = False,
        again: bool = False,
    ) -> NDArray[Any]:
        """Return the next outputs of a side."""
        start = self._taken[side]
        self._taken[side] += size
        return self._checked(getattr(self, side)[start : start + size], size, side)


def _nothing(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    raise AssertionError("stored outputs cannot be drawn again")


def _prepared(
    claim: Claim,
    failure_prob: float,
    seed: int,
    id: str,
    name: str,
    left: Outputs,
    right: Outputs,
) -> tuple[Task, StoredDraws]:
    check_same_at_all_pairs(claim)
    both = read(f"{name}: left", left), read(f"{name}: right", right)
    lists = any(isinstance(given, list | tuple) for given in (left, right))
    refuse_other_kinds(name, *both, lengths_vary=lists)
    sampler = StoredDraws(name, *both, seed=seed)
    # Nothing reads this pair. This pair stands for datasets that are not available here.
    pair = NeighborPair(np.zeros((1, 1)), np.ones((1, 1)), recipe="outputs drawn elsewhere")
    try:
        sampler.begin(pair.left, pair.right)
    except MechanismError as error:
        raise ArgumentError(str(error)) from None
    task = Task(
        claim, family(pair), min(map(len, both)), failure_prob, seed, id, stored=sampler.sizes
    )
    return task, sampler


def _checked_mutants(mutants: Any) -> dict[str, tuple[Outputs, Outputs]]:
    if mutants is None:
        return {}
    if not isinstance(mutants, Mapping) or not all(
        isinstance(name, str) and isinstance(both, tuple) and len(both) == 2
        for name, both in mutants.items()
    ):
        raise TypeError(
            "mutants must be a dict from names to pairs (left, right) of outputs of a "
            f"mutant, got {reprlib.repr(mutants)}"
        )
    return dict(mutants)


def _mutant_result(
    task: Task, audited: StoredDraws, name: str, left: Outputs, right: Outputs, among: int
) -> MutantResult:
    share = divide(task.failure_prob, among)[0]
    id = f"{task.name}/{name}"
    alone, sampler = _prepared(task.claim, share, task.seed, id, name, left, right)
    shape, wanted = sampler.left.shape[1:], audited.left.shape[1:]
    if shape != wanted:
        raise ArgumentError(
            f"the outputs of the mutant {name!r} must have the shape of the audited "
            f"outputs, {words_of_draws(audited.left)}, got {words_of_draws(sampler.left)}"
        )
    found = certificate_of_stored(alone, sampler, "mutant")
    return MutantResult(
        name,
        MutantStatus.KILLED if found.refuted else MutantStatus.SURVIVED,
        found.epsilon.lower,
        share,
        sum(found.draws.values()),
        found.pair.describe(),
        found.witness.event if found.refuted else "",
    )
