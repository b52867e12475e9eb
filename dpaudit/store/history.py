"""The history of a project: one line for each audit of each run, with its evidence.

A release gate audits the same claim many times. A single run bounds its own error, and the errors
of many runs add up. A history bounds the error of all runs together.

**Theorem.** A *stream* is the sequence of runs of one audit with one claim, one code and J bets,
each of which gives an e-value. Let ``E_j(r)`` be the e-value of bet j in run r. Suppose that the
mechanism satisfies the claim. The draws of run r are independent of all earlier draws of the audit,
because no earlier run of the audit had its seed. The bets are chosen before the certifying draws.
So the mean of ``E_j(r)``, given all earlier runs of the audit, is at most 1. Then ``W(r) = mean_j
E_j(1) ... E_j(r)`` is a non-negative supermartingale that starts at 1. By Ville's inequality, W
*ever* reaches ``1 / a`` with probability at most a. The number of runs does not matter, nor when
somebody reads the history.

Let the streams of one audit be numbered v = 1, 2, ... by their first run. A new code, a new claim
or another number of bets starts a new stream. Stream v gets the level ``a_v = failure_prob / (v (v
+ 1))``, which is fixed before its first draw. These levels sum to failure_prob, because ``1 / (v (v
+ 1)) = 1 / v - 1 / (v + 1)``. By the union bound, the history *ever* refutes a claim of this audit
that holds with probability at most failure_prob, for any number of codes and runs. If failure_prob
changes, the largest one bounds it.

**Pairs.** A run may choose its pair, its event and its bets in any way from its exploration draws
and from earlier runs. Given these choices, the mean is still at most 1, because the claim holds for
every pair.

**Seeds.** Two runs of one audit with the same seed have dependent draws, whatever their codes,
claims and other settings are. What the first run shows may decide whether the second run is made.
So only the first run with a seed counts. A mechanism that ignores its generator may repeat its
draws although the seed is new, so its runs have no hash of their code and are not combined.

**Codes.** The hash of the code need not see every change. If it misses a change, the refutation
says that at least one of the versions in the stream violates the claim.

**Claims and pairs.** The hash of a claim holds its parameters and the name of its relation. It does
not hold the function of a metric or of a relation. If this function changes, or if an earlier run
used two datasets that are no neighbours, the earlier evidence says nothing about the new claim. In
this case, the audit needs a new name.

**Assumptions.** Every run of the audit that reached a verdict is in the file. No code and no claim
was chosen because of the draws of a seed that has no line yet. Whether a run reaches a verdict does
not depend on its certifying draws. (dpaudit itself refuses independent draws with probability at
most 1e-9.) An audit that ends in an error has no verdict and no line. Each line holds the checksum
of the line before, so a line that is removed, inserted or changed makes the file unreadable. The
checksums are no signatures. They do not detect that the last lines were cut off, or that somebody
wrote the whole file anew.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dpaudit import _json, _validate
from dpaudit._files import read_regular, write_atomic
from dpaudit.errors import StoreError
from dpaudit.results import Accumulated, AuditResult, LogEValue, Verdict, log_mean
from dpaudit.store.files import CHECKSUM, LARGEST_JSON, checksum_of

_BEFORE = "before"


@dataclass(frozen=True)
class HistoryLine:
    """One audit of one run.

    Parameters
    ----------
    audit : str
        Id of the audit.
    claim : str
        Hash of the claim at the pair of the run.
    words : str
        The claim in words.
    code : str
        Hash of the mechanism's code; "" if it has none, so that its runs cannot be combined.
    seed : int
        Root seed of the run.
    log_e_values : tuple of float
        Logarithms of the e-values of the bets. Empty if nothing was drawn.
    failure_prob : float
        Failure probability of the audit.
    spent : float
        Probability that any certified number of the result is wrong, with those of its mutants.
    verdict : Verdict
        Verdict of the run alone.
    version : str
        Version of dpaudit.
    made : str
        Start of the run: ISO 8601, UTC.
    """

    audit: str
    claim: str
    words: str
    code: str
    seed: int
    log_e_values: tuple[LogEValue, ...]
    failure_prob: _json.Probability
    spent: _json.Probability
    verdict: Verdict
    version: str
    made: str

    def __post_init__(self) -> None:
        if not self.failure_prob > 0:
            raise ValueError(f"failure_prob must be > 0, got {self.failure_prob!r}")

    @classmethod
    def of(cls, result: AuditResult, *, failure_prob: float, made: str = "") -> HistoryLine:
        """Return the line of a result.

        Parameters
        ----------
        result : AuditResult
            The result. Its origin holds the hash of the code.
        failure_prob : float
            Failure probability of each audit of the run.
        made : str, optional
            Start of the run.
        """
        claim = result.claim
        names = ["parameters"] if "parameters" in claim else ["epsilon", "delta"]
        known = {name: claim[name] for name in ("notion", "relation", *names)}
        return cls(
            audit=result.id,
            claim=checksum_of(_json.encode(known))[:16],
            words=claim["words"],
            code=str(result.origin.get("code", "")),
            seed=result.seed,
            log_e_values=result.log_e_values,
            failure_prob=failure_prob,
            spent=min(result.total_failure_prob, 1.0),
            verdict=result.verdict,
            version=result.diagnostics.versions.get("dpaudit", ""),
            made=made,
        )

    @property
    def stream(self) -> tuple[str, str, int]:
        """Claim, code and number of bets, which decide what may be combined within an audit."""
        return self.claim, self.code, len(self.log_e_values)

    @property
    def has_evidence(self) -> bool:
        """Whether the line has an e-value that may be combined with others."""
        return bool(self.log_e_values and self.code)


class History:
    """The lines of a history, in the order of the runs.

    Parameters
    ----------
    lines : iterable of HistoryLine
        The lines.
    """

    def __init__(self, lines: Iterable[HistoryLine] = ()) -> None:
        self.lines = tuple(lines)
        self._own: dict[str, list[HistoryLine]] = {}
        for line in self.lines:
            self._own.setdefault(line.audit, []).append(line)

    def accumulated(self, line: HistoryLine) -> Accumulated | None:
        """Return the evidence of the stream of a line, as if the line were the next one.

        None if the line has no evidence.
        """
        if not line.has_evidence:
            return None
        own = [*self._own.get(line.audit, ()), line]
        streams = list(dict.fromkeys(one.stream for one in own if one.has_evidence))
        version = streams.index(line.stream) + 1
        stream = [one for one in own if one.has_evidence and one.stream == line.stream]
        first: dict[int, HistoryLine] = {}
        for one in own:
            first.setdefault(one.seed, one)
        counted = [one for one in stream if first[one.seed] is one]
        level = math.log(version * (version + 1)) - math.log(stream[0].failure_prob)
        return Accumulated(
            runs=len(counted),
            version=version,
            log_e_value=max(_products(counted), default=0.0),
            refuted_at=level,
            counts=first[line.seed] is line,
        )

    @property
    def individual_error(self) -> float:
        """Probability that any certified number of the lines is wrong, by the union bound.

        Lines that may be combined, and that differ only in their dates, count once.
        """
        repeated = {replace(one, made="") for one in self.lines if one.has_evidence}
        others = [one for one in self.lines if not one.has_evidence]
        return min(math.fsum(one.spent for one in (*repeated, *others)), 1.0)

    @property
    def error(self) -> float:
        """Probability that the history ever refutes a claim that holds.

        Further runs and versions of the same audits do not increase this number, unless their
        failure_prob is larger.
        """
        most: dict[str, float] = {}
        for one in self.lines:
            if one.has_evidence:
                most[one.audit] = max(most.get(one.audit, 0.0), one.failure_prob)
        return min(math.fsum(most.values()), 1.0)


def _products(lines: Iterable[HistoryLine]) -> Iterator[float]:
    """Yield the logarithm of the mean of the products of all bets, after each run."""
    logs: tuple[float, ...] | None = None
    for line in lines:
        earlier = logs or (0.0,) * len(line.log_e_values)
        logs = tuple(map(sum, zip(earlier, line.log_e_values, strict=True)))
        yield log_mean(logs)


def read_history(path: str | os.PathLike[str]) -> tuple[History, str]:
    """Read a history, and return it with the checksum of its last line.

    A file that does not exist is an empty history.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    History
    str
        Checksum of the last line; "" for an empty history.

    Raises
    ------
    StoreError
        If a line is damaged, or does not follow the line before it.
    """
    path = _validate.path(path=path)
    try:
        content = read_regular(path, LARGEST_JSON)
    except FileNotFoundError:
        return History(), ""
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    lines, before = [], ""
    *whole, rest = content.split(b"\n")
    for number, text in enumerate([*whole, *([rest] if rest else [])], 1):
        try:
            if number > len(whole):
                raise ValueError("it is cut off")
            data = _json.loads(text)
            stored = data.pop(CHECKSUM, None) if isinstance(data, dict) else None
            if stored is None or stored != checksum_of(data):
                raise ValueError("it does not match its checksum")
            if data.pop(_BEFORE, None) != before:
                raise ValueError("a line before it was removed, inserted or changed")
            lines.append(_json.decode(HistoryLine, data))
        except ValueError as error:
            raise StoreError(
                f"{path}, line {number}, is damaged: {error}. Restore the file, or choose another "
                "file to begin a new history"
            ) from error
        before = stored
    return History(lines), before


def add_to_history(path: Path, lines: Iterable[HistoryLine]) -> tuple[History, str]:
    """Add lines to a history, completely or not at all.

    The caller holds the lock of the file (:func:`dpaudit.store.hold`).

    Returns
    -------
    History
        The history with the new lines.
    str
        Checksum of the last line.
    """
    history, before = read_history(path)
    if not (lines := list(lines)):
        return history, before
    text = ""
    for line in lines:
        data = {**_json.encode(line), _BEFORE: before}
        before = checksum_of(data)
        text += json.dumps({**data, CHECKSUM: before}, allow_nan=False) + "\n"
    old = read_regular(path, LARGEST_JSON) if path.exists() else b""
    content = old + text.encode()
    if len(content) > LARGEST_JSON:
        raise StoreError(
            f"cannot write {path}: it would have more than {LARGEST_JSON:,} bytes. Choose another "
            "file to begin a new history"
        )
    write_atomic(path, content)
    return History((*history.lines, *lines)), before
