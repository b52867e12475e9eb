"""Claims, and the (epsilon, delta) guarantees that they imply.

Every claim has ``delta(epsilon)`` and ``epsilon(delta)``. These two methods return the (epsilon,
delta) guarantees that follow from the claim *and no more*. The conversions are lossless: for each
point of the curve, some mechanism keeps the claim and gives no better guarantee than that point.

Consider a bound on Renyi divergences, and an event with probabilities p and q on neighbouring
inputs. By data processing, some mechanism keeps the bound and has such an event exactly if the
two-point distributions with probabilities p and q keep the bound. See Asoodeh, Liao, Calmon, Kosut
and Sankar 2021, "Three variants of differential privacy: lossless conversion and applications".

So ``delta(epsilon)`` is the maximum of ``p - e^epsilon q`` over a convex region of
the plane, and ``epsilon(delta)`` is the maximum of ``log((p - delta) / q)`` over this region. These
conversions are sharper than the textbook conversions and than Canonne, Kamath and Steinke (2020),
Proposition 12.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError

# --- neighbouring relations: what it means for two inputs to differ in one user ----------------


NORMS = ("l1", "l2", "linf")
NAMES = (
    "replace_user",
    "add_remove_user",
    "replace_label",
    "replace_window",
    "within_sensitivity",
    "replace_value",
    "custom",
)

_OF_USERS = ("replace_user", "add_remove_user", "replace_label", "replace_window")

Check = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Relation:
    """A neighbouring relation.

    Use the constants ``Relation.REPLACE_USER`` and ``Relation.ADD_REMOVE_USER`` for datasets. Use
    :meth:`of_group` for groups of users. Use :func:`replace_label` if all data except one user's
    label are public. Use :func:`custom_relation` for a relation of your own. For mechanisms that
    take query values, use :func:`within_sensitivity`. In the common case, each query moves by at
    most 1, and the relation is ``Relation.WITHIN_SENSITIVITY``. In ``Relation.LOCAL``, the two
    sides are any two values of one client.

    Parameters
    ----------
    name : str
        Kind of relation: "replace_user", "add_remove_user", "replace_label", "replace_window",
        "within_sensitivity", "replace_value" or "custom".
    norm : {"l1", "l2", "linf"}, optional
        Only for "within_sensitivity": the norm in which the distance of query values is measured.
    radius : float, optional
        Only for "within_sensitivity": the largest allowed distance, > 0.
    users : int, optional
        Only for relations of users: the number of users that may differ together, at least 1. For
        "replace_window", the number of consecutive rows.
    label : str or int, optional
        Only for "replace_label": where the label is stored.
    words : str, optional
        Only for "custom": the name of the relation. Two relations with the same name are equal.
    check : callable, optional
        Only for "custom": a function that checks two datasets. ``check(left, right)`` returns
        whether two datasets are neighbours.
    """

    name: str
    norm: str | None = None
    radius: float | None = None
    users: int = 1
    label: str | int | None = None
    words: str = ""
    check: Check | None = field(default=None, compare=False, repr=False)

    REPLACE_USER: ClassVar[Relation]
    ADD_REMOVE_USER: ClassVar[Relation]
    WITHIN_SENSITIVITY: ClassVar[Relation]
    LOCAL: ClassVar[Relation]

    def __post_init__(self) -> None:
        _validate.choice(NAMES, name=self.name)
        if self.name == "within_sensitivity":
            _validate.choice(NORMS, norm=self.norm)
            object.__setattr__(self, "radius", _validate.positive(radius=self.radius))
        elif self.norm is not None or self.radius is not None:
            raise ArgumentError(f"norm and radius must be None for the relation {self.name!r}")
        _validate.integer(1, users=self.users)
        if self.users > 1 and self.name not in _OF_USERS:
            raise ArgumentError(f"users must be 1 for the relation {self.name!r}")
        if (self.label is None) == (self.name == "replace_label"):
            fault = "must have a label" if self.label is None else "must have no label"
            raise ArgumentError(
                f"the relation {self.name!r} {fault}, got {_validate.describe(self.label)}"
            )
        if isinstance(self.label, str):
            _validate.text(label=self.label)
        elif self.label is not None:
            _validate.integer(-_validate.LARGEST_INTEGER, label=self.label)
        _validate.text(empty=True, words=self.words)
        if (self.name == "custom") != bool(self.words):
            raise ArgumentError(
                f"words must be given only for a custom relation, got {self.words!r} for "
                f"{self.name!r}"
            )
        if self.check is not None and (self.name != "custom" or not callable(self.check)):
            raise TypeError(f"check must be given only for a custom relation, got {self.check!r}")

    def __str__(self) -> str:
        if self.name == "within_sensitivity":
            return f"within_sensitivity(norm={self.norm}, radius={self.radius:g})"
        if self.name == "custom":
            return self.words
        if self.name == "replace_window":
            return f"{self.name}({self.users} consecutive rows)"
        facts = [] if self.label is None else [f"label={self.label}"]
        facts += [f"users={self.users}"] if self.users > 1 else []
        return f"{self.name}({', '.join(facts)})" if facts else self.name

    @property
    def is_of_users(self) -> bool:
        """Whether the relation is between datasets of users, and not between single values."""
        return self.name not in ("within_sensitivity", "replace_value")

    def of_group(self, users: int) -> Relation:
        """Return the relation in which up to `users` users differ together.

        Examples
        --------
        >>> print(Relation.ADD_REMOVE_USER.of_group(3))
        add_remove_user(users=3)
        """
        return replace(self, users=users)

    def of_window(self, rows: int) -> Relation:
        """Return the relation in which rows of a stream differ within `rows` consecutive rows.

        This is the relation of w-event privacy (Kellaris et al. 2014). Each row of the data is one
        time. With one row, the relation is that of a single event, ``Relation.REPLACE_USER``.

        Raises
        ------
        ValueError
            If this relation is not ``Relation.REPLACE_USER``, or `rows` is not an integer >= 1.

        Examples
        --------
        >>> print(Relation.REPLACE_USER.of_window(3))
        replace_window(3 consecutive rows)
        """
        if self != Relation.REPLACE_USER:
            raise ArgumentError(f"of_window needs the relation replace_user, got {self}")
        return (
            self if _validate.integer(1, rows=rows) == 1 else Relation("replace_window", users=rows)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the relation as plain data; for a custom relation, this includes its name."""
        facts: dict[str, Any] = {"name": self.name, "norm": self.norm, "radius": self.radius}
        if self.users > 1:
            facts["users"] = self.users
        if self.label is not None:
            facts["label"] = self.label
        if self.words:
            facts["words"] = self.words
        return facts


