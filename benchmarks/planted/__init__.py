"""Small realistic mistakes for `benchmarks.mutation`, with one file for each package of dpaudit.

Each mutant replaces a text that occurs in its file exactly once. If a file changed and the text is
gone, `tests/test_mutation.py` fails and names the mutant. The tests of a mutant are those of its
package. The exact tests come first, so that a kill takes little time.
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

__all__ = ["MUTANTS", "PACKAGES", "Mutant"]

PACKAGES = {
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
"""The mutants of each package, from the bottom of the architecture to the top."""

MUTANTS = tuple(mutant for planted in PACKAGES.values() for mutant in planted)
