"""Sequential audits, which stop as soon as the evidence suffices.

A sequential audit stops as soon as the evidence suffices, and may be read at any time. Draws come
in batches. Before each batch, the audit learns guesses of the side from *all earlier* draws. A
guess is given by two thresholds of one score, or by an event and its complement. The audit then
places bets. A bet compares the rates in earlier draws with the closest rates that the claim allows.
Under the claim, a bet multiplies the wealth by at most 1 on average (:mod:`dpaudit.stats.wagers`).

Several bets of different sizes each have their own wealth, which is the product of the bet's gains.
At the beginning, the wealths of all bets sum to 1. Before each batch, a part of the total wealth is
redistributed among the bets, which does not change the total. So the total wealth is a non-negative
supermartingale. By Ville's inequality, the total wealth *ever* reaches ``1 / failure_prob`` with
probability at most failure_prob, for any rule by which the audit stops.

Each of a few levels of epsilon has its own wealth. The null hypotheses of the levels are nested.
The certified epsilon is the largest level that was ever refuted together with all lower levels. The
certified epsilon is wrong only if the smallest level at or above the true epsilon was refuted. The
probability of this single event is at most failure_prob.

References
----------
Turner, Ly and Grunwald (2024), "Generic E-variables for exact sequential k-sample tests that allow
for optional stopping". "Sequentially auditing differential privacy" (2025), arXiv:2509.07055, uses
bets with kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.engine.certificate import (
    Answers,
    Bound,
    Certificate,
    answers_of,
    tally_of,
    tally_on,
)
from dpaudit.engine.explore import Draws, Exploration, explore
from dpaudit.engine.notes import (
    not_covered,
    notes_on_draws,
    notes_on_outputs,
    suspiciously_constant,
)
from dpaudit.engine.pictures import picture
from dpaudit.engine.task import EXPLORE_SHARE, Run, Task
from dpaudit.events import Event, Guess, approximate_lower, approximate_upper, learn
from dpaudit.mechanisms import (
    SUSPICION,
    TIME_IS_OVER,
    IndependenceCheck,
    joined,
)
from dpaudit.results import SequentialPath, Witness
from dpaudit.stats import LEFT, NEITHER, RIGHT, RateBounds, Wager, wager

# --- one bet on a guess: the rates that are bet on, and how they follow the incoming draws ------


Floats = NDArray[np.float64]

Limit = Callable[[float, int, float], Any]

CAREFUL = 0.15
"""One-sided level of the limits that a careful bet uses."""

_CHOSEN, _FEW = 0.4, 150


class BetShare(NamedTuple):
    """Specification of a bet.

    Parameters
    ----------
    rank : int
        Number of the guess on which the bet is placed. The most promising guess before the batch
        has number 0.
    bet_size : float
        Bet size, which says how far the bet goes from the null to the rates.
    share : float
        Initial share of the wealth.
    careful : bool
        Whether the rates are first moved in the conservative direction.
    """

    rank: int
    bet_size: float
    share: float
    careful: bool


BET_SHARES = (
    BetShare(rank=0, bet_size=0.9, share=0.5, careful=False),
    BetShare(rank=0, bet_size=1.0, share=0.25, careful=True),
    BetShare(rank=1, bet_size=0.9, share=0.25, careful=False),
)
"""The bets. Bets on the observed rates grow fastest if the guess is good. The careful bet keeps
its wealth if the guess only looked good by chance."""

_SHARES = np.array([[bet_share.share] for bet_share in BET_SHARES])
_RESHARED = 0.1  # share of the wealth that is redistributed; a losing bet may still gain


def first_wealths(levels: int) -> Floats:
    """Return log wealths, shape (bets, levels).

    At each level, the wealths sum to 1.
    """
    return np.asarray(np.log(_SHARES) + np.zeros(levels))


def shared_again(wealths: Floats) -> Floats:
    """Redistribute a part of the wealth according to the initial shares.

    The sum of the wealths stays equal, so the sum stays a supermartingale.

    Parameters
    ----------
    wealths : ndarray, shape (bets, levels)
        Logarithms of the wealths.
    """
    back = np.log(_RESHARED) + np.log(_SHARES) + special.logsumexp(wealths, axis=0)
    return np.asarray(np.logaddexp(np.log1p(-_RESHARED) + wealths, back))


@dataclass(frozen=True)
class Bet:
    """A guess that is frozen before the draws of its batch, and the gains of its answers.

    Parameters
    ----------
    chosen : Event or Guess
        The event or guess that was learnt. A bet on an event also uses the complement of the event.
    guess : Guess
        The guess of the bet.
    seen : (ndarray of int, ndarray of int), shapes (3,)
        Answers to earlier draws of each side, from which the score was not learnt.
    bet_share : BetShare
        Size and initial share of the bet.
    wager : Wager
        Null hypothesis at each level of epsilon.
    """

    chosen: Event | Guess
    guess: Guess
    seen: tuple[Answers, Answers]
    bet_share: BetShare
    wager: Wager


Seen = tuple[Answers, Answers]


def lay(
    asked: Sequence[tuple[Event | Guess, Seen, BetShare]], levels: Floats, delta: float
) -> list[Bet]:
    """Bet on the rates of earlier draws, against all levels.

    A careful bet moves these rates in the conservative direction.

    Parameters
    ----------
    asked : sequence of (Event or Guess, (ndarray of int, ndarray of int), BetShare)
        For each bet, what was learnt, the answers to earlier draws of each side, and the share.
    levels : ndarray, shape (n,)
        Levels of epsilon.
    delta : float
        Delta of all levels.
    """
    guesses = [Guess.of(chosen) for chosen, _, _ in asked]
    rates = [rates_of(guess, *seen) for guess, (_, seen, _) in zip(guesses, asked, strict=True)]
    for at, (_, seen, bet_share) in enumerate(asked):
        if bet_share.careful:
            rates[at] = moved(*rates[at], int(seen[0].sum()), CAREFUL)
    sizes = np.array([bet_share.bet_size for _, _, bet_share in asked])
    wagers = wagers_on(rates, levels, delta, sizes)
    return [
        Bet(chosen, guess, seen, bet_share, laid)
        for (chosen, seen, bet_share), guess, laid in zip(asked, guesses, wagers, strict=True)
    ]


def wagers_on(
    rates: Sequence[tuple[Floats, Floats]], levels: Floats, delta: float, sizes: Floats
) -> list[Wager]:
    """Return the wager on each pair of rates against all levels, from one call of numpy."""
    n = len(levels)
    left, right = (np.repeat([pair[side] for pair in rates], n, axis=0) for side in (0, 1))
    together = wager(left, right, np.tile(levels, len(rates)), delta, np.repeat(sizes, n))
    return [together.part(at * n, (at + 1) * n) for at in range(len(rates))]


def rates_of(guess: Guess, left: Answers, right: Answers) -> tuple[Floats, Floats]:
    """Return the rates of the answers on each side, moved away from 0 and 1 by half a draw."""
    answers = np.array([1.0, 1.0, 0.0 if guess.is_complete else 1.0])
    both = (counts + answers / 2 for counts in (left, right))
    p, q = (counts / counts.sum() for counts in both)
    return p, q


def chosen_at(draws: int) -> float:
    """Return the level of the limits by which guesses are compared after this number of draws.

    With few draws, a stricter level would reject every guess. With many draws, a stricter level
    costs little, and the best of many fine scores is often best by chance. The level falls from 0.4
    to the level of a careful bet.
    """
    return max(_CHOSEN * math.sqrt(min(_FEW / max(draws, 1), 1.0)), CAREFUL)


def moved(left: Floats, right: Floats, draws: int, level: float) -> tuple[Floats, Floats]:
    """Return the rates, moved towards each other by their one-sided limits at `level`.

    The rate that a correct answer loses goes to the wrong answer of the same side.
    """
    return (
        _shifted(left, LEFT, draws, level, approximate_lower, approximate_upper),
        _shifted(right, RIGHT, draws, level, approximate_lower, approximate_upper),
    )


def spread(left: Floats, right: Floats, draws: int, level: float) -> tuple[Floats, Floats]:
    """Return the rates, moved apart by their one-sided limits at `level`."""
    return (
        _shifted(left, LEFT, draws, level, approximate_upper, approximate_lower),
        _shifted(right, RIGHT, draws, level, approximate_upper, approximate_lower),
    )


def _shifted(
    rates: Floats, good: int, draws: int, level: float, of_good: Limit, of_bad: Limit
) -> Floats:
    """Move the rates of the correct and the wrong answer of one side, each by one limit."""
    bad = RIGHT if good == LEFT else LEFT
    moved = rates.copy()
    moved[good] = float(of_good(rates[good] * draws, draws, level))
    moved[bad] = min(float(of_bad(rates[bad] * draws, draws, level)), 1 - moved[good])
    moved[NEITHER] = max(1 - moved[good] - moved[bad], 0.0) if rates[NEITHER] > 0 else 0.0
    if rates[NEITHER] == 0:
        moved[bad] = 1 - moved[good]
    inside = np.maximum(moved, np.where(rates > 0, 1e-9, 0.0))
    return np.asarray(inside / inside.sum())


SIDES = ("left", "right")

FIRST_BATCH = 48
GROWTH = 1.5
"""The draws on which bets were placed grow by at most this factor in one batch."""

CALLS_PER_BATCH = 16
"""Largest number of calls of a batch. The wealth is updated after each call."""

LEAST_CALL = 16
"""Least number of draws of a call: enough to detect that the draws of a call are dependent."""

LEAST_DRAWS = 96
"""Certifying draws per dataset before which no claim is refuted, so that independence can be
tested."""

FUTILE_AFTER = 0.3
"""Share of the budget before which no audit stops as futile."""

_PAIR_SHARE = 0.03  # Share of the budget for the choice among several pairs.
_LEARN_SHARE = 0.6  # A score needs many draws to be learnt, and a threshold needs fewer.
_MARGIN = 1e-6  # Distance from the claim to the level whose refutation refutes the claim.
_POOL = 6  # Number of guesses that are kept.
# One-sided levels of the optimistic rates, first for a guess that never abstains, then for a guess
# that may abstain. The first level moves two rates, and the second level moves four rates. Both
# levels are as optimistic as an event of probability 1/40.
_OPTIMISM, _OPTIMISM_OF_FOUR = 0.025, 0.083

_TIME_SHARE = 0.7  # share of max_seconds that may pass before mutants are tested


class Game:
    """A sequence of bets on one mechanism, batch by batch.

    The pair, the claim's point and the levels of epsilon are frozen before the first certifying
    draw. The bets on a batch are frozen before the batch. These bets depend only on earlier draws.

    Parameters
    ----------
    run : Run
        The claim, the pairs, the budget and the seed.
    """

    weights = (1.0,)

    def __init__(self, run: Run) -> None:
        self.sampler = sampler = run.sampler()
        self.run, self.role = run, run.role
        share = _first_share(run.task)
        self.exploration = explore(run, sampler, share=share, learn_share=_LEARN_SHARE)
        self.task = task = run.task
        self.point = task.claim.point or self.exploration.selection.point
        epsilon = self.point[0]
        level = epsilon * (1 + _MARGIN) + 1e-9
        others = task.grid[task.grid != epsilon][: 0 if task.is_trial else None]
        self.levels = np.unique(np.append(others, level))
        self.claim_level = int(np.searchsorted(self.levels, level))
        self.refuted_at = math.inf
        self.past: dict[str, list[NDArray[Any]]] = {
            side: [drawn] for side, drawn in zip(SIDES, self.exploration.draws, strict=True)
        }
        self.wealths = first_wealths(len(self.levels))
        self.most = np.zeros(len(self.levels))
        self.checks = {side: IndependenceCheck(sampler.name) for side in SIDES}
        self.explored = self.spent = self.exploration.explored
        self.pool: list[tuple[Event | Guess, int]] = []
        self.best_growth = math.inf
        self.path: list[tuple[int, float]] = []
        self.is_judged = True
        self.last = tally_on(self.exploration.selection.primary, *self.exploration.draws)
        self.stopped = "all draws of the budget were used"

    def play(self) -> None:
        """Bet until the claim is refuted, further draws are futile, or the budget is spent."""
        self.refuted_at = -math.log(self.run.failure_probs[0])
        rng = self.run.rng("learn again")
        batch, learnt_on, budget = 0, self.spent, self.task.draws
        while self.spent < budget and not self.is_late:
            batch += 1
            # The size of a batch grows with the number of earlier draws on which bets were placed.
            # A long search must not lead to a large first batch.
            size = max(FIRST_BATCH, int((self.spent - self.explored) * (GROWTH - 1)))
            size = min(size, budget - self.spent)
            if self.spent >= learnt_on * (1 + (GROWTH - 1) / 2):
                self._learn_again(rng)
                learnt_on = self.spent
            self._play_batch(self._bets(), size, f"batch {batch}")
            for check in self.checks.values():
                check.judge()
            if self.refuted:
                self.stopped = "the claim is refuted"
                return
            if self.is_late:
                break
            waiting = self.refused > self.claim_level  # until the draws seem to be independent
            if self.spent >= FUTILE_AFTER * budget and not waiting and self._is_futile():
                self.stopped = (
                    "the remaining draws could not certify any violation that is still possible"
                )
                return
        if self.spent < budget:
            self.stopped = TIME_IS_OVER
            self._forget_what_was_not_judged()

    @property
    def log_wealth(self) -> Floats:
        """Logarithm of the total wealth of all bets at each level."""
        return np.asarray(special.logsumexp(self.wealths, axis=0))

    @property
    def refused(self) -> int:
        """Number of refuted levels, counted from the lowest level up to the first gap."""
        refused = self.most >= self.refuted_at
        return len(refused) if refused.all() else int(refused.argmin())

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted, and the draws seem independent or the budget is spent.

        If draws seem dependent, the audit continues. Further draws either prove the dependence,
        which raises an error, or show that the draws are independent. Waiting can only delay a
        refutation, so validity is unaffected.
        """
        if self.refused <= self.claim_level or self.spent - self.explored < LEAST_DRAWS:
            return False
        suspicion = max(check.log_evidence for check in self.checks.values())
        return suspicion < SUSPICION or self.spent >= self.task.draws

    @property
    def is_late(self) -> bool:
        """Whether the time limit has passed.

        A part of the time is reserved for mutants.
        """
        return self.task.watch.is_spent(_TIME_SHARE if self.role == "mechanism" else 1.0)

    @property
    def log_e_value(self) -> float:
        """Logarithm of an e-value against the claim: the wealth with which the audit ended.

        The audit ends at a stopping time, so the wealth is at most 1 on average. Gains whose
        independence could not be tested do not count, but losses do.
        """
        wealth = float(self.log_wealth[self.claim_level])
        return wealth if self.is_judged else min(wealth, 0.0)

    def _forget_what_was_not_judged(self) -> None:
        """Discard evidence whose independence could not be tested within the time limit."""
        suspicion = max(check.log_evidence for check in self.checks.values())
        if self.spent - self.explored < LEAST_DRAWS or suspicion >= SUSPICION:
            self.most[:] = 0.0
            self.is_judged = False
            self.stopped += ", before the draws could be tested for independence"

    # --- learning ---

    def _everything(self) -> Draws:
        """Return all draws of the audit so far."""
        left, right = (joined(self.past[side]) for side in SIDES)
        self.past = {"left": [left], "right": [right]}
        return left, right

    def _learn_again(self, rng: np.random.Generator) -> None:
        draws = self._everything()
        pair = self.exploration.pair
        goal = self.task.goal(max(self.task.draws - self.spent, len(draws[0])), _LEARN_SHARE)
        selection = learn(*draws, goal, rng=rng, float_attack=self.task.attack_on(pair))
        self.exploration = Exploration(
            pair, selection, draws, self.explored, self.exploration.search
        )

    def _bets(self) -> list[Bet]:
        """Bet on the new and old guesses whose bets should grow fastest at the claimed level.

        The rates of a guess are estimated on draws from which the guess was not learnt. Older
        guesses have more of these draws. The rates are moved in the conservative direction, by an
        amount that shrinks with the number of draws. The reason is that, early in an audit, a large
        bet on a guess that looked good by chance loses more than it gains.
        """
        left, right = self._everything()
        delta = self.point[1]
        selection = self.exploration.selection
        fresh = [selection.primary, *selection.profile]
        known = [(chosen, int(len(left) * chosen.learnt_share)) for chosen in fresh] + self.pool
        # If there is no evidence against the claim, certify at least the levels below the claim.
        levels = np.append(self.levels[self.claim_level], self.levels[::4])
        answers, careful, hoped = [], [], []
        for chosen, start in known:
            draws = len(left) - start
            guess = Guess.of(chosen)
            seen = answers_of(guess(left[start:])), answers_of(guess(right[start:]))
            rates = rates_of(guess, *seen)
            hope = _OPTIMISM if guess.is_complete else _OPTIMISM_OF_FOUR
            answers.append(seen)
            careful.append(moved(*rates, draws, chosen_at(draws)))
            hoped.append(spread(*rates, draws, hope))
        whole = np.ones(len(known))
        growths = [bet.growth for bet in wagers_on(careful, levels, delta, whole)]
        best = wagers_on(hoped, levels[:1], delta, whole)
        self.best_growth = max(float(bet.growth[0]) for bet in best)
        objectives = [(float(growth[0]), float(growth[1:].sum())) for growth in growths]
        order = sorted(range(len(known)), key=lambda at: objectives[at], reverse=True)
        self.pool = [known[at] for at in order[:_POOL]]
        ranked = (order[min(bet_share.rank, len(order) - 1)] for bet_share in BET_SHARES)
        asked = [
            (known[at][0], answers[at], bet_share)
            for at, bet_share in zip(ranked, BET_SHARES, strict=True)
        ]
        return lay(asked, self.levels, delta)

    # --- betting ---

    def _play_batch(self, bets: list[Bet], size: int, role: str) -> None:
        """Draw one batch and update the bets after each call.

        Stop when the claim is refuted.
        """
        pair = self.exploration.pair
        calls = min(CALLS_PER_BATCH, max(size // LEAST_CALL, 1), self.task.calls(size))
        streams = [
            self.sampler.chunks(data, size, role, side, calls=calls)
            for side, data in (("left", pair.left), ("right", pair.right))
        ]
        guesses = {id(bet.chosen): bet.guess for bet in bets}
        watched = tuple({id(bet.chosen): bet.chosen for bet in bets}.values())
        self.wealths = shared_again(self.wealths)
        first = id(bets[0].chosen)
        total = {side: np.zeros(3, dtype=np.int64) for side in SIDES}
        for outputs in zip(*streams, strict=True):
            answers: dict[str, dict[int, NDArray[np.int64]]] = {}
            for side, drawn in zip(SIDES, outputs, strict=True):
                self.past[side].append(drawn)
                made = {key: guess(drawn) for key, guess in guesses.items()}
                fired = [
                    sides == sign
                    for key, sides in made.items()
                    for sign in ((1,) if guesses[key].is_complete else (1, -1))
                ]
                self.checks[side].add(drawn, np.array(fired), watched)
                answers[side] = {key: answers_of(sides) for key, sides in made.items()}
                total[side] += answers[side][first]
            asked = []
            for row, bet in enumerate(bets):
                of_left, of_right = (answers[side][id(bet.chosen)] for side in SIDES)
                self.wealths[row] += bet.wager.log_growth(of_left, of_right)
                seen = bet.seen[0] + of_left, bet.seen[1] + of_right
                asked.append((bet.chosen, seen, bet.bet_share))
            bets = lay(asked, self.levels, self.point[1])
            self.spent += len(outputs[0])
            self.most = np.maximum(self.most, self.log_wealth)
            self.path.append((self.spent, float(self.log_wealth[self.claim_level])))
            if self.refuted or self.is_late:
                break
        self.last = tally_of(bets[0].chosen, total["left"], total["right"])

    def _is_futile(self) -> bool:
        """Return whether even optimistic rates of the best event cannot refute with this budget."""
        wealth = float(self.log_wealth[self.claim_level])
        return wealth + self.best_growth * (self.task.draws - self.spent) < self.refuted_at


class ByBets:
    """Bets against the claim, batch by batch, until the claim is refuted."""

    def explore(self, run: Run) -> Game:
        """Choose the pair and the first events."""
        return Game(run)

    def certify(self, frozen: Game, run: Run) -> Certificate:
        """Bet on fresh draws until the claim is refuted or the budget is spent."""
        frozen.play()
        return _certify(frozen)


def _first_share(task: Task) -> float:
    """Return the share of the budget that chooses the pair and the first events."""
    pairs = len(task.pairs)
    # Each pair must be tried before bets are placed on it, even if its event is rare.
    family = max(4 * FIRST_BATCH * pairs, int(_PAIR_SHARE * task.draws))
    first = FIRST_BATCH if pairs == 1 else family
    return min(first / task.draws, EXPLORE_SHARE)


def _certify(game: Game) -> Certificate:
    task, seen = game.task, game.last
    epsilon, delta = game.point
    refused = game.refused
    certified = float(game.levels[refused - 1]) if refused else 0.0
    bounds = RateBounds.from_excess(certified, delta, game.run.failure_probs[0])
    left, right = game._everything()
    everything = tally_on(seen.chosen, left, right).seen()
    return Certificate.of(
        task,
        game.exploration.pair,
        game.point,
        epsilon=Bound(everything.lower_epsilon(delta), certified, seen.pair_counts),
        delta=Bound(
            everything.lower_delta(epsilon),
            delta if refused > 0 and certified >= epsilon else 0.0,
            seen.pair_counts,
        ),
        certified=np.where((task.grid <= certified) & (refused > 0), delta, 0.0),
        estimated=[everything.lower_delta(float(e)) for e in task.grid],
        method="wealth of a bet against the claim",
        refuted=game.refuted,
        explored=game.explored,
        certifying=game.spent - game.explored,
        witness=Witness(
            seen.chosen.description,
            seen.likelier,
            seen.counts,
            *seen.seen().worst_case(delta),
            right=seen.right,
            definition=seen.chosen.definition,
        ),
        histogram=picture(seen.chosen, left, right),
        mechanism_seconds=game.sampler.seconds,
        # Ville's inequality at the level of the claim.
        p_value=math.exp(-float(game.most[game.claim_level])) if game.refuted else 1.0,
        event=seen.chosen,
        log_e_values=(game.log_e_value,),
        bounds=(bounds,) if refused > 0 else (),
        search=game.exploration.search,
        notes=notes_on_draws(task, game.sampler)
        + notes_on_outputs(game.sampler, (left, right))
        + tuple(check.note for check in game.checks.values() if check.note),
        not_covered=not_covered(task, game.sampler, game.exploration.search),
        constant=suspiciously_constant(game.sampler, joined([left, right])),
        sequential=SequentialPath(
            game.stopped,
            task.draws,
            game.refuted_at,
            tuple(draws for draws, _ in game.path),
            tuple(wealth for _, wealth in game.path),
        ),
    )