Relation.REPLACE_USER = Relation("replace_user")
Relation.ADD_REMOVE_USER = Relation("add_remove_user")
Relation.WITHIN_SENSITIVITY = Relation("within_sensitivity", "linf", 1.0)
Relation.LOCAL = Relation("replace_value")


def checked_relation(relation: Any) -> Relation:
    """Return a relation; raise an error for anything else, such as the name of a relation."""
    return _validate.instance(
        Relation, "a Relation, such as Relation.REPLACE_USER", relation=relation
    )


def within_sensitivity(radius: float = 1.0, *, norm: str = "linf") -> Relation:
    """Return the relation "query values at distance at most `radius` in `norm`".

    Examples
    --------
    >>> print(within_sensitivity(2.0, norm="l1"))
    within_sensitivity(norm=l1, radius=2)
    """
    return Relation("within_sensitivity", norm, radius)


def replace_label(label: str | int) -> Relation:
    """Return the relation "one user has other labels"; all other data are public.

    Parameters
    ----------
    label : str or int
        Column of a frame, table of a dict, field of a record, or position in an item of an array.

    Examples
    --------
    >>> print(replace_label("income"))
    replace_label(label=income)
    """
    return Relation("replace_label", label=label)


def custom_relation(words: str, check: Check) -> Relation:
    """Return a relation that you define yourself.

    Parameters
    ----------
    words : str
        Name of the relation in reports. Claims and pairs with the same name have the same relation.
    check : callable
        ``check(left, right)`` returns True for neighbours. For other pairs, ``check`` returns
        False, or a text that explains why the datasets are not neighbours.

    Examples
    --------
    >>> edges = custom_relation("one edge differs", lambda a, b: len(set(a) ^ set(b)) == 1)
    >>> print(edges)
    one edge differs
    """
    _validate.text(words=words)
    _validate.function("a function check(left, right)", check=check)
    return Relation("custom", words=words, check=check)


