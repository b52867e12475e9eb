"""Results on disk.

The results are versioned, written atomically, sealed, and checked when they are read.
"""

from dpaudit._files import write_atomic
from dpaudit.store.history import History, HistoryLine, add_to_history, read_history
from dpaudit.store.journal import EARLIER, JOURNAL, append, drop_rerun
from dpaudit.store.lock import Lock, hold
from dpaudit.store.records import (
    AUDIT,
    Kind,
    Record,
    by_kind,
    extensions,
    is_same_pair,
    kind_of_record,
    kinds,
    load_finished,
    load_record,
    load_result,
    pack,
    pair_bytes,
    place_of,
    rows_of,
    save_packed,
    save_record,
    unpack,
)
from dpaudit.store.runs import (
    RESULTS,
    KeptRecord,
    StoredRun,
    check_writable,
    family_wise_error,
    load_frame,
    load_run,
    read_whole_run,
    save_run,
)

__all__ = [
    "AUDIT",
    "EARLIER",
    "JOURNAL",
    "RESULTS",
    "History",
    "HistoryLine",
    "KeptRecord",
    "Kind",
    "Lock",
    "Record",
    "StoredRun",
    "add_to_history",
    "append",
    "by_kind",
    "check_writable",
    "drop_rerun",
    "extensions",
    "family_wise_error",
    "hold",
    "is_same_pair",
    "kind_of_record",
    "kinds",
    "load_finished",
    "load_frame",
    "load_record",
    "load_result",
    "load_run",
    "pack",
    "pair_bytes",
    "place_of",
    "read_history",
    "read_whole_run",
    "rows_of",
    "save_packed",
    "save_record",
    "save_run",
    "unpack",
    "write_atomic",
]
