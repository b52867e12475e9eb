"""The table of the search for a pair."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dpaudit.results.words import count, number, plain_value
from dpaudit.search import SearchRecord, ranking

MAX_TRIALS = 10


def search_table(record: SearchRecord) -> dict[str, Any]:
    """Return the text about a search for a page: its cost, its best trials and its failures."""
    failed = [trial.note for trial in record.trials if not trial.valid]
    spent = count(record.draws_spent)
    cost = f"{len(record.trials)} trial{'s' * (len(record.trials) != 1)}, "
    cost += f"{spent} draws per dataset" if record.draws_spent else "computed"
    rows = []
    for rank, trial in enumerate(ranking(record, MAX_TRIALS), 1):
        values = [plain_value(trial.parameters.get(name, "")) for name in record.parameters]
        if record.is_portfolio:
            own = ", ".join(f"{k}={plain_value(value)}" for k, value in trial.parameters.items())
            values = [f"{trial.arm}: {own}" if own else trial.arm]
        expected, draws = number(trial.expected_epsilon), count(trial.draws)
        row = {"rank": rank, "parameters": values, "expected": expected, "draws": draws}
        rows.append({**row, "stage": trial.stage, "note": trial.note})
    return {
        "kind": "portfolio" if record.is_portfolio else "space",
        "space": record.space,
        "parameters": ["pair"] if record.is_portfolio else list(record.parameters),
        "cost": cost + f"; {len(failed)} gave no valid pair" * bool(failed),
        "draws": spent,
        "rows": rows,
        "notes": [f"{n} × {why}" for why, n in Counter(failed).most_common(3)],
    }
