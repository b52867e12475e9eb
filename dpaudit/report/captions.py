"""The pictures that say something of an audit, each with its title and its caption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from dpaudit.results import (
    AuditResult,
    Slack,
    charts,
    landscape_info,
    number,
    tradeoff_info,
)


@dataclass(frozen=True)
class Picture:
    """One picture of the page."""

    title: str
    caption: str
    svg: Markup


def pictures(result: AuditResult) -> list[Picture]:
    """Return the pictures that say something of this audit; what a user wrote is escaped."""
    plots: list[tuple[Callable[[AuditResult], str], str, str]] = [
        (charts.profile, "Privacy profile", _profile_words(result)),
        (charts.histogram, "Where the outputs fall", _histogram_words(result)),
    ]
    if tradeoff_info(result).informative:
        plots.append((charts.tradeoff, "Trade-off curve", _tradeoff_words(result)))
    if result.sequential is not None:
        plots.append((charts.wealth, "Wealth of the bet", _wealth_words(result)))
    if result.slack is not None:
        plots.append((charts.slack, "Slack of the noise", _slack_words(result.slack)))
    if result.search is not None:
        plots.append((charts.landscape, "The search", _landscape_words(result)))
    # The words of users are escaped where the picture is made.
    return [Picture(title, caption, Markup(draw(result))) for draw, title, caption in plots]


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
        said = (
            "The event behind the certified numbers is shaded."
            if result.witness.right is None
            else "Where left is guessed is shaded"
            + (", where right is guessed hatched." if result.histogram.inside_right else ".")
        )
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