LARGEST_EPSILON = 1e100
"""A larger claimed epsilon promises nothing, and numbers near it would not be doubles."""


@dataclass(frozen=True, kw_only=True)
class Claim(abc.ABC):
    """Base class of all claims; derive from it to audit against a claim of your own.

    Parameters
    ----------
    relation : Relation, optional
        Relation of the claim; None means the relation of the audited pair.
    source : str, optional
        Name of the person or text that makes the claim, such as "few_examples Lemma 18".
    """

    notion: ClassVar[str] = "custom"
    """Kind of the claim in stored results."""
    relation: Relation | None = None
    source: str = ""

    def _set(self, relation: Relation | None, source: str, **values: Any) -> None:
        if relation is not None:
            _validate.instance(
                Relation, "None or a Relation, such as Relation.REPLACE_USER", relation=relation
            )
        values |= {"relation": relation, "source": _validate.text(empty=True, source=source)}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def domain(self) -> tuple[Any, ...] | None:
        """Values of which all pairs are neighbours; None for a claim about datasets."""
        return None

    @property
    def point(self) -> tuple[float, float] | None:
        """The equivalent pair (epsilon, delta) of the claim; None if the claim is a curve."""
        return None

    def between(self, left: Any, right: Any) -> Claim:
        """Return the claim at two neighbours; most claims are the same at all neighbours.

        Raises
        ------
        NoClaim
            If the claim promises nothing about these neighbours.
        """
        return self

    @property
    def depends_on_pair(self) -> bool:
        """Whether the claim differs between neighbours."""
        return type(self).between is not Claim.between

    @abc.abstractmethod
    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that the claim implies at `epsilon`."""

    @abc.abstractmethod
    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that the claim implies at `delta`; it may be ``inf``."""

    @abc.abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""


def _at_remaining(delta: float, claimed: float, epsilon: Callable[[float], float]) -> float:
    """Return the epsilon at `delta` of a claim that promises nothing with probability `claimed`.

    The function `epsilon` maps the delta that remains for the rest of the claim to the epsilon of
    this rest.
    """
    delta = _validate.delta(delta=delta)
    if delta < claimed:
        return math.inf
    return 0.0 if claimed == 1.0 else epsilon((delta - claimed) / (1 - claimed))


# --- lossless conversion of Renyi-type claims into (epsilon, delta) ----------------------------


Floats = NDArray[np.float64]


