"""One page for a whole run, with everything in it: styles, script and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dpaudit.ledger import StatementResult
from dpaudit.report.ledger import counts, write_ledger
from dpaudit.report.page import fill, typed
from dpaudit.report.terminal import replay_command
from dpaudit.results import (
    STATUSES,
    AuditResult,
    Estimate,
    Slack,
    charts,
    landscape_info,
    least,
    number,
    search_words,
    tradeoff_info,
    words,
)
from dpaudit.store import AUDITS, REPORT, Run, file_name, write_atomic

_RENYI_ORDER = 2.0
_Plot = tuple[Callable[[AuditResult], str], str, str]


def write_report(
    out: Path,
    run: Run,
    results: Sequence[AuditResult],
    statements: Sequence[StatementResult] = (),
) -> Path:
    """Write ``out/index.html``: one page that needs no other file.

    Where there are statements, they get a page of their own, ``out/ledger.html``, linked from the
    first; where there are none, such a page of an earlier run is removed.

    Parameters
    ----------
    out : Path
        Directory of the run; made when it is missing.
    run : Run
        What was asked for.
    results : sequence of AuditResult
        What was found; may be empty.
    statements : sequence of StatementResult
        Rows of the ledger, in the order of their papers.

    Returns
    -------
    Path
        The written page.

    Raises
    ------
    StoreError
        When the page cannot be written; a page that was there before stays as it was.
    """
    path = Path(out) / REPORT
    write_ledger(out, run, statements)
    write_atomic(path, render(Path(out), run, results, statements))
    return path


def render(
    out: Path,
    run: Run,
    results: Sequence[AuditResult],
    statements: Sequence[StatementResult] = (),
) -> str:
    """Return the page of a run as text.

    Parameters
    ----------
    out : Path
        Directory of the results, for the commands that replay them.
    run : Run
        What was asked for.
    results : sequence of AuditResult
        What was found.
    statements : sequence of StatementResult
        Rows of the ledger, which are counted here and have a page of their own.
    """
    order = list(STATUSES)
    audits = [_audit(out, result) for result in results]
    for again, audit in enumerate(audits):  # an id that occurs twice must not break the links
        if any(audit["anchor"] == other["anchor"] for other in audits[:again]):
            audit["anchor"] += f"-again{again}"
    tally = {key: sum(audit["kind"].key == key for audit in audits) for key in STATUSES}
    audits.sort(key=lambda audit: order.index(audit["kind"].key))
    return fill(
        "report.html.j2",
        "report.css",
        run=run,
        started=words.moment(run.started),
        audits=audits,
        kinds=[kind for kind in STATUSES.values() if tally[kind.key] or kind.common],
        tally=tally,
        statements=counts(statements) if statements else None,
    )


def _audit(out: Path, result: AuditResult) -> dict[str, Any]:
    """Gather what the template shows of one audit."""
    file = file_name(result.id)
    return {
        "result": result,
        "kind": result.status,
        "anchor": f"audit-{file.removesuffix('.json')}",
        "file": f"{AUDITS}/{file}",
        "replay": replay_command(result, typed(out)),
        "alone": replay_command(result) if "path" in result.origin else "",
        "note": _note(result),
        "certified": words.beside(result.certified_epsilon, result.claimed_epsilon),
        "bound": words.beside(result.certified_epsilon, result.claimed_epsilon, sign="≥ "),
        "mutant": result.mutant
        and words.beside(result.mutant.certified_epsilon, result.claimed_epsilon),
        "mutant_bound": result.mutant
        and words.beside(result.mutant.certified_epsilon, result.claimed_epsilon, sign="≥ "),
        "ratio": _ratio(result.certified_epsilon, result.claimed_epsilon),
        "probability": _probability(result),
        "upper": _upper,
        "pictures": [
            {
                "title": title,
                "caption": caption,
                "svg": Markup(draw(result)),  # which escapes the words of users itself
            }
            for draw, title, caption in _plots(result)
        ],
        "languages": _languages(result),
        "search": result.search and search_words(result.search),
    }


def _plots(result: AuditResult) -> list[_Plot]:
    """Return plot, title and caption of the pictures that say something of this audit."""
    plots: list[_Plot] = [
        (charts.profile, "Privacy profile", _profile_words(result)),
        (charts.histogram, "Where the outputs fall", _histogram_words(result)),
        (charts.power, "Power", "The mechanism and its mutant, on the same claim."),
    ]
    if tradeoff_info(result).informative:
        plots.append((charts.tradeoff, "Trade-off curve", _tradeoff_words(result)))
    if result.sequential is not None:
        plots.append((charts.wealth, "Wealth of the bet", _wealth_words(result)))
    if result.slack is not None:
        plots.append((charts.slack, "Slack of the noise", _slack_words(result.slack)))
    if result.search is not None:
        plots.append((charts.landscape, "The search", _landscape_words(result)))
    return plots


def _note(result: AuditResult) -> str | None:
    """Say what the bare verdict leaves out."""
    notes = {
        "known": "Known violation kept as a demonstration.",
        "lost": (
            "Known violation kept as a demonstration, but it was not found again; the verdict "
            f"itself is {result.verdict.words}."
        ),
        "open": "Known violation kept as a demonstration; it needs a larger budget to be found.",
    }
    return notes.get(result.status.key)


def _slack_words(slack: Slack) -> str:
    found = slack.refuted_from
    fate = (
        "The claim stood at every multiple of the noise that was tried"
        if found is None
        else f"With {number(found)} times the noise the claim is refuted"
    )
    return f"{fate}, on the pair {slack.pair}. More noise than needed is slack of the analysis."


def _profile_words(result: AuditResult) -> str:
    if result.failure_prob == 0:
        return "Delta that the mechanism needs at each epsilon, and what the claim allows."
    said = (
        "The mechanism's true curve lies nowhere below the certified one, except with probability "
        f"at most {number(result.failure_prob)}. Where that rises above the claimed one, the "
        "claim is violated."
    )
    if result.long_profile is not None:
        said += " The estimated curve has two standard errors around it, which guarantee nothing."
    return said


def _histogram_words(result: AuditResult) -> str:
    if result.long_profile is not None and result.failure_prob > 0:
        said = (
            "Centres before the noise, which carries outputs into the event from elsewhere too; "
            "its probability is computed from each centre."
        )
    else:
        said = "The event behind the certified numbers is shaded."
    if result.histogram.edges is not None:
        said += " The outermost bins hold all that lies beyond them."
    return said


def _tradeoff_words(result: AuditResult) -> str:
    stretched = " Stretched about the corner of small type I errors." * tradeoff_info(result).log
    probability = f", except with probability at most {number(result.failure_prob)}"
    return (
        "Errors of the best test that tells left from right. The mechanism's true curve lies on or "
        f"below the band{probability if result.failure_prob > 0 else ''}; the claim promises one "
        f"on or above its own.{stretched}"
    )


def _wealth_words(result: AuditResult) -> str:
    return (
        "Wealth of a bet against the claim, made before each draw. If the claim holds, it ever "
        f"reaches the dashed line with probability at most {number(result.failure_prob)}, however "
        "often one looks."
    )


def _landscape_words(result: AuditResult) -> str:
    info = landscape_info(result)
    said = (
        "Each dot is a pair that was tried; what it is expected to certify is a guess from few "
        "draws."
    )
    if info.left_out:
        said += f" Not drawn: {', '.join(info.left_out)}."
    return said


def _languages(result: AuditResult) -> list[tuple[str, str]]:
    """Return what the same draws say in other languages: what is certified, and of what."""
    curves = result.curves
    if curves is None or curves.certified_mu <= 0:
        return []
    mu = result.claim.get("parameters", {}).get("mu")
    said = "" if mu is None else f" (claimed {number(mu)})"
    rows = [(f"mu ≥ {least(curves.certified_mu)}", f"of Gaussian DP{said}")]
    for order, bound in zip(curves.order, curves.certified_renyi, strict=True):
        if order == _RENYI_ORDER:
            rows.append(
                (f"Rényi divergence ≥ {least(bound)}", f"of order {number(order)}, in nats")
            )
    return rows


def _upper(estimate: Estimate) -> str | None:
    """Return the upper bound in words when the audit has one."""
    nothing_known = estimate.upper == math.inf or estimate.upper >= 1.0 > estimate.lower
    return None if nothing_known or estimate.failure_prob == 0 else number(estimate.upper)


# --- words -------------------------------------------------------------------------------------


def _ratio(certified: float, claimed: float) -> float:
    """Length of the bar in the table: the claim stands at one half, twice the claim is the end."""
    if claimed == 0 or certified == math.inf:
        return 1.0 if certified > claimed else 0.0
    return min(certified / claimed, 2.0) / 2


def _probability(result: AuditResult) -> str:
    if result.failure_prob == 0:
        return "nothing is left to chance"
    return f"all of it together wrong with probability at most {number(result.failure_prob)}"
