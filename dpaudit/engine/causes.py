"""Likely causes of a refutation: facts about both sides, and repairs after which it disappears.

A repair is more noise, a smaller step between the two datasets, a part of the output, or another
claim. If the claim seems to be refuted before a repair and not after it, the repair agrees with the
draws. All of this happens on exploration draws, and nothing is certified. The causes make at most
as many draws as the audit.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ApproxDP
from dpaudit.data import ArrayForm, handed
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.facts import LARGEST, Facts, Lines, code_of
from dpaudit.engine.mutation import Certify, patience
from dpaudit.engine.task import Task
from dpaudit.engine.trials import OutOfDraws, Trials
from dpaudit.errors import MechanismError
from dpaudit.events import explanation
from dpaudit.mechanisms import AdditiveNoise, generator, is_computed, mechanism_name
from dpaudit.mutants import (
    ALL_NOISE,
    GAUSSIAN,
    TREATMENTS,
    AddedNoise,
    Amplifier,
    Line,
    Recording,
    added_noise,
    amount_lines,
    amplifiers,
    record,
    value_lines,
)
from dpaudit.neighbors import NeighborPair, Portfolio, item_steps, removal_steps
from dpaudit.results import CAUSES, Cause

PRECISION = 1.2
"""Ratio of the two factors at which the bracketing ends."""

_FINER = 16  # Trials near a limit get the draws of the audit divided by this number.
_NEAR = 1.5  # Ratio of two factors between which trials get twice as many draws.
_SUSPICION = 0.1  # Failure probability of a trial that looks for the factor that suffices.
_MOST = 4  # Largest number of noises, outputs and steps that are tried.
_FACTOR_SHARE = 0.65  # Share of the draws for the factor; the rest is for the other questions.
_HOPELESS = 8.0  # If the claim is refuted with this factor, and no factor repairs it, none may.
_FARTHER, _LARGER = 1e6, 1e5  # a distance between users, and noise that covers less than that
_DELTA = 1e-5
_MOVED, _ROUNDING = 32, 1e-6  # draws in which more noise must change the outputs, and how precisely


def causes_of(
    task: Task,
    mechanism: Any,
    found: Certificate,
    smallest: NeighborPair | None,
    *,
    certify: Certify,
) -> tuple[Cause, ...]:
    """Return the causes that agree with the draws, with the most specific first.

    Parameters
    ----------
    task : Task
        The task of the audit.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The audited mechanism.
    found : Certificate
        Certificate that refutes the claim.
    smallest : NeighborPair or None
        The smallest pair on which the claim is refuted. None if no smaller pair was found.
    certify : callable
        The function that certified it: ``certify(task, mechanism, role) -> Certificate``.
    """
    draws = sum(found.draws.values())
    trials = Trials(task, mechanism, certify, "repair", draws)
    inquiry = _Inquiry(trials, found, smallest or found.pair, max(draws // _FINER, 1))
    with task.watch.calls_within(patience(found)):
        inquiry.ask(draws)
    order = list(CAUSES)
    causes = sorted(inquiry.causes, key=lambda cause: order.index(cause.kind))
    # Much code has decisions on data that do no harm, such as a loop that counts.
    if inquiry.best is not None and causes[0].kind == "branch":
        causes[:2] = causes[1::-1]
    return tuple(replace(cause, draws=trials.spent) for cause in causes)


@dataclass(frozen=True)
class _Factor:
    """A noise, the largest factor that was refuted, and the factor that seems to suffice.

    `draws` is the number of draws per dataset that did not refute the latter. More may be needed.
    """

    of: Amplifier
    refuted: float
    suffices: float
    draws: int
    on: str
    returns: tuple[Line, ...]

    @property
    def words(self) -> str:
        times = f"{self.refuted:.2g}"
        little = "this noise" if times == "1" else f"{times} times this noise"
        return (
            f"on {self.on}, {little} is too little, and {self.suffices:.2g} times is not refuted "
            f"in {self.draws:,} draws"
        )

    @property
    def lines(self) -> Lines:
        """The draws of the noise, then lines that compute its amount and its surroundings."""
        keys = self.of.keys
        amount = [line for key in keys for line in amount_lines(key)[1:]]
        value = [line for key in keys for line in value_lines(key[1][0])[1:]]
        both = itertools.chain(*itertools.zip_longest(amount, value))
        return code_of(
            [*(key[1][0] for key in keys[:2]), *(line for line in both if line), *self.returns]
        )


class _Inquiry:
    """The questions about one refutation, and the causes that were found."""

    def __init__(
        self, trials: Trials, found: Certificate, smallest: NeighborPair, fine: int
    ) -> None:
        self.trials, self.task, self.mechanism = trials, trials.task, trials.mechanism
        self.event, self.first = found.witness.event, found.pair
        self.pair, self.fine = smallest, fine
        self.both = [self.first] if smallest is self.first else [self.first, smallest]
        self.facts = Facts(trials, smallest, self.first)
        self.causes: list[Cause] = []
        self.best: _Factor | None = None
        self.reached = 1.0
        """Largest factor with which the claim was refuted for each noise that was tried."""

    def ask(self, draws: int) -> None:
        """Ask all questions, as long as there are draws."""
        with suppress(OutOfDraws):
            self.causes += self.facts.causes()
            if self.task.float_attack and explanation(self.event):
                self.causes += self._bits()
                return
            if self._has("support"):  # so more noise is no repair
                return
            pair = self.trials.start(*reversed(self.both), draws=draws)
            if pair is None:
                self.causes += self._untested()
                return
            self.pair, self.fine = pair, max(self.fine, self.trials.each)
            if not self.trials.refutes(pair, draws=self.fine):  # repairs would prove nothing
                self.causes += self._untested()
                return
            most, self.trials.most = self.trials.most, int(_FACTOR_SHARE * self.trials.most)
            self.best = self._factor()
            self.trials.most = most
            if self.best is not None:
                of = self.best.of
                is_noise = of.noise == ALL_NOISE or all(TREATMENTS[k[0]].is_noise for k in of.keys)
                says = "is too small" if is_noise else "reveals too much"
                self._add("noise", f"{self._noise} {says}", "")
            elif self.reached >= _HOPELESS:
                self.causes += self._support()
                return
            self._ask_about_items()
            questions = [self._ask_about_removal, self._ask_about_outputs]
            if self._has("items"):  # which the outputs may explain better
                questions.reverse()
            for ask in questions:
                ask()
            self._ask_about_users()
            self._ask_about_delta()
            self._ask_about_distance()
            if not self.causes:
                self.causes += self._untested(f"no repair was found with {draws:,} draws")

    def _add(self, kind: str, words: str, evidence: str) -> None:
        """Add a cause that is an amount of noise."""
        best = self.best
        seen = [evidence, self._distance, "" if best is None else best.words]
        factor = None if best is None else (best.refuted, best.suffices)
        lines = () if best is None else best.lines
        self.causes.append(Cause(kind, words, "; ".join(filter(None, seen)), lines, factor))

    @functools.cached_property
    def _distance(self) -> str:
        """The distance of the outputs without noise, in the norm that the noise covers."""
        if isinstance(self.mechanism, AdditiveNoise) or self._recorded is None:
            return ""
        added = self._added_on(self.first, self._recorded)
        if added is None:
            return ""
        order = 2 if added.kind == GAUSSIAN else 1
        apart = float(np.linalg.norm(added.shifts, order))
        norm = f" in L{order} norm" * (len(added.shifts) > 1)
        scale = "" if added.scale is None else f", and the noise has scale {added.scale:.3g}"
        words = f"without noise, the outputs of the audited pair differ by {apart:.3g}{norm}"
        return f"{words}{scale}"

    def _has(self, *kinds: str) -> bool:
        return any(cause.kind in kinds for cause in self.causes)

    # --- more noise ---

    def _factor(self) -> _Factor | None:
        """Return the noise whose amount explains the violation, if any does.

        One noise is preferred to all together, unless all together need a smaller factor.
        """
        best: _Factor | None = None
        reached, able = [], []
        every = list(filter(self._moves, amplifiers(self.mechanism, self.facts.found)))
        every.sort(key=lambda one: (one.noise != ALL_NOISE, bool(one.keys)))
        with suppress(OutOfDraws):
            for one in every[:_MOST]:
                if self._suffices(one, LARGEST, self.trials.each) is False:
                    reached.append(LARGEST)
                else:
                    able.append(one)
        able.sort(key=lambda one: one.noise == ALL_NOISE)
        with suppress(OutOfDraws):
            for one in able:
                most = LARGEST if best is None else best.suffices / PRECISION**2
                if best is None or (most > 1 and self._suffices(one, most, self.fine)):
                    tried = self._bracket(one, most)
                    reached.append(tried.refuted)
                    best = tried if tried.suffices < LARGEST else None
        self.reached = min(reached, default=1.0)
        return best

    def _moves(self, noise: Amplifier) -> bool:
        """Whether more of a noise changes the outputs of a side by more than a constant.

        It does not if the outputs depend on its logarithm or on ratios of its draws.
        """
        if not noise.keys or is_computed(self.mechanism):
            return True
        louder, sides = noise.scaled(LARGEST), (self.pair.left, self.pair.right)
        try:
            with self.task.watch.call(mechanism_name(self.mechanism)):
                return any(self._is_moved(louder, data) for data in sides)
        except BaseException:  # other trials report errors of the mechanism
            if self.task.watch.interrupted:
                raise
            return True

    def _is_moved(self, changed: Any, data: Any) -> bool:
        """Whether a change of the mechanism moves a few equal draws by more than a constant."""
        before, after = (
            np.asarray(
                function(
                    handed(data), _MOVED, rng=generator(self.task.seed, self.task.name, "moved")
                )
            )
            for function in (self.mechanism, changed)
        )
        if before.shape != after.shape or not {before.dtype.kind, after.dtype.kind} <= set("fiub"):
            return True
        with np.errstate(all="ignore"):
            moved = after.astype(float) - before.astype(float)
            size = max(np.abs(before).max(initial=0.0), np.abs(moved).max(initial=0.0))
            return not np.all(np.ptp(moved, axis=0) <= _ROUNDING * size)

    def _bracket(self, noise: Amplifier, high: float) -> _Factor:
        """Halve the range of the factor, on a logarithmic scale, until it is precise."""
        refuted = low = 1.0
        draws = of_high = self.fine
        with suppress(OutOfDraws):
            while high / low > PRECISION:
                middle = math.sqrt(low * high)
                draws = self.fine * (1 + (high / low < _NEAR))
                suffices = self._suffices(noise, middle, draws)
                low, high, of_high = (low, middle, draws) if suffices else (middle, high, of_high)
                refuted = middle if suffices is False else refuted
            near = low / PRECISION
            if near > refuted and self.trials.refutes(self.pair, noise.scaled(near), draws=draws):
                refuted = near
        on = "the pair of the audit" if self.pair is self.first else "the smallest pair"
        return _Factor(noise, refuted, high, of_high, on, self.facts.returns)

    def _suffices(self, noise: Amplifier, factor: float, draws: int) -> bool | None:
        """Return whether a multiple of a noise repairs the claim.

        The result is False if the claim is refuted. It is None if the draws only raise a suspicion,
        or if the mechanism fails.
        """
        found = self.trials.audit(
            self.pair,
            noise.scaled(factor),
            draws=draws,
            sequential=False,
            failure_prob=_SUSPICION,
        )
        if found is None:
            return None
        if not found.refuted:
            return True
        is_sure = not found.draws["certify"] or found.p_value <= self.trials.task.failure_prob
        return False if is_sure else None

    def _untested(
        self, evidence: str = "there were too few draws to try repairs; use more draws"
    ) -> Iterator[Cause]:
        """Yield the noise as a cause without a factor."""
        keys = () if self.facts.found is None else self.facts.found.keys
        noises = [key for key in keys if TREATMENTS[key[0]].is_noise] or keys
        if noises:
            yield Cause(
                "noise",
                "the noise is too small, or it is not added to all that depends on the user",
                evidence,
                code_of(line for key in noises[:2] for line in amount_lines(key)),
            )

    def _bits(self) -> Iterator[Cause]:
        """Yield the cause of an event in the low bits of the outputs."""
        keys = () if self.facts.found is None else self.facts.found.keys
        yield Cause(
            "float",
            "the low bits of floating-point noise reveal the value",
            f"the witness is {self.event}",
            code_of(key[1][0] for key in keys),
        )

    def _support(self) -> Iterator[Cause]:
        """Yield the cause that no amount of noise suffices, if no fact explains it."""
        if not self.causes and self.facts.found is not None:
            yield Cause(
                "support",
                "no amount of noise seems to suffice",
                f"the claim is still refuted with {self.reached:.2g} times each noise",
                code_of(key[1][0] for key in self.facts.found.keys),
            )

    # --- smaller steps, parts, other claims ---

    @property
    def _noise(self) -> str:
        """The noise in words, and where its scale is as stated if it depends on the data."""
        if self.best is None:
            return "the noise"
        words, (audited, stated) = self.best.of.noise, self._scales
        is_elsewhere = audited is not None and audited != stated and words.endswith(")")
        return f"{words[:-1]} on the smallest pair)" if is_elsewhere else words

    @functools.cached_property
    def _recorded(self) -> Recording | None:
        """The noise on the pair of the audit; None if the mechanism fails."""
        sides = [self.first.left, self.first.right]
        with suppress(MechanismError):
            return record(self.facts.drawing, sides, seed=self.task.seed, watch=self.task.watch)
        return None

    @property
    def _scales(self) -> tuple[Any, Any]:
        """The ranges of the amount of the best noise, on the pair of the audit and on the other."""
        if self.best is None or not self.best.of.keys or self.facts.found is None:
            return None, None
        key = self.best.of.keys[0]
        both = (self._recorded, self.facts.found)
        ranges = [None if one is None else one.amount_ranges.get(key) for one in both]
        return ranges[0], ranges[1]

    def _holds(self, pair: NeighborPair, mechanism: Any = None, **arguments: Any) -> bool:
        """Return whether no violation is found; False if the mechanism fails."""
        found = self.trials.audit(pair, mechanism, draws=self.fine, **arguments)
        return found is not None and not found.refuted

    def _holds_on(self, steps: Sequence[NeighborPair]) -> bool:
        return bool(steps) and all(self._holds(step) for step in _some(steps))

    def _ask_about_items(self) -> None:
        ways = [item_steps(pair) for pair in self.both]
        # Without steps, the claim is refuted for a user who differs in one item. If there is a
        # smallest pair, one step of the pair of the audit must suffice, because draws are few.
        asked = [way[:1] for way in ways[:-1]] + ways[-1:]
        if all(ways) and all(map(self._holds_on, asked)):
            is_table = isinstance(self.first.form, ArrayForm) and np.ndim(self.first.left) == 2
            items = "items or columns" if is_table else "items"
            self._add(
                "items",
                f"{self._noise} covers fewer {items} than the {len(ways[0]) - _leaves(self.first)} "
                "in which the user of this pair differs",
                f"no violation is found if the user differs in one of these {items}",
            )

    def _ask_about_removal(self) -> None:
        if self.best is not None and self.best.refuted > 2 * PRECISION:
            return
        for way in zip(*map(removal_steps, self.both), strict=False):
            if all(map(self._holds_on, way)):
                self._add(
                    "relation",
                    f"{self._noise} covers a user who is absent, and the claim is about a user who "
                    "is replaced",
                    "no violation is found if the user is absent on one side",
                )
                return

    def _ask_about_outputs(self) -> None:
        parts = self._parts()
        some = list(_some(parts))
        if len(self.facts.shifts) == len(parts) > 1:  # the output that differs most comes first
            some.insert(0, parts[int(np.argmax(self.facts.shifts))])
        # The few items of the smallest pair may lie in different outputs by chance.
        pair = self.first if self._has("items") else self.pair
        is_refuted = pair is self.pair or self.trials.refutes(pair, draws=self.fine)
        if (
            len(parts) > 1
            and is_refuted
            and all(self._holds(pair, part) for part in dict.fromkeys(some))
        ):
            self._add(
                "outputs",
                f"{self._noise} covers each of {len(parts)} outputs alone, and not all together",
                "no violation is found in one output alone"
                + f" ({len(set(some))} were tried)" * (len(set(some)) < len(parts)),
            )
        elif self.best is not None and not self._has("items", "relation"):
            found, keys = self.facts.found, self.best.of.keys
            calls = found.sites[found.keys.index(keys[0])].most if found and len(keys) == 1 else 1
            is_difference = calls == 2 and TREATMENTS[keys[0][0]].least is not None
            if calls > max(1.0, self.best.refuted) and not is_difference:
                self._add(
                    "repeated",
                    f"{self._noise} is drawn {calls} times, perhaps each time at the whole budget",
                    f"{calls} draws that share the budget need {calls} times this noise",
                )

    def _parts(self) -> list[Any]:
        """Return the mechanism restricted to each of its outputs."""
        if is_computed(self.mechanism):
            return []
        sampler = self.task.sampler(self.mechanism, "parts")
        sampler.certifies = False
        try:
            one = sampler.call(self.pair.left, 2, "parts")
        except MechanismError:
            return []
        is_vector = one.ndim == 2 and one.dtype.kind in "iuf"
        names = one.dtype.names or (range(one.shape[1]) if is_vector else ())
        return [_Part(self.mechanism, name) for name in names]

    def _ask_about_users(self) -> None:
        """Ask whether more users need a larger factor, because the noise shrinks with them."""
        best, scales = self.best, self._scales
        if self._has("items") or best is None or scales[0] is None or scales[1] is None:
            return
        many, few = (len(pair.form.labels(pair.left, "users")) for pair in (self.first, self.pair))
        if many < 2 * few:
            return
        if scales[0][1] > 0.6 * scales[1][1]:
            return
        with suppress(MechanismError):
            able = amplifiers(self.mechanism, self._recorded)
            same = next((a for a in able if a.keys == best.of.keys), None)
            if same is not None and not self._holds(self.first, same.scaled(best.suffices)):
                self._add(
                    "users",
                    f"{self._noise} shrinks with the number of users, and the effect of one user "
                    "does not",
                    f"the scale is {scales[0][1]:.3g} for {many} users and {scales[1][1]:.3g} for "
                    f"{few}, and {many} users need a larger factor than {few}",
                )

    def _ask_about_distance(self) -> None:
        """Ask whether a user whose values are farther away needs still more noise."""
        best, kinds = self.best, [cause.kind for cause in self.causes]
        space = self.task.space
        if isinstance(space, Portfolio) and space.is_bounded:  # so no clip is due
            return
        if best is None or kinds != ["noise"] or (pair := _farther(self.pair)) is None:
            return
        factor = _LARGER * best.suffices
        if self.trials.refutes(pair, best.of.scaled(factor), draws=self.fine):
            seen = (
                f"if the user's values were {_FARTHER:,.0f} times as far away, even "
                f"{float(f'{factor:.2g}'):,.0f} times this noise would be too little"
            )
            (cause,) = self.causes
            words = f"{cause.words}, and nothing seems to clip users"
            self.causes = [replace(cause, words=words, evidence=f"{cause.evidence}; {seen}")]

    def _ask_about_delta(self) -> None:
        point = self.task.claim.point
        if point is None or point[1] > 0:
            return
        if self._has("items", "relation", "outputs") and not self._is_gaussian:
            return  # a repair that explains the factor says more
        claim = ApproxDP(point[0], _DELTA, self.task.claim.relation)
        is_repaired = self._holds(self.pair, claim=claim)
        if not is_repaired and not self._is_gaussian:
            return
        words = f"epsilon = {point[0]:g}, delta = {_DELTA:g}"
        seen = f"no violation of {words} is found" if is_repaired else f"{words} is refuted, too"
        self._add(
            "delta",
            "Gaussian noise satisfies no claim with delta = 0"
            if self._is_gaussian
            else f"the claim may hold with delta = {_DELTA:g}, but not with delta = 0",
            seen,
        )

    @property
    def _is_gaussian(self) -> bool:
        """Whether the mechanism adds Gaussian noise and nothing else."""
        if isinstance(self.mechanism, AdditiveNoise):
            return self.mechanism.noise.kind == "gaussian"
        found = self.facts.found
        if found is None or not found.keys:
            return False
        added = self._added_on(self.pair, found)
        return added is not None and added.kind == GAUSSIAN

    def _added_on(self, pair: NeighborPair, found: Recording) -> AddedNoise | None:
        """Return the noise that the mechanism adds on a pair; None if it does anything else."""
        sides = pair.left, pair.right
        seed, watch = self.task.seed, self.task.watch
        return added_noise(self.mechanism, sides, found, seed=seed, watch=watch)


def _leaves(pair: NeighborPair) -> bool:
    """Return whether the last step removes a user without items."""
    return isinstance(pair.form, ArrayForm) and len(pair.left) != len(pair.right)


class _Part:
    """One part of the output of a mechanism."""

    def __init__(self, mechanism: Any, part: Any) -> None:
        self.mechanism, self.part = mechanism, part
        self.__name__ = f"output {part} of {mechanism_name(mechanism)}"

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        outputs = np.asarray(self.mechanism(data, size, rng=rng))
        return np.asarray(outputs[self.part] if outputs.dtype.names else outputs[:, self.part])


def _some(parts: Sequence[Any]) -> Sequence[Any]:
    """Return a few of many parts: the first, the middle and the last."""
    return parts if len(parts) <= _MOST else [parts[0], parts[len(parts) // 2], parts[-1]]


def _farther(pair: NeighborPair) -> NeighborPair | None:
    """Return a pair whose user is farther away; None unless a user's real numbers may be moved.

    The side with the larger values moves away from the other side, or from 0 if the user is absent
    there. Other relations say which values may differ and by how much.
    """
    moves = pair.relation.name in ("replace_user", "add_remove_user") and pair.users
    if not (moves and isinstance(pair.form, ArrayForm)):
        return None
    left, right = np.asarray(pair.left), np.asarray(pair.right)
    if left.dtype.kind != "f" or right.dtype.kind != "f" or left.shape[1:] != right.shape[1:]:
        return None
    users = list(pair.users)
    if len(left) == len(right):
        rows = {"left": left[users], "right": right[users]}
        side = max(rows, key=lambda one: np.abs(rows[one]).sum())
        origin = rows["right" if side == "left" else "left"]
    else:
        side, origin = ("left" if len(left) > len(right) else "right"), np.zeros(1)
    moved = np.array(getattr(pair, side))
    with np.errstate(over="ignore", invalid="ignore"):
        moved[users] = origin + _FARTHER * (moved[users] - origin)
    if not np.isfinite(moved).all() or np.array_equal(moved, getattr(pair, side)):
        return None
    fields: dict[str, Any] = {side: moved, "recipe": "a user farther away"}
    return replace(pair, **fields)
