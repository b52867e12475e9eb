"""Small realistic mistakes, one a mutant, for `python -m benchmarks.mutation`.

Each replaces a text that stands in its file exactly once; where a file changed and its text is
gone, `tests/test_mutation.py` fails and says which. Tests are those of the room, the exact ones
first, so that a mutant dies early.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Parameters
    ----------
    file : str
        Inside `dpaudit/`; its first part is the room.
    mistake : str
        What somebody did.
    old, new : str
        What stands there, and what the mistake makes of it.
    tests : tuple of str
        Files or tests that are run; one of them must fail.
    equivalent : str
        Why no test can fail, where that is so.
    """

    file: str
    mistake: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def room(self) -> str:
        """The package in which it is planted."""
        return self.file.partition("/")[0]


JOINT = ("tests/stats/test_joint.py",)
RATES = ("tests/stats/test_divergence.py", "tests/stats/test_curves.py")
PAIRED = ("tests/stats/test_betting.py",)
PORTFOLIO = ("tests/events/test_portfolio.py", "tests/events/test_scores.py")
SCORES = ("tests/events/test_scores.py", "tests/events/test_portfolio.py")
FEATURES = ("tests/events/test_features.py",)
AUDIT = ("tests/engine/test_audit.py", "tests/engine/test_audit_input.py")
BETS = ("tests/engine/test_bets.py",)
MUTATION = ("tests/engine/test_mutation.py",)
EXACT = ("tests/engine/test_exact.py",)
ADDITIVE = ("tests/mechanisms/test_additive_noise.py", "tests/engine/test_additive_audits.py")
SAMPLER = ("tests/mechanisms/test_mechanisms.py", *AUDIT)
MECHANISMS = "tests/mechanisms/test_mutants_of_the_mechanisms.py"
INDEPENDENCE = (MECHANISMS, "tests/mechanisms/test_independence.py")
ROWS = "tests/ledger/test_mutants_of_the_ledger.py"
JUDGING = (ROWS, "tests/ledger/test_judging.py", "tests/ledger/test_ledger.py")
LEDGER = (
    ROWS,
    "tests/ledger/test_attempts.py",
    "tests/ledger/test_ledger.py",
    "tests/ledger/test_judging.py",
    "tests/ledger/test_paper.py",
)
STORE = ("tests/store",)
PAGE = ("tests/report/test_ledger_page.py",)
PORTFOLIOS = ("tests/neighbors/test_portfolio.py", "tests/engine/test_default_pairs.py")
ARMS = ("tests/search/test_arms.py", "tests/engine/test_search_audits.py")