class RenyiConversions(Claim):
    """Claim of bounds on Renyi divergences, converted to (epsilon, delta) without loss."""

    @abc.abstractmethod
    def renyi_orders(self, focus: Floats | None, spread: float) -> Floats:
        """Return the orders to use at each of v points of the boundary, shape (a, 1) or (a, v).

        `focus` holds orders whose constraints were active, shape (f, v). In the first call, `focus`
        is None. Return orders that are dense within a factor `spread` of `focus`, or a fixed set of
        orders.
        """

    @abc.abstractmethod
    def renyi_budget(self, orders: Floats) -> Floats:
        """Return the largest Renyi divergence that the claim allows at each order."""

    def _edge(self, logit_q: Floats, focus: Floats | None, spread: float) -> _Edge:
        orders = self.renyi_orders(focus, spread)
        logit_p, binding = _largest_p(logit_q, orders, self.renyi_budget(orders))
        return _Edge(logit_q, logit_p, binding)

    def _maximise(self, value: Callable[[Floats, Floats], Floats]) -> float:
        """Maximise ``value(logit_p, logit_q)`` over the event rates that the claim allows.

        Along the boundary, p is a concave function of q, and the maximised functions are unimodal.
        So repeated refinement of the best cells of a grid finds the maximum, whether the maximum is
        smooth or is the kink where two orders cross. If an order is omitted, the constraints become
        weaker. So the claim implies the result even if an order was omitted.
        """
        edge = _whole_boundary(self)
        for spread in (1.1, 1.05, 1.02, 1.01, 1.005, 1.002, 1.001):
            values = value(edge.logit_p, edge.logit_q)
            # Near delta = 1, the maximum is flat up to rounding and ends at a cliff. Stay in the
            # middle of the flat part.
            tops = np.flatnonzero(values >= values.max() - 1e-15 * abs(values.max()))
            top = int(tops[len(tops) // 2])
            low = edge.logit_q[max(top - 2, 0)]
            high = edge.logit_q[min(top + 2, len(edge.logit_q) - 1)]
            grid = np.linspace(low, high, 61)
            edge = self._edge(grid, edge.orders_at(grid), spread)
        return float(value(edge.logit_p, edge.logit_q).max())

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that the claim implies at `epsilon`."""
        epsilon = _validate.nonnegative(epsilon=epsilon)

        def excess(logit_p: Floats, logit_q: Floats) -> Floats:
            scaled_q = np.exp(np.minimum(special.log_expit(logit_q) + epsilon, 700.0))
            return np.asarray(special.expit(logit_p) - scaled_q)

        return min(max(self._maximise(excess), 0.0), 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that the claim implies at `delta`."""
        delta = _validate.delta(delta=delta)
        if delta == 0.0:
            return math.inf
        if delta == 1.0:
            return 0.0
        log_delta = math.log(delta)

        def loss(logit_p: Floats, logit_q: Floats) -> Floats:
            # log((p - delta) / q), and -inf if p does not reach delta
            log_p = special.log_expit(logit_p)
            log_spare = np.full(log_p.shape, -np.inf)
            use = log_p > log_delta
            log_spare[use] = log_p[use] + np.log(-np.expm1(log_delta - log_p[use]))
            return np.asarray(log_spare - special.log_expit(logit_q))

        return max(self._maximise(loss), 0.0)


@dataclass(frozen=True)
class _Edge:
    """Part of the boundary of the event rates that a claim allows, with the active orders.

    The first two fields, shape (v,), are logits of q (increasing) and of the largest p for each q.
    The third field, shape (2, v), is the order of the active constraint in each direction.
    """

    logit_q: Floats
    logit_p: Floats
    binding: Floats

    def orders_at(self, logit_q: Floats) -> Floats:
        """Interpolate the orders of the active constraints, shape (2, v)."""
        logs = [np.interp(logit_q, self.logit_q, np.log(row - 1)) for row in self.binding]
        return np.asarray(1 + np.exp(np.stack(logs)))


@functools.lru_cache(maxsize=64)
def _whole_boundary(claim: RenyiConversions) -> _Edge:
    """Return the whole boundary, with its orders, on a coarse grid.

    Every refinement starts on this grid.
    """
    grid = np.concatenate([-np.geomspace(1e6, 60.0, 140), np.arange(-59.5, 36.5, 0.5)])
    edge = claim._edge(grid, None, 1.0)
    for spread in (1.3, 1.05):
        edge = claim._edge(grid, edge.binding, spread)
    return edge


def _largest_p(logit_q: Floats, orders: Floats, budgets: Floats) -> tuple[Floats, Floats]:
    """Return the largest p (as a logit) that the claim allows for each q, by bisection.

    Also return the order of the active constraint in each direction, shape (2, v). Logits keep full
    relative precision for p and q near 0 and near 1.
    """
    log_q, log_not_q = special.log_expit(logit_q), special.log_expit(-logit_q)

    def excess(logit_p: Floats) -> tuple[Floats, Floats]:
        log_p, log_not_p = special.log_expit(logit_p), special.log_expit(-logit_p)
        forward = np.logaddexp(
            orders * log_p + (1 - orders) * log_q, orders * log_not_p + (1 - orders) * log_not_q
        )
        backward = np.logaddexp(
            orders * log_q + (1 - orders) * log_p, orders * log_not_q + (1 - orders) * log_not_p
        )
        scale = orders - 1
        return forward / scale - budgets, backward / scale - budgets

    low, high = logit_q.copy(), np.full_like(logit_q, 745.0)
    for _ in range(50):
        middle = (low + high) / 2
        forward, backward = excess(middle)
        allowed = np.maximum(forward.max(axis=0), backward.max(axis=0)) <= 0
        low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
    everywhere = np.broadcast_to(orders, (len(orders), len(logit_q)))
    binding = [
        np.take_along_axis(everywhere, side.argmax(axis=0)[None], axis=0)[0]
        for side in excess(high)
    ]
    return high, np.stack(binding)  # the rounding error makes p larger, which favours the claim


@dataclass(frozen=True, init=False)
class ApproxDP(Claim):
    """(epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float
        In [0, 1e100].
    delta : float
        In [0, 1].
    relation : Relation, optional
        Relation of the claim. Default: the relation of the audited pair.
    source : str, optional
        Name of the person or text that makes the claim.

    Notes
    -----
    The claim also implies guarantees at smaller epsilons. Every (e0, d0)-DP mechanism is
    post-processing of "reveal everything with probability d0, else randomised response at e0"
    (Kairouz, Oh and Viswanath 2015). So at e < e0, the claim implies delta(e) = ``d0 + (1 - d0)
    (exp(e0) - exp(e)) / (1 + exp(e0))``.

    Examples
    --------
    >>> claim = ApproxDP(epsilon=1.0, delta=1e-6)
    >>> claim.delta(1.0), claim.epsilon(1e-6)
    (1e-06, 1.0)
    >>> round(claim.delta(0.0), 4)  # total variation distance that it allows
    0.4621
    >>> claim.epsilon(1e-7)
    inf
    """

    notion: ClassVar[str] = "approx_dp"
    claimed_epsilon: float
    claimed_delta: float

    def __init__(
        self, epsilon: float, delta: float, relation: Relation | None = None, source: str = ""
    ) -> None:
        if _validate.nonnegative(epsilon=epsilon) > LARGEST_EPSILON:
            raise ArgumentError(
                f"epsilon must be a number in [0, {LARGEST_EPSILON:g}], got {epsilon!r}"
            )
        delta = _validate.delta(delta=delta)
        self._set(relation, source, claimed_epsilon=float(epsilon), claimed_delta=delta)

    @property
    def point(self) -> tuple[float, float]:
        """The claim itself, as a pair."""
        return self.claimed_epsilon, self.claimed_delta

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that the claim implies at `epsilon`."""
        epsilon = _validate.nonnegative(epsilon=epsilon)
        gap = epsilon - self.claimed_epsilon
        if gap >= 0:
            return self.claimed_delta
        # (exp(e0) - exp(e)) / (1 + exp(e0)), without overflow
        response = -math.expm1(gap) / (1 + math.exp(-self.claimed_epsilon))
        return self.claimed_delta + (1 - self.claimed_delta) * response

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that the claim implies at `delta`."""

        def response(spare: float) -> float:
            ratio = spare * (1 + math.exp(-self.claimed_epsilon))
            return max(self.claimed_epsilon + math.log1p(-ratio), 0.0) if ratio < 1 else 0.0

        return _at_remaining(delta, self.claimed_delta, response)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"epsilon": self.claimed_epsilon, "delta": self.claimed_delta}

    def __str__(self) -> str:
        return f"epsilon = {self.claimed_epsilon:g}, delta = {self.claimed_delta:g}"


@dataclass(frozen=True, init=False)
class PureDP(ApproxDP):
    """epsilon-differential privacy: :class:`ApproxDP` with delta = 0.

    Parameters
    ----------
    epsilon : float
        In [0, 1e100].
    relation, source
        As in :class:`ApproxDP`.

    Examples
    --------
    >>> PureDP(2.0).epsilon(0.0)
    2.0
    """

    notion: ClassVar[str] = "pure_dp"

    def __init__(self, epsilon: float, relation: Relation | None = None, source: str = "") -> None:
        super().__init__(epsilon, 0.0, relation, source)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"epsilon": self.claimed_epsilon}

    def __str__(self) -> str:
        return f"epsilon = {self.claimed_epsilon:g}"


