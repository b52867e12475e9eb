"""Small realistic mistakes, one a mutant, for `benchmarks.mutation`; a file for each room.

Each replaces a text that stands in its file exactly once; where a file changed and its text is
gone, `tests/test_mutation.py` fails and says which. Tests are those of the room, the exact ones
first, so that a mutant dies early.
"""

from benchmarks.planted import (
    base,
    data,
    engine,
    events,
    ledger,
    mechanisms,
    mutants,
    neighbors,
    properties,
    results,
    search,
    stats,
    store,
)
from benchmarks.planted.mutant import Mutant

__all__ = ["MUTANTS", "ROOMS", "Mutant"]

ROOMS = {
    "base": base.MUTANTS,
    "data": data.MUTANTS,
    "stats": stats.MUTANTS,
    "neighbors": neighbors.MUTANTS,
    "mechanisms": mechanisms.MUTANTS,
    "mutants": mutants.MUTANTS,
    "events": events.MUTANTS,
    "search": search.MUTANTS,
    "results": results.MUTANTS,
    "engine": engine.MUTANTS,
    "properties": properties.MUTANTS,
    "store": store.MUTANTS,
    "ledger": ledger.MUTANTS,
}
"""What is planted in each room, from the ground up."""

MUTANTS = tuple(mutant for planted in ROOMS.values() for mutant in planted)
