"""Few examples per user: item level and user level, Observation 28."""

from __future__ import annotations

import itertools
import math

import numpy as np

from algorithms.few_examples.reductions import OneExample, SuperUsers
from audits.few_examples.best_tests import best_test
from audits.few_examples.conventions import EPSILON, SHARE
from audits.few_examples.deletion_laws import ordered
from dpaudit.ledger import statement
from dpaudit.properties import Array


def least(m, bias, epsilon, delta, most):
    """Return the least n with success 2/3 for two coins, exactly, or `most` if no such n exists."""
    return next((n for n in range(1, most) if best_test(n, m, bias, epsilon, delta) > 2 / 3), most)


TASKS = [
    {"bias": 0.7, "epsilon": 1.0, "delta": 0.0},
    {"bias": 0.7, "epsilon": 0.5, "delta": 0.01},
    {"bias": 0.65, "epsilon": 1.0, "delta": 0.0},
    {"bias": 0.6, "epsilon": 4.0, "delta": 0.0},
    {"bias": 0.8, "epsilon": 0.5, "delta": 0.001},
    {"bias": 1.0, "epsilon": 0.4, "delta": 0.0},
]


@statement("few.obs28.1")
def user_level_is_no_harder(ledger):
    """Let T be any task and gamma > 0 be a parameter. Then, for any epsilon, delta >= 0 and m in N
    it holds that n_m(epsilon, delta; gamma) <= n_1(epsilon, delta; gamma).

    The bound holds exactly, because the user-level algorithm reads the first example of each user
    and runs the item-level algorithm. The worst delta over all user-level neighbours equals the
    worst delta of the item-level algorithm. Two constant sources attain the bound, because
    additional examples give no information about these sources. Consider coins of bias .65 and .35
    at epsilon =
    1. The least number of users that distinguish the coins is 5 for m = 1, 4 for m = 2 and 3 for m
    = 3.
    """

    @ledger.identity(
        "worst delta of one example each, against the item-level one", answers=Array(SHARE, (8,)),
        epsilon=EPSILON, first=True, mutant={"first": False}, examples=30,
    )  # fmt: skip
    def thrown_away(answers, epsilon, first):
        """Use three users of two bits.

        The mutant treats the two examples of a user as two users.
        """
        pick = (0, 2, 4) if first else (0, 1, 4)
        data = list(itertools.product((0, 1), repeat=6))
        found = {x: answers[4 * x[pick[0]] + 2 * x[pick[1]] + x[pick[2]]] for x in data}
        pairs = [(x, (*x[:i], *user, *x[i + 2 :])) for x in data for i in (0, 2, 4)
                 for user in itertools.product((0, 1), repeat=2)]  # fmt: skip
        bits = list(itertools.product((0, 1), repeat=3))
        item = {x: answers[4 * x[0] + 2 * x[1] + x[2]] for x in bits}
        close = [(x, (*x[:i], 1 - x[i], *x[i + 1 :])) for x in bits for i in range(3)]
        return 1 + spread(found, pairs, epsilon), 1 + spread(item, close, epsilon)

    @ledger.sweep("least numbers of users for two coins, by linear programs", cases=TASKS,
                  m=[2, 3, 4], less=0, mutant={"less": 1}, end_to_end=True)  # fmt: skip
    def fewer(m, bias, epsilon, delta, less):
        item = least(1, bias, epsilon, delta, 14)
        return least(m, bias, epsilon, delta, item + 1), item - less

    @ledger.identity("our algorithm runs A on the first item of each user", n=[1, 3, 4], m=[1, 3],
                     first=0, mutant={"first": -1})  # fmt: skip
    def first_items(n, m, first):
        """Use an A whose distribution depends on the order of the items."""
        data = np.random.default_rng(n).integers(0, 3, (n, m))
        learner, slowly = ordered(np.eye(7) / 2 + 1 / 14, [3, 0, 6, 2, 5, 1, 4])
        return OneExample(learner).pmf(data), np.array(slowly([user[first] for user in data]))


def spread(found, pairs, epsilon):
    """Return the worst delta of an event and of its complement."""
    up = math.exp(epsilon)
    return max(max(found[x] - up * found[y], 1 - found[x] - up * (1 - found[y]), 0.0)
               for x, y in pairs)  # fmt: skip


@statement("few.obs28.2")
def items_in_groups(ledger):
    """Let T be any task and gamma > 0 be a parameter. Then, for any epsilon, delta >= 0 and m in N
    it holds that n_m(epsilon, delta; gamma) >= ceil(n_1(epsilon, delta; gamma)/m).

    The bound holds exactly. A user-level algorithm is an item-level algorithm on the same samples.
    The reason is that replacing an item replaces the items of only one user. The bound is attained
    if privacy does not increase the number of items. Coins of bias .6 and .4 at epsilon = 4 need 5
    items. So 3 users of two items are needed, or 2 users of three or four items. The phrase "N = m
    n_m users" should refer to items. The subject of the paper is whether n_m is near this bound or
    near n_1.
    """

    @ledger.falsify(
        "worst delta at item level, against that at user level", answers=Array(SHARE, (16,)),
        epsilon=EPSILON, factor=1.0, mutant={"factor": 0.9}, examples=100,
        extremal=[{"answers": np.eye(16)[0], "epsilon": 1.0}],
    )  # fmt: skip
    def grouped(answers, epsilon, factor):
        """Use two users of two bits."""
        data = list(itertools.product((0, 1), repeat=4))
        found = dict(zip(data, answers, strict=True))
        item = [(x, (*x[:i], 1 - x[i], *x[i + 1 :])) for x in data for i in range(4)]
        user = [(x, (*x[:i], *new, *x[i + 2 :])) for x in data for i in (0, 2)
                for new in itertools.product((0, 1), repeat=2)]  # fmt: skip
        return spread(found, item, epsilon), factor * spread(found, user, epsilon) + 1e-12

    @ledger.sweep("least numbers of users for two coins, by linear programs", cases=TASKS,
                  m=[2, 3, 4], less=0, mutant={"less": 1}, end_to_end=True)  # fmt: skip
    def more(m, bias, epsilon, delta, less):
        item = least(1, bias, epsilon, delta, 14)
        return math.ceil(item / m), least(m, bias, epsilon, delta, item + 1) - less

    @ledger.identity("our super-users are m successive items", n=[1, 3], m=[1, 2, 4],
                     shape=[(-1,), (-1, 1)], step=0, mutant={"step": 1})  # fmt: skip
    def super_users(n, m, shape, step):
        """Use an A that reads all items of all users, in their order."""
        items = np.random.default_rng(n).integers(0, 3, n * m)
        users = []
        found = SuperUsers(Recorded(users), m).pmf(items.reshape(shape))
        grouped = [[int(items[i * m + j - step]) for j in range(m)] for i in range(n)]
        return [*np.ravel(users), *found], [*np.ravel(grouped), 0.25, 0.75]


class Recorded:
    """User-level algorithm that keeps its input, and has a constant distribution."""

    def __init__(self, users):
        self._users = users

    def pmf(self, data):
        """Return the constant distribution."""
        self._users.extend(np.asarray(data).tolist())
        return np.array([0.25, 0.75])