MUTANTS = (
    # --- stats ---
    Mutant(
        "stats/joint.py",
        "the nuisance's intervals get the whole failure probability each, unpaid",
        "tail_prob = alpha * NUISANCE_SHARE / 4",
        "tail_prob = alpha",
        JOINT,
    ),
    Mutant(
        "stats/evidence.py",
        "critical counts are one too large",
        "np.ceil(n * x - 1e-9 * n - 1e-7), n + 1.0)",
        "np.ceil(n * x - 1e-9 * n - 1e-7) + 1, n + 1.0)",
        JOINT,
    ),
    Mutant(
        "stats/joint.py",
        "the region is cut at its outer corners instead of the inner ones",
        "likely, rare = [p[:-1][~chord]], [q[1:][~chord]]",
        "likely, rare = [p[1:][~chord]], [q[:-1][~chord]]",
        JOINT,
    ),
    Mutant(
        "stats/joint.py",
        "the gap of convexity is allowed, but not paid for",
        "solved = tail.solve(nodes, guesses, level - gap, grid_p)",
        "solved = tail.solve(nodes, guesses, level, grid_p)",
        JOINT,
    ),
    Mutant(
        "stats/joint.py",
        "the last block of counts is forgotten",
        "mass[:, -1] = np.where(upper[:, -1], outside[:, -1], 1 - outside[:, -1])",
        "mass[:, -1] = 0.0",
        JOINT,
    ),
    Mutant(
        "stats/proportions.py",
        "the complement forgets one side",
        "self.draws_right - self.hits_right,",
        "self.hits_right,",
        ("tests/stats/test_proportions.py",),
    ),
    Mutant(
        "stats/proportions.py",
        "an upper bound one success too low",
        "a = np.asarray(successes, dtype=float) + 1.0",
        "a = np.asarray(successes, dtype=float)",
        ("tests/stats/test_proportions.py",),
    ),
    Mutant(
        "stats/rates.py",
        "the likelier side is swapped",
        'ordered = counts if likelier == "left" else counts.swapped()',
        'ordered = counts if likelier == "right" else counts.swapped()',
        RATES,
    ),
    Mutant(
        "stats/rates.py",
        "epsilon is the best over the corners instead of the least",
        "return float(max(direct.min(), mirrored.min(), 0.0))\n",
        "return float(max(direct.max(), mirrored.max(), 0.0))\n",
        RATES,
    ),
    Mutant(
        "stats/rates.py",
        "delta is forgotten for the complement",
        "((p - delta, q), (1 - q - delta, 1 - p))",
        "((p - delta, q), (1 - q, 1 - p))",
        RATES,
    ),
    Mutant(
        "stats/divergence.py",
        "the excess counts deficits too",
        "return float(np.maximum(p - scaled_q, 0.0).sum())",
        "return float(np.abs(p - scaled_q).sum())",
        RATES,
    ),
    Mutant(
        "stats/divergence.py",
        "delta is forgotten in the inverse",
        "root = math.log((p_sum - delta) / q_sum)",
        "root = math.log(p_sum / q_sum)",
        RATES,
    ),
    Mutant(
        "stats/divergence.py",
        "a divergence of order alpha is divided by alpha",
        "return float(np.logaddexp.reduce(log_terms) / (alpha - 1))",
        "return float(np.logaddexp.reduce(log_terms) / alpha)",
        RATES,
    ),
    Mutant(
        "stats/paired.py",
        "bets that could lose more than all are kept",
        "admissible = (bets == 0) | (bets * worst <= 1.0)",
        "admissible = (bets == 0) | (bets * worst <= 2.0)",
        PAIRED,
    ),
    Mutant(
        "stats/paired.py",
        "the weights of the mixture are forgotten",
        "return log_sum(wealth + np.log(weights[admissible]))",
        "return log_sum(wealth)",
        PAIRED,
    ),
    Mutant(
        "stats/betting.py",
        "the search returns a point that it found too high",
        "            high, at_high = middle, value\n    return low",
        "            high, at_high = middle, value\n    return high",
        PAIRED,
    ),
    # --- events ---
    Mutant(
        "events/portfolio.py",
        "thresholds are chosen on the draws that taught the score",
        "rest = tuple(x[h:] for x, h in zip(encoded, halves, strict=True))",
        "rest = tuple(x[:h] for x, h in zip(encoded, halves, strict=True))",
        PORTFOLIO,
    ),
    Mutant(
        "events/event.py",
        "> for >= at the threshold",
        "above = scores >= self.threshold",
        "above = scores > self.threshold",
        PORTFOLIO,
    ),
    Mutant(
        "events/cuts.py",
        "the rates of the right are those of the left",
        "other = OTHER[likelier]\n        return (",
        "other = likelier\n        return (",
        PORTFOLIO,
    ),
    Mutant(
        "events/cuts.py",
        "the complement keeps the likelier side of the event",
        "likelier=side if as_is else OTHER[side],",
        "likelier=side,",
        PORTFOLIO,
    ),
    Mutant(
        "events/scores.py",
        "the likelihood ratio is a product",
        "np.log((a + 0.5) / (n_left + 0.5)) - np.log(",
        "np.log((a + 0.5) / (n_left + 0.5)) + np.log(",
        SCORES,
    ),
    Mutant(
        "events/scores.py",
        "a value not seen before counts as its neighbour",
        "index = np.where(seen[at] == values, at, len(seen))",
        "index = at",
        SCORES,
    ),
    Mutant(
        "events/scores.py",
        "an edge belongs to the bin above, not below",
        'index = np.searchsorted(edges, values, side="left")',
        'index = np.searchsorted(edges, values, side="right")',
        SCORES,
    ),
    Mutant(
        "events/features.py",
        "no answer is the first answer",
        "return np.where(hit.any(axis=1), hit.argmax(axis=1), np.nan)",
        "return hit.argmax(axis=1) * 1.0",
        FEATURES,
    ),
    Mutant(
        "events/features.py",
        "the last place is one too far",
        "hit.shape[1] - 1 - _first(",
        "hit.shape[1] - _first(",
        FEATURES,
    ),
    Mutant(
        "events/texts.py",
        "an unknown label becomes a known one",
        "np.where(self.hashes[at] == hashes, self.codes[at], -1.0)",
        "self.codes[at]",
        ("tests/events/test_encoding.py", "tests/events/test_texts.py"),
    ),
    Mutant(
        "events/expected.py",
        "the declines of p and q change places in the complement",
        "mirrored - np.hypot(decline_q, factor * decline_p)",
        "mirrored - np.hypot(decline_p, factor * decline_q)",
        ("tests/events",),
    ),
    Mutant(
        "events/bits.py",
        "a hypothesis that explains both sides is kept",
        "if not (max(rates) >= _ALWAYS and gap >= _GAP):",
        "if not max(rates) >= _ALWAYS:",
        ("tests/events/test_bits.py",),
    ),
    Mutant(
        "events/doubles.py",
        "subnormal doubles get the exponent of normal ones",
        "return significand, np.maximum(exponent, 1) - 1075.0",
        "return significand, exponent - 1075.0",
        ("tests/events/test_bits.py",),
    ),
    # --- engine ---
    Mutant(
        "engine/task.py",
        "the primary event gets the whole failure_prob",
        "PRIMARY_SHARE = 0.9",
        "PRIMARY_SHARE = 1.0",
        AUDIT,
    ),
    Mutant(
        "engine/counts.py",
        "failure_prob is not divided over the profile's events",
        "[left * (1 - PRIMARY_SHARE) / (events - 1)] * (events - 1)",
        "[left * (1 - PRIMARY_SHARE)] * (events - 1)",
        AUDIT,
    ),
    Mutant(
        "engine/counts.py",
        "exploration draws are used to certify",
        'parts = ("certify", self.at_coins[side])',
        'parts = ("explore", self.at_coins[side])',
        AUDIT,
    ),
    Mutant(
        "engine/counts.py",
        "the exploration draws are spent twice",
        "dict.fromkeys(_SIDES, task.draws - explored)",
        "dict.fromkeys(_SIDES, task.draws)",
        AUDIT,
    ),
    Mutant(
        "engine/counts.py",
        "guesses are told of draws beyond the coins",
        "hits[side] += np.where(is_beyond & needs_coins, 0, fired.sum(axis=1))",
        "hits[side] += fired.sum(axis=1)",
        ("tests/engine/test_outputs_split.py",),
    ),
    Mutant(
        "engine/counts.py",
        "guesses by rank are told of draws beyond the coins",
        "if task.is_small and not is_beyond:",
        "if task.is_small:",
        ("tests/engine/test_outputs_split.py",),
    ),
    Mutant(
        "engine/counts.py",
        "an event's rates are of fewer draws than it counts",
        "rest = isinstance(chosen, Event)",
        "rest = False",
        ("tests/engine/test_outputs_split.py",),
    ),
    Mutant(
        "engine/counts.py",
        "independence is watched, but not judged",
        "        check.judge()\n",
        "",
        ("tests/mechanisms/test_independence.py", "tests/engine/test_audit_input.py"),
    ),
    Mutant(
        "engine/counts.py",
        "the point of a curve stays where exploration saw it",
        "if task.claim.point is None and certified.any():",
        "if task.claim.point is None and not certified.any():",
        AUDIT,
    ),
    Mutant(
        "engine/explore.py",
        "the least promising pair is audited",
        "best = max(range(len(pairs)), key=lambda index: (values[index], -index))",
        "best = min(range(len(pairs)), key=lambda index: (values[index], -index))",
        ("tests/engine/test_audit_input.py", "tests/engine/test_audit.py"),
    ),
    Mutant(
        "engine/explore.py",
        "a seed label is dropped: all pairs are tried on one stream",
        'f"pilot {index}"',
        '"pilot 0"',
        AUDIT,
    ),
    Mutant(
        "engine/explore.py",
        "the draws on pairs that were given up are not counted",
        'draw(pair, more, "explore")), pilot * len(pairs) + more',
        'draw(pair, more, "explore")), more',
        AUDIT,
    ),
    Mutant(
        "engine/bets.py",
        "the wealth that refutes is a logarithm to base 10",
        "self.refuted_at = -math.log(task.failure_prob)",
        "self.refuted_at = -math.log10(task.failure_prob)",
        BETS,
    ),
    Mutant(
        "stats/wagers.py",
        "bets are not paid for",
        "price = 2 * np.log(np.maximum(bound / 2, 1.0))",
        "price = 0 * np.log(np.maximum(bound / 2, 1.0))",
        ("tests/stats/test_wagers.py",),
    ),
    Mutant(
        "stats/wagers.py",
        "the bound of a bet forgets e^epsilon",
        "((a, (-k, theta * m, none)), (b, (theta * k, -m, none)))",
        "((a, (-k, m, none)), (b, (k, -m, none)))",
        ("tests/stats/test_wagers.py",),
    ),
    Mutant(
        "stats/guesses.py",
        "all of failure_prob is spent twice",
        "lower_rates(counts.correct, counts.guesses, alpha * (1 - SHARE_OF_GUESSING))",
        "lower_rates(counts.correct, counts.guesses, 2 * alpha)",
        ("tests/stats/test_guesses.py",),
    ),
    Mutant(
        "stats/ranked.py",
        "told draws are forgotten",
        "told = stats.binom.pmf(np.arange(most + 1), draws, delta)",
        "told = np.ones(1)",
        ("tests/stats/test_ranked.py",),
    ),
    Mutant(
        "stats/ranked.py",
        "the walk goes on where it crossed",
        "mass, before = mass[:height], k",
        "before = k",
        ("tests/stats/test_ranked.py",),
    ),
    Mutant(
        "engine/bets.py",
        "every bet stakes the whole wealth",
        "special.logsumexp(grown + shares, axis=0)",
        "special.logsumexp(grown, axis=0)",
        BETS,
    ),
    Mutant(
        "engine/bets.py",
        "the claim falls with the level below it",
        "if self.refused <= self.claim_level or",
        "if self.refused < self.claim_level or",
        BETS,
    ),
    Mutant(
        "engine/counts.py",
        ">= for >: what meets its claim exactly is refuted",
        "refuted = epsilons[for_epsilon] > point[0] or deltas[for_delta] > point[1]",
        "refuted = epsilons[for_epsilon] >= point[0] or deltas[for_delta] >= point[1]",
        AUDIT,
    ),
    Mutant(
        "engine/judging.py",
        "silence without a mutant is NOT REFUTED",
        'return Verdict.NO_POWER, f"{nothing}, and {why}"',
        'return Verdict.NOT_REFUTED, f"{nothing}, and {why}"',
        AUDIT,
    ),
    Mutant(
        "engine/judging.py",
        "an audit that killed nothing has power",
        'return Verdict.NO_POWER, f"{nothing}, but {every}{unseen}"',
        'return Verdict.NOT_REFUTED, f"{nothing}, but {every}{unseen}"',
        MUTATION,
    ),
    Mutant(
        "engine/judging.py",
        "a mutant that was given may survive",
        "if m.is_given and not m.killed]",
        "if m.is_given and m.note]",
        MUTATION,
    ),
    Mutant(
        "engine/mutation.py",
        "a mutant draws the mechanism's noise again",
        'role = f"mutant {self.index} round {self.rounds}"',
        'role = "mechanism"',
        AUDIT,
    ),
    Mutant(
        "engine/mutation.py",
        "every mutant gets the whole failure_prob",
        "each = task.failure_prob / len(made.mutants)",
        "each = task.failure_prob",
        MUTATION,
    ),
    Mutant(
        "engine/mutation.py",
        "every look at a mutant gets its whole failure_prob",
        "failure_prob=each / LOOKS, is_brief",
        "failure_prob=each, is_brief",
        MUTATION,
    ),
    Mutant(
        "engine/mutation.py",
        "a look at a mutant gets twice the budget",
        "draws=min(draws, self.task.draws), sequential=False",
        "draws=2 * draws, sequential=False",
        (*AUDIT, *MUTATION),
    ),
    Mutant(
        "engine/mutation.py",
        "a mutant that changed nothing counts as a survivor",
        "if found is not None and not found.refuted and not mutant.has_effect:",
        "if False:",
        MUTATION,
    ),
    Mutant(
        "results/mutants.py",
        "a noise is noticed where any of its mutants was killed",
        "judged = [m for m in mutants if m.certain and m.fate is not Fate.NOT_RUN]",
        "judged = [m for m in mutants if m.fate is not Fate.NOT_RUN]",
        ("tests/results/test_mutants.py",),
    ),
    Mutant(
        "mutants/treatments.py",
        "halved is a third",
        "half = (drawn - centre) / 2",
        "half = (drawn - centre) / 3",
        ("tests/mutants/test_treatments.py",),
    ),
    Mutant(
        "mutants/treatments.py",
        "the high end of integers is one too far",
        "np.asarray(high) - (not arguments",
        "np.asarray(high) - 0 * (not arguments",
        ("tests/mutants/test_treatments.py",),
    ),
    Mutant(
        "mutants/recorder.py",
        "what is stale takes the stream with it",
        "            bits.state = now\n",
        "            pass\n",
        ("tests/mutants/test_recorder.py",),
    ),
    Mutant(
        "mutants/recorder.py",
        "the call after the one that was meant is changed",
        "plan.only in (None, index)",
        "plan.only in (None, index + 1)",
        ("tests/mutants/test_recorder.py",),
    ),
    Mutant(
        "mutants/recorder.py",
        "a site is its innermost line alone",
        "            lines.append(_line(frame))\n",
        "            lines = lines or [_line(frame)]\n",
        ("tests/mutants/test_recorder.py",),
    ),
    Mutant(
        "mutants/sites.py",
        "steps are taken for loops over draws",
        "return calls > RUNS / 3 and numbers < RUNS / 3",
        "return numbers < RUNS / 3 or calls > 0",
        ("tests/mutants/test_noise.py",),
    ),
    Mutant(
        "mutants/code.py",
        "a function that was taken out is not put back",
        "                setattr(owner, key, self.target.original)\n            # A module",
        "                pass\n            # A module",
        ("tests/mutants/test_code.py",),
    ),
    Mutant(
        "mutants/code.py",
        "only the module that defines a function forgets it",
        "            for owner in _owners()\n",
        "            for owner in list(_owners())[:0] + [sys.modules[self.original.__module__]]\n",
        ("tests/mutants/test_code.py",),
    ),
    Mutant(
        "engine/auditing.py",
        "each variant of a slack frontier gets the whole failure_prob",
        "share = task.failure_prob / len(variants)",
        "share = task.failure_prob",
        ("tests/engine/test_slack.py",),
    ),
    Mutant(
        "engine/exact.py",
        "one direction only",
        'profile = np.maximum(deltas["left"], deltas["right"])',
        'profile = deltas["left"]',
        EXACT,
    ),
    Mutant(
        "engine/exact.py",
        "rounding refutes a claim that is kept exactly",
        "return bool(above_delta and epsilon > point[0] * (1 + 1e-9) + 1e-12)",
        "return bool(delta > point[1] or epsilon > point[0])",
        EXACT,
    ),
    Mutant(
        "engine/reach.py",
        "what an event would have shown is told at the whole failure_prob",
        "found.epsilon.failure_prob * found.share",
        "found.epsilon.failure_prob",
        ("tests/engine/test_reach.py",),
    ),
    Mutant(
        "engine/reach.py",
        "both sides have as many draws as the likelier one",
        "draws if draws_rare is None else draws_rare",
        "draws",
        ("tests/engine/test_reach.py",),
    ),
    Mutant(
        "engine/planning.py",
        "the bisection turns to the wrong half",
        "low, high = (low, middle) if enough(middle) else (middle, high)",
        "low, high = (middle, high) if enough(middle) else (low, middle)",
        ("tests/engine/test_planning.py",),
    ),
    Mutant(
        "engine/additive/plan.py",
        "failure_prob is not divided over the questions",
        "[(1 - FIRST_SHARE) / (len(targets) - 1)] * (len(targets) - 1)",
        "[1 - FIRST_SHARE] * (len(targets) - 1)",
        ADDITIVE,
    ),
    Mutant(
        "engine/additive/certify.py",
        "exploration centres are used to certify",
        'sampler.chunks(pair.left, certifying, "certify", "left", calls=calls)',
        'sampler.chunks(pair.left, certifying, "explore", "left", calls=calls)',
        ADDITIVE,
    ),
    Mutant(
        "engine/additive/certify.py",
        "nothing certified counts as the target",
        "return (epsilon, target.delta) if epsilon > 0 else (0.0, 0.0)",
        "return epsilon, target.delta",
        ADDITIVE,
    ),
    Mutant(
        "engine/additive/events.py",
        "the largest value in a ball is taken at its middle",
        "min(noise.largest(self.region, middle, radius) * (1 + 1e-7), 1.0)",
        "min(noise.largest(self.region, middle, 0.0) * (1 + 1e-7), 1.0)",
        ADDITIVE,
    ),
    Mutant(
        "engine/additive/exact.py",
        "the smallest shifts are kept instead of the largest",
        "few = np.sort(np.abs(shift))[-_FEW:]",
        "few = np.sort(np.abs(shift))[:_FEW]",
        ADDITIVE,
    ),
    # --- mechanisms ---
    Mutant(
        "mechanisms/sampler.py",
        "a seed label is dropped: every call draws the same noise",
        "outputs = self._call(data, size, role, side, index, side=side)",
        "outputs = self._call(data, size, role, side, side=side)",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/sampler.py",
        "the id of the audit is forgotten in its seed",
        "rng = generator(self._seed, *self._labels, *labels)",
        "rng = generator(self._seed, *labels)",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/sampler.py",
        "inf is allowed",
        "if self._finite and np.isinf(values).any():",
        "if self._finite and np.isinf(values).all():",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/independence.py",
        "the limit is a logarithm to base 10",
        "limit = math.log(4 / FALSE_REFUSAL)",
        "limit = math.log10(4 / FALSE_REFUSAL)",
        INDEPENDENCE,
    ),
    Mutant(
        "mechanisms/independence.py",
        "the stake is not shared by the forecasters",
        "special.logsumexp(np.logaddexp(self._grown(), kept))) - math.log(FORECASTERS)",
        "special.logsumexp(np.logaddexp(self._grown(), kept)))",
        INDEPENDENCE,
    ),
    Mutant(
        "mechanisms/watch.py",
        "the time that is left grows",
        "left = self.timeout - (time.perf_counter() - self.begun)",
        "left = self.timeout + (time.perf_counter() - self.begun)",
        (MECHANISMS, "tests/mechanisms/test_watch.py"),
    ),
    # --- ledger ---
    Mutant(
        "ledger/judging.py",
        "NaN breaks no exact claim",
        "broken = not lhs <= rhs",
        "broken = lhs > rhs",
        JUDGING,
    ),
    Mutant(
        "ledger/judging.py",
        "rounding breaks a claim",
        "return tight, left, right, tight > 1.0 + self.tolerance",
        "return tight, left, right, tight > 1.0",
        JUDGING,
    ),
    Mutant(
        "ledger/judging.py",
        "NaN is set aside",
        "return inequality if self.nan_breaks else None",
        "return None",
        JUDGING,
    ),
    Mutant(
        "ledger/falsifying.py",
        "a mutant that survives its own search is killed",
        "nan_breaks=False)).counterexample is not None",
        "nan_breaks=False)).judged > 0",
        LEDGER,
    ),
    Mutant(
        "ledger/falsifying.py",
        "the search leaves the unit cube",
        "return np.clip(there, 0.0, 1.0)",
        "return there",
        LEDGER,
    ),
    Mutant(
        "ledger/simplifying.py",
        "a simpler case need not break the claim",
        "if scratch.breaking is trial:",
        "if scratch.breaking is not None or trial:",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "a mutant that survived one attempt of several counts as killed",
        "if Power.SURVIVED in powers:",
        "if powers == {Power.SURVIVED}:",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "a claim holds though an attempt judged nothing",
        "if not on_it + readings or any(attempt.empty for attempt in on_it + readings):",
        "if not on_it + readings:",
        LEDGER,
    ),
    Mutant(
        "ledger/attempt.py",
        "neighbouring doubles have the ratio 1",
        "return max(found, math.nextafter(1.0, 2.0)) if lhs > rhs else found",
        "return found",
        JUDGING,
    ),
    Mutant(
        "ledger/rows.py",
        "a broken step of a proof refutes the statement",
        "return LedgerVerdict.HOLDS_PROOF_BROKEN",
        "return LedgerVerdict.REFUTED",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "edges count as attempts on the statement",
        "on_it = [attempt for attempt in attempts if attempt.role is Role.STATEMENT]",
        "on_it = [a for a in attempts if a.role in (Role.STATEMENT, Role.EDGE)]",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "an edge that does not fail is passed over",
        "if attempt.role is Role.EDGE and not attempt.violated:",
        "if attempt.role is Role.EDGE and attempt.empty:",
        LEDGER,
    ),
    Mutant(
        "ledger/premises.py",
        "what was attacked end to end rests on its premises",
        "for id in () if row.stands_alone else row.stated.premises:",
        "for id in row.stated.premises:",
        LEDGER,
    ),
    Mutant(
        "ledger/cases.py",
        "a mutant changes nothing",
        "return self.of(lambda **case: function(**{**case, **known}))",
        "return self.of(lambda **case: function(**{**known, **case}))",
        LEDGER,
    ),
    Mutant(
        "report/erratum.py",
        "the least harmful comes first",
        "harm = len(order) if row.harm is None else order.index(row.harm)",
        "harm = -1 if row.harm is None else -order.index(row.harm)",
        PAGE,
    ),
    Mutant(
        "ledger/attacks.py",
        "a frequency above what is allowed refutes, without a bound",
        "Counterexample(case, bound, allowed) if bound > allowed else None",
        "Counterexample(case, bound, allowed) if hits > allowed * draws else None",
        LEDGER,
    ),
    # --- store ---
    Mutant(
        "store/files.py",
        "an atomic write made direct",
        'handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")\n',
        "handle, temporary = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), str(path)\n",
        STORE,
    ),
    Mutant(
        "store/files.py",
        "a checksum is not compared",
        "if said != checksum_of(document):",
        "if said is None:",
        STORE,
    ),
    Mutant(
        "store/files.py",
        "NaN is allowed in files that are read",
        "parse_constant=_no_constant",
        "parse_constant=float",
        STORE,
    ),
    Mutant(
        "store/records.py",
        "the datasets of another result are believed",
        "if hashlib.sha256(content).hexdigest() != digest:",
        "if not content:",
        STORE,
    ),
    Mutant(
        "store/records.py",
        "two ids share a file",
        'return f"{clean}-{hashlib.sha256(id.encode()).hexdigest()[:8]}.json"',
        'return f"{clean}.json"',
        STORE,
    ),
    Mutant(
        "store/records.py",
        "half of what a function made is taken for all of it",
        'r.origin.get("records") == len(found) and accept(r)',
        "accept(r)",
        STORE,
    ),
    Mutant(
        "store/runs.py",
        "a probability beyond 1",
        "min(math.fsum(record.total_failure_prob for record in records), 1.0)",
        "math.fsum(record.total_failure_prob for record in records)",
        STORE,
    ),
    Mutant(
        "store/lock.py",
        "two runs take one lock",
        "os.O_CREAT | os.O_EXCL | os.O_WRONLY",
        "os.O_CREAT | os.O_WRONLY",
        STORE,
    ),
    Mutant(
        "store/lock.py",
        "the lock of a process that has ended is kept for ever",
        "    except ProcessLookupError:\n        return False",
        "    except ProcessLookupError:\n        return True",
        STORE,
    ),
    # --- neighbors, search ---
    Mutant(
        "neighbors/crowds.py",
        "halves of one parity only: the user never takes the median of an even number",
        "for below in sorted({others // 2, (others + 1) // 2}):",
        "for below in sorted({others // 2}):",
        PORTFOLIOS,
    ),
    Mutant(
        "neighbors/crowds.py",
        "users without data are forgotten",
        "    if missing:\n        drafts.append(_empty(crowd, scales[0]))\n",
        "",
        PORTFOLIOS,
    ),
    Mutant(
        "neighbors/around.py",
        "thresholds are tipped by two users",
        "(np.arange(crowd.n_users - 1) < count - 1)",
        "(np.arange(crowd.n_users - 1) < count - 2)",
        PORTFOLIOS,
    ),
    Mutant(
        "neighbors/portfolio.py",
        "data may leave the declared domain",
        "if data is not None and bool(((data < low) | (data > high)).any()):",
        "if data is None and bool(((data < low) | (data > high)).any()):",
        PORTFOLIOS,
    ),
    Mutant(
        "search/candidates.py",
        "steps are as wide in the last round as in the first",
        "return float(self._designs[arm] ** (-1.0 / dimension) / 2**halvings)",
        "return float(self._designs[arm] ** (-1.0 / dimension))",
        ARMS,
    ),
    Mutant(
        "search/halving.py",
        "finalists are judged on the draws that chose their events",
        "event = learn(left[:-fresh], right[:-fresh], goal, rng=rng).primary",
        "event = learn(left[-fresh:], right[-fresh:], goal, rng=rng).primary",
        ARMS,
    ),
    Mutant(
        "search/computed.py",
        "the first pair that was computed is taken for the worst",
        "best = best_first(known)[0]",
        "best = known[0]",
        ARMS,
    ),
)