@dataclass(frozen=True, init=False)
class GaussianDP(Claim):
    """mu-Gaussian differential privacy (Dong, Roth and Su 2022).

    Parameters
    ----------
    mu : float
        Finite, > 0. No pair of neighbours is easier to distinguish than N(0, 1) and N(mu, 1).
    relation, source
        As in :class:`ApproxDP`.

    Notes
    -----
    The curve is ``delta(e) = Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)`` (Corollary 2.13 of Dong,
    Roth and Su). This curve is also the exact privacy profile of the Gaussian mechanism with
    sensitivity / sigma = mu (Balle and Wang 2018).

    Examples
    --------
    >>> claim = GaussianDP(1.0)
    >>> round(claim.delta(1.0), 6)
    0.126937
    >>> round(claim.epsilon(1e-5), 4)
    4.3772
    """

    notion: ClassVar[str] = "gaussian_dp"
    mu: float

    def __init__(self, mu: float, relation: Relation | None = None, source: str = "") -> None:
        self._set(relation, source, mu=_validate.positive(mu=mu))

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that the claim implies at `epsilon`."""
        epsilon = _validate.nonnegative(epsilon=epsilon)
        mu = self.mu
        log_first = special.log_ndtr(mu / 2 - epsilon / mu)
        log_second = epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
        if log_second >= log_first:  # far in the tail, the two terms are equal up to rounding
            return 0.0
        return float(math.exp(log_first) * -math.expm1(log_second - log_first))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that the claim implies at `delta`."""
        delta = _validate.delta(delta=delta)
        if delta == 0.0:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if math.isinf(high):
                return math.inf  # larger than any double
        root = scipy.optimize.brentq(
            lambda e: self.delta(e) - delta, 0.0, high, xtol=1e-13, rtol=1e-14
        )
        return float(root)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"mu": self.mu}

    def __str__(self) -> str:
        return f"mu = {self.mu:g} (Gaussian DP)"


