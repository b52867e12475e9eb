"""Mechanisms: calls, checks of their contract, additive noise, and training runs."""

from dpaudit.mechanisms.additive import AdditiveNoise, slack
from dpaudit.mechanisms.children import ChildError, in_child, limit_memory
from dpaudit.mechanisms.command import Command
from dpaudit.mechanisms.composition import Composition, Step, is_computed
from dpaudit.mechanisms.imports import (
    PACKAGE,
    SELF,
    Dependencies,
    dependencies,
    is_installed,
    is_own,
)
from dpaudit.mechanisms.independence import (
    SUSPICION,
    Call,
    IndependenceCheck,
    is_constant,
    same_draws,
)
from dpaudit.mechanisms.interactive import (
    LEVELS,
    NOT_UPDATED,
    STATE_FAULTS,
    Fault,
    Interactive,
    Strategy,
)
from dpaudit.mechanisms.kept import Kept, code_digest, source_bytes
from dpaudit.mechanisms.local import Longitudinal, Shuffled, Summed
from dpaudit.mechanisms.observed import Observed, may_be_sequential
from dpaudit.mechanisms.one_draw import OneDraw, Scored, one_draw
from dpaudit.mechanisms.outcomes import (
    LateFailure,
    Outcomes,
    Unbound,
    as_array,
    as_rows,
    joined,
    kind_of,
    words_of_draws,
)
from dpaudit.mechanisms.protocols import (
    ExactMechanism,
    SampledMechanism,
    counts_changes,
    generator,
    global_generators_kept,
    is_seeded,
    mechanism_name,
    needed,
    seed_of,
    unseeded,
)
from dpaudit.mechanisms.released import Released
from dpaudit.mechanisms.sampler import CALLS, Sampler
from dpaudit.mechanisms.sampling import Sampling
from dpaudit.mechanisms.sql import SQL
from dpaudit.mechanisms.subprocess import Subprocess
from dpaudit.mechanisms.training import DPSGD
from dpaudit.mechanisms.watch import TIME_IS_OVER, Watch
from dpaudit.mechanisms.workers import (
    Cluster,
    Processes,
    Workers,
    check_scheduler,
    checked_workers,
    working,
)

__all__ = [
    "CALLS",
    "DPSGD",
    "LEVELS",
    "NOT_UPDATED",
    "PACKAGE",
    "SELF",
    "SQL",
    "STATE_FAULTS",
    "SUSPICION",
    "TIME_IS_OVER",
    "AdditiveNoise",
    "Call",
    "ChildError",
    "Cluster",
    "Command",
    "Composition",
    "Dependencies",
    "ExactMechanism",
    "Fault",
    "IndependenceCheck",
    "Interactive",
    "Kept",
    "LateFailure",
    "Longitudinal",
    "Observed",
    "OneDraw",
    "Outcomes",
    "Processes",
    "Released",
    "SampledMechanism",
    "Sampler",
    "Sampling",
    "Scored",
    "Shuffled",
    "Step",
    "Strategy",
    "Subprocess",
    "Summed",
    "Unbound",
    "Watch",
    "Workers",
    "as_array",
    "as_rows",
    "check_scheduler",
    "checked_workers",
    "code_digest",
    "counts_changes",
    "dependencies",
    "generator",
    "global_generators_kept",
    "in_child",
    "is_computed",
    "is_constant",
    "is_installed",
    "is_own",
    "is_seeded",
    "joined",
    "kind_of",
    "limit_memory",
    "may_be_sequential",
    "mechanism_name",
    "needed",
    "one_draw",
    "same_draws",
    "seed_of",
    "slack",
    "source_bytes",
    "unseeded",
    "words_of_draws",
    "working",
]
