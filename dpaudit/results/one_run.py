"""What the coins of one run of a mechanism proved: plain data and its words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from dpaudit._json import LATER, decode, encode
from dpaudit.results.estimates import ClaimFacts
from dpaudit.results.rounding import at_least, at_most
from dpaudit.results.verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ONE_RUN_SCHEMA = 1


@dataclass(frozen=True)
class OneRunResult:
    """Everything that an audit in one run found.

    Each certified number, and a refutation, is wrong with probability at most ``failure_prob``,
    *each by itself*: somebody who reads many of them should divide it.

    Attributes
    ----------
    id : str
        Name of the audit.
    claim : dict
        ``notion, epsilon, delta, relation, source, words`` and the parameters of the notion.
    verdict : Verdict
        REFUTED or NO_POWER: one run has no mutants to show what it would have noticed.
    reason : str
        One sentence behind the verdict.
    canaries, included : int
        Coins that were thrown, and how many came up "included".
    side : {"both", "top"}
        Whether low scores were guessed "excluded" too.
    chosen : str
        How the number of guesses was chosen, in words.
    looks, correct, weights : tuple
        After how many guesses was looked, how many were right by then, and what each look counts.
    guesses, guessed_right : int
        At the look that shows most.
    failure_prob : float
        Of the verdict, and of each certified number.
    p_value : float
        Of the claim.
    delta : float
        At which the epsilon is certified.
    certified_epsilon : float
        Lower bound of the epsilon that the mechanism needs at `delta`.
    deltas, certified_epsilons : tuple of float
        The same over a grid.
    certified_mu : float or None
        For a claim of Gaussian DP: if the mechanism is mu-Gaussian-DP for some mu, then for none
        below this.
    conditional_epsilon : float or None
        *Conditional, not certified*: epsilon at `delta` of Gaussian DP with the certified mu.
    assumptions : tuple of str
        What nobody can check from scores and coins.
    versions : dict
        Of dpaudit, Python and the libraries that the numbers depend on.
    advice : str
        What to try next where nothing was refuted; empty where the claim was refuted.
    """

    id: str
    claim: Annotated[dict[str, Any], ClaimFacts]
    verdict: Verdict
    reason: str
    canaries: int
    included: int
    side: str
    chosen: str
    looks: tuple[int, ...]
    correct: tuple[int, ...]
    weights: tuple[float, ...]
    guesses: int
    guessed_right: int
    failure_prob: float
    p_value: float
    delta: float
    certified_epsilon: float
    deltas: tuple[float, ...]
    certified_epsilons: tuple[float, ...]
    certified_mu: float | None
    conditional_epsilon: float | None
    assumptions: tuple[str, ...]
    versions: dict[str, str] = field(repr=False)
    advice: str = field(default="", metadata=LATER)

    def __bool__(self) -> bool:
        raise TypeError(
            "a OneRunResult is no truth value: a refuted claim would pass `assert audit(...)`. "
            "Call result.assert_not_refuted(), or compare result.verdict"
        )

    def assert_not_refuted(self) -> None:
        """Raise ``AssertionError`` with the finding if the claim is refuted."""
        if self.verdict is Verdict.REFUTED:
            raise AssertionError(f"\n{self.summary()}")

    def summary(self) -> str:
        """Return the finding in a few lines."""
        source = f" ({self.claim['source']})" if self.claim["source"] else ""
        profile = ", ".join(
            f"{at_least(epsilon)} at {delta:g}"
            for epsilon, delta in zip(self.certified_epsilons, self.deltas, strict=True)
        )
        wrong = f"wrong with probability <= {self.failure_prob:g}"
        lines = [
            f"{self.verdict.words}  {self.id}",
            f"  claim      {self.claim['words']}{source}",
            f"  coins      {self.canaries:,} canaries in one run, {self.included:,} included",
            f"  guesses    {self.guessed_right:,} of {self.guesses:,} right; {self.chosen}",
            f"  certified  epsilon >= {at_least(self.certified_epsilon)} at delta = "
            f"{self.delta:g}; {wrong}",
            f"  profile    epsilon >= {profile} (each by itself)",
        ]
        if self.certified_mu is not None:
            lines.append(
                f"  family     if it is Gaussian DP, then mu >= {at_least(self.certified_mu)}"
            )
        if self.conditional_epsilon is not None and math.isfinite(self.conditional_epsilon):
            lines[-1] += f", hence epsilon >= {at_least(self.conditional_epsilon)} there"
        lines.append(f"  p-value    {at_most(self.p_value)}")
        lines.append(f"  reason     {self.reason}")
        lines += [f"  next       {self.advice}"] * bool(self.advice)
        lines += [f"  assumed    {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw epsilon over the number of guesses: estimated at each look, certified and claimed.

        An estimate is ``log(right / wrong)`` of the guesses so far and guarantees nothing; what is
        certified is of all looks together, and may stay below all of them. Needs matplotlib
        (the extra ``plot``).

        Returns
        -------
        Axes
            Of matplotlib, on a figure of its own that no window shows:
            ``result.plot().figure.savefig("run.svg")`` keeps it.
        """
        from dpaudit.results import charts, figures

        return figures.draw(charts.one_run(self), ax)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data; see :meth:`from_json`."""
        return {"schema": ONE_RUN_SCHEMA, **encode(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OneRunResult:
        """Rebuild a result from :meth:`to_json`; raises ``ValueError`` on anything else."""
        if data.get("schema") != ONE_RUN_SCHEMA:
            raise ValueError(f"schema must be {ONE_RUN_SCHEMA}, got {data.get('schema')!r}")
        result = decode(cls, {key: value for key, value in data.items() if key != "schema"})
        assert isinstance(result, cls)
        return result