@dataclass(frozen=True, init=False)
class RenyiDP(RenyiConversions):
    """Renyi differential privacy at one or several orders (Mironov 2017).

    Parameters
    ----------
    alpha : float or sequence of float
        One order or several orders, each finite and > 1, and all distinct.
    epsilon : float or sequence of float
        Largest Renyi divergence at each order, in nats. Each value is finite and > 0.
    relation, source
        As in :class:`ApproxDP`.

    Examples
    --------
    >>> claim = RenyiDP(alpha=[2.0, 8.0], epsilon=[0.5, 2.0])
    >>> [round(claim.epsilon(delta), 4) for delta in (1e-5, 1e-2)]
    [3.2141, 2.2266]
    >>> claim.epsilon(1e-2) < RenyiDP(8.0, 2.0).epsilon(1e-2)
    True
    """

    notion: ClassVar[str] = "renyi_dp"
    alphas: tuple[float, ...]
    claimed_divergences: tuple[float, ...]

    def __init__(
        self,
        alpha: float | Sequence[float],
        epsilon: float | Sequence[float],
        relation: Relation | None = None,
        source: str = "",
    ) -> None:
        alphas = tuple(_validate.positive(alpha=a) for a in np.atleast_1d(alpha).tolist())
        budgets = tuple(_validate.positive(epsilon=e) for e in np.atleast_1d(epsilon).tolist())
        if not alphas or min(alphas) <= 1 or len(set(alphas)) != len(alphas):
            raise ArgumentError(f"alpha must hold distinct finite orders > 1, got {alpha!r}")
        if len(alphas) != len(budgets):
            raise ArgumentError(
                f"alpha and epsilon must have the same length, got lengths {len(alphas)} and "
                f"{len(budgets)}"
            )
        self._set(relation, source, alphas=alphas, claimed_divergences=budgets)

    def renyi_orders(self, focus: Floats | None, spread: float) -> Floats:
        """Return the claimed orders; `focus` is ignored."""
        return np.array(self.alphas)[:, None]

    def renyi_budget(self, orders: Floats) -> Floats:
        """Return the claimed divergences."""
        return np.array(self.claimed_divergences)[:, None]

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"alpha": list(self.alphas), "renyi_epsilon": list(self.claimed_divergences)}

    def __str__(self) -> str:
        if len(self.alphas) == 1:
            order, divergence = self.alphas[0], self.claimed_divergences[0]
            return f"epsilon = {divergence:g} at order alpha = {order:g} (Renyi DP)"
        orders = f"{len(self.alphas)} orders from {self.alphas[0]:g} to {self.alphas[-1]:g}"
        return f"Renyi DP at {orders}"


