"""One page for a whole run, with everything in it: styles, script and figures.

The page asks nothing of the network, and says so to the browser by a content security policy.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from dpaudit.evidence import Estimate, at_least
from dpaudit.outcomes import OUTCOMES, outcome_of
from dpaudit.report import figures
from dpaudit.report.infos import number
from dpaudit.report.terminal import replay_command
from dpaudit.results import AuditResult
from dpaudit.store import AUDITS, REPORT, Run, file_name, write_atomic

_ASSETS = Path(__file__).parent / "assets"


def write_report(out: Path, run: Run, results: Sequence[AuditResult]) -> Path:
    """Write ``out/index.html`` atomically; see :func:`dpaudit.report.write_report`."""
    path = Path(out) / REPORT
    write_atomic(path, render(Path(out), run, results))
    return path


def render(out: Path, run: Run, results: Sequence[AuditResult]) -> str:
    """Return the page of a run as text.

    Parameters
    ----------
    out : Path
        Directory of the results, for the commands that replay them.
    run : Run
        What was asked for.
    results : sequence of AuditResult
        What was found.
    """
    environment = Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        least=least,
        words=_words,
        duration=_duration,
        breakable=_breakable,
        share=_share,
    )
    order = list(OUTCOMES)
    audits = [_audit(out, result, index) for index, result in enumerate(results, 1)]
    for again, audit in enumerate(audits):  # an id that occurs twice must not break the links
        if any(audit["anchor"] == other["anchor"] for other in audits[:again]):
            audit["anchor"] += f"-again{again}"
    tally = {key: sum(audit["kind"].key == key for audit in audits) for key in OUTCOMES}
    audits.sort(key=lambda audit: order.index(audit["kind"].key))
    script = (_ASSETS / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        run=run,
        started=_moment(run.started),
        audits=audits,
        kinds=[kind for kind in OUTCOMES.values() if tally[kind.key] or kind.common],
        tally=tally,
        # Files of the project, not of a user: the only text that is not escaped.
        style=Markup((_ASSETS / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=digest,
    )


def _audit(out: Path, result: AuditResult, index: int) -> dict[str, Any]:
    """Gather what the template shows of one audit."""
    file = file_name(result.id)
    plots = (
        (figures.plot_profile, "Privacy profile", _profile_words(result)),
        (figures.plot_histogram, "Where the outputs fall", _histogram_words(result)),
        (figures.plot_power, "Power", "The mechanism and its broken twin, on the same claim."),
    )
    pictures = [
        {
            "title": title,
            "caption": words,
            "svg": inline_svg(figures.to_svg(plot(result)), f"f{index}{letter}", title),
        }
        for letter, (plot, title, words) in zip("abc", plots, strict=True)
    ]
    return {
        "result": result,
        "kind": outcome_of(result),
        "anchor": f"audit-{file.removesuffix('.json')}",
        "file": f"{AUDITS}/{file}",
        "replay": replay_command(result, Path(_relative(out))),
        "alone": replay_command(result) if "path" in result.origin else "",
        "note": _note(result),
        "certified": beside(result.certified_epsilon, result.claimed_epsilon),
        "ratio": _ratio(result.certified_epsilon, result.claimed_epsilon),
        "chance": _chance(result),
        "upper": _upper,
        "pictures": pictures,
    }


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
    return notes.get(outcome_of(result).key)


def _profile_words(result: AuditResult) -> str:
    if result.failure_prob == 0:
        return "Delta that the mechanism needs at each epsilon, and what the claim allows."
    return (
        "The mechanism's true curve lies nowhere below the certified one, except with probability "
        f"at most {number(result.failure_prob)}. Where that rises above the claimed one, the "
        "claim is violated."
    )


def _histogram_words(result: AuditResult) -> str:
    words = "The event behind the certified numbers is shaded."
    if result.histogram.edges is not None:
        words += " The outermost bins hold all that lies beyond them."
    return words


def _upper(estimate: Estimate) -> str | None:
    """Return the upper bound in words when the audit has one."""
    nothing_known = estimate.upper == math.inf or estimate.upper >= 1.0 > estimate.lower
    return None if nothing_known or estimate.failure_prob == 0 else number(estimate.upper)


# --- figures inside a page ---------------------------------------------------------------------


def inline_svg(svg: str, prefix: str, title: str) -> Markup:
    """Make an SVG file fit to stand in a page beside others.

    Prolog, sizes and ids that nobody refers to are dropped, the other ids get `prefix`, colours
    become the variables of the page's theme, and coordinates lose digits that nobody sees.

    Parameters
    ----------
    svg : str
        A file of :func:`dpaudit.report.figures.to_svg`.
    prefix : str
        Different for every figure of the page.
    title : str
        Name of the figure for those who do not see it.
    """
    svg = svg[svg.index("<svg") :]
    box = re.search(r'viewBox="([^"]*)"', svg)
    body = svg[svg.index(">") + 1 :]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    body = re.sub(
        r' id="([^"]*)"',
        lambda match: f' id="{prefix}-{match[1]}"' if match[1] in used else "",
        body,
    )
    body = re.sub(r'xlink:href="#', f'href="#{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r' d="([^"]*)"', lambda match: f' d="{_path(match[1])}"', body)
    for role, colour in figures.COLOURS.items():
        body = body.replace(colour, f"var(--{role})")
    body = re.sub(r">\s+<", "><", body)
    view = box[1] if box else "0 0 331 223"
    return Markup(f'<svg viewBox="{view}" role="img" aria-label="{escape(title)}">{body}')


def _path(data: str) -> str:
    short = re.sub(r"-?\d+\.\d+", lambda match: f"{float(match[0]):.1f}", data)
    return " ".join(short.split())


# --- words -------------------------------------------------------------------------------------


def least(bound: float) -> str:
    """Return a certified lower bound in few digits, rounded down: more was not certified."""
    return number(float(at_least(bound)))


def beside(certified: float, claimed: float) -> str:
    """Return a certified number, with as many digits as it takes to tell it from the claimed one.

    Examples
    --------
    >>> beside(1.23456, 1.0), beside(1.0000012, 1.0)
    ('1.234', '1.0000012')
    """
    words = least(certified)
    if certified != claimed and words == number(claimed):
        for digits in range(5, 13):
            longer = f"{certified:.{digits}g}"
            if longer != f"{claimed:.{digits}g}":
                return f"{certified:.{digits + 1}g}"
    return words


def _ratio(certified: float, claimed: float) -> float:
    """Length of the bar in the table: the claim stands at one half, twice the claim is the end."""
    if claimed == 0 or certified == math.inf:
        return 1.0 if certified > claimed else 0.0
    return min(certified / claimed, 2.0) / 2


def _chance(result: AuditResult) -> str:
    if result.failure_prob == 0:
        return f"{result.epsilon.method}: nothing is left to chance"
    return (
        f"all of it together wrong with probability at most {number(result.failure_prob)}; "
        f"{result.epsilon.method}"
    )


def _words(value: int) -> str:
    return f"{value:,}".replace(",", "\u202f")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.4g}" if whole else "0"


def _duration(seconds: float) -> str:
    """Return a time span as people say it.

    Examples
    --------
    >>> _duration(0.42), _duration(134.7), _duration(7384)
    ('0.42 s', '2 min 15 s', '2 h 3 min')
    """
    if seconds < 0.01:
        return "less than 0.01 s"
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _moment(text: str) -> str:
    """Return an ISO moment as people write it; any other text as it is."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = f" {moment.tzname()}" if moment.tzinfo is not None else ""
    return f"{moment.day} {moment:%B %Y, %H:%M}{zone}"


def _breakable(text: str) -> Markup:
    """Allow a line break after the joints of a long name."""
    parts = re.split(r"(?<=[_,:/(\[-])(?=[^\s_:])", str(text))
    return Markup("<wbr>").join(escape(part) for part in parts)


def _relative(path: Path) -> str:
    """Return a path as it is typed from the working directory."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_posix()
