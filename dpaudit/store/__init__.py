"""Results on disk: versioned, atomic, sealed, and never silently trusted."""

from dpaudit.store.files import write_atomic
from dpaudit.store.lock import Lock, hold
from dpaudit.store.records import (
    KINDS,
    Kind,
    Record,
    kind_of,
    load_finished,
    load_record,
    load_result,
    pack,
    pair_bytes,
    place_of,
    save_record,
    unpack,
)
from dpaudit.store.runs import (
    LEDGER,
    REPORT,
    RESULTS,
    Kept,
    Run,
    check_writable,
    family_wise_error,
    load_run,
    save_run,
)

__all__ = [
    "KINDS",
    "LEDGER",
    "REPORT",
    "RESULTS",
    "Kept",
    "Kind",
    "Lock",
    "Record",
    "Run",
    "check_writable",
    "family_wise_error",
    "hold",
    "kind_of",
    "load_finished",
    "load_record",
    "load_result",
    "load_run",
    "pack",
    "pair_bytes",
    "place_of",
    "save_record",
    "save_run",
    "unpack",
    "write_atomic",
]