@dataclass(frozen=True, init=False)
class ZeroConcentratedDP(RenyiConversions):
    """rho-zero-concentrated differential privacy (Bun and Steinke 2016).

    The Renyi divergence of every order alpha > 1 is at most ``rho * alpha``.

    Parameters
    ----------
    rho : float
        Finite, > 0.
    relation, source
        As in :class:`ApproxDP`.

    Examples
    --------
    >>> claim = ZeroConcentratedDP(rho=0.5)
    >>> gaussian = GaussianDP(mu=1.0)  # the Gaussian mechanism that keeps the claim
    >>> textbook = 0.5 + 2 * (0.5 * 11.512925) ** 0.5  # rho + 2 sqrt(rho log(1 / delta))
    >>> gaussian.epsilon(1e-5) < claim.epsilon(1e-5) < textbook
    True
    """

    notion: ClassVar[str] = "zcdp"
    rho: float

    def __init__(self, rho: float, relation: Relation | None = None, source: str = "") -> None:
        self._set(relation, source, rho=_validate.positive(rho=rho))

    def renyi_orders(self, focus: Floats | None, spread: float) -> Floats:
        """Return orders across (1, inf) that are denser near `focus`."""
        coarse = np.geomspace(1e-4, 1e7, 89)[:, None]
        if focus is None:
            return np.asarray(1 + coarse)
        near = (focus - 1) * np.geomspace(1 / spread, spread, 15)[:, None, None]
        everywhere = np.broadcast_to(coarse[::6], (len(coarse[::6]), focus.shape[1]))
        return np.asarray(1 + np.concatenate([everywhere, near.reshape(-1, focus.shape[1])]))

    def renyi_budget(self, orders: Floats) -> Floats:
        """Return ``rho * orders``."""
        return self.rho * orders

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"rho": self.rho}

    def __str__(self) -> str:
        return f"rho = {self.rho:g} (zero-concentrated DP)"


# --- concentrated differential privacy, except for events of small probability -----------------


@dataclass(frozen=True, init=False)
class ApproxZCDP(Claim):
    """delta-approximate rho-zero-concentrated differential privacy.

    For any two neighbours, each of the two output distributions has an event of probability at
    least ``1 - delta``. Conditional on these events, the Renyi divergence of every order alpha > 1
    is at most ``rho * alpha`` in both directions (Bun and Steinke 2016, Definition 8.1).

    Parameters
    ----------
    rho : float
        Finite, > 0.
    delta : float
        Largest probability of the complement of these events, in [0, 1].
    relation, source
        As in :class:`ApproxDP`.

    Notes
    -----
    The lossless curve is ``delta(e) = d + (1 - d) z(e)``, where z is the curve of rho-zCDP. The
    claim implies this delta, because the complement of the events has probability at most d, and
    any output outside the events may reveal everything. The claim implies no smaller delta. For
    example, a mechanism that reveals everything with probability d, and otherwise attains z at e,
    keeps the claim.

    Examples
    --------
    >>> claim = ApproxZCDP(rho=0.5, delta=1e-6)
    >>> exact = ZeroConcentratedDP(rho=0.5)
    >>> claim.epsilon(1e-5) > exact.epsilon(1e-5)
    True
    >>> claim.epsilon(1e-7)
    inf
    """

    notion: ClassVar[str] = "approx_zcdp"
    rho: float
    claimed_delta: float

    def __init__(
        self, rho: float, delta: float, relation: Relation | None = None, source: str = ""
    ) -> None:
        rho, delta = _validate.positive(rho=rho), _validate.delta(delta=delta)
        self._set(relation, source, rho=rho, claimed_delta=delta)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that the claim implies at `epsilon`."""
        inside = ZeroConcentratedDP(self.rho).delta(epsilon)
        return self.claimed_delta + (1 - self.claimed_delta) * inside

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that the claim implies at `delta`."""
        return _at_remaining(delta, self.claimed_delta, ZeroConcentratedDP(self.rho).epsilon)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"rho": self.rho, "delta": self.claimed_delta}

    def __str__(self) -> str:
        return f"rho = {self.rho:g}, delta = {self.claimed_delta:g} (approximate zCDP)"
