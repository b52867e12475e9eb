"""Mistakes planted in the making of mutants."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

_EDITS = ("tests/mutants/test_edits.py",)

MUTANTS = (
    Mutant(
        "mutants/edits.py",
        "changed code stays after a call",
        "for function, code in self.originals:",
        "for function, code in self.codes:",
        _EDITS,
    ),
    Mutant(
        "mutants/edits.py",
        "caches hide the code behind them",
        "        one.cache_clear()",
        "        pass",
        _EDITS,
    ),
    Mutant(
        "mutants/edits.py",
        "a mutant without effect is audited",
        'return NO_CHANGE if scores[best] == -math.inf else "", best',
        'return "", best',
        _EDITS,
    ),
    Mutant(
        "mutants/edits.py",
        "a mutant is audited on the first pair",
        "best = max(range(len(scores)), key=scores.__getitem__)",
        "best = 0",
        _EDITS,
    ),
    Mutant(
        "mutants/edits.py",
        "a file that changed is taken for the code",
        "_is_same(_compiled(module, code), code)",
        "_compiled(module, code) is not None",
        _EDITS,
    ),
    Mutant(
        "mutants/edits.py",
        "mutants run in this process",
        "note, best = in_child(lambda: trial.compared(changed, *known), limit=limit)",
        "note, best = trial.compared(changed, *known)",
        _EDITS,
    ),
    Mutant(
        "mutants/mistakes.py",
        "the test of an endless loop is changed",
        "endless = {part for test in loops for part in ast.walk(test)}",
        "endless: set[ast.AST] = set()",
        _EDITS,
    ),
    Mutant(
        "mutants/mistakes.py",
        "arguments of a removed call are not evaluated",
        "return ast.Subscript(ast.Tuple(parts, ast.Load()), at, ast.Load())",
        "return kept",
        _EDITS,
    ),
    Mutant(
        "mutants/mistakes.py",
        "all groups of a table are users",
        "return self.user in words or not any(isinstance(word, str) for word in words)",
        "return True",
        _EDITS,
    ),
    Mutant(
        "mutants/mistakes.py",
        "scales of other functions are not followed",
        "self.amounts.append(self.source_of(amount))",
        "pass",
        _EDITS,
    ),
    Mutant(
        "mutants/added.py",
        "every mechanism that draws Laplace noise is said to add it",
        "if kind == LAPLACE and scale is None:",
        "if kind == LAPLACE and not shifts.any():",
        ("tests/engine/test_reach.py",),
    ),
    Mutant(
        "mutants/added.py",
        "noise may depend on the data",
        "alike = _are_close(left.noise, right.noise, rounding)",
        "alike = True",
        ("tests/engine/test_reach.py",),
    ),
    Mutant(
        "mutants/treatments.py",
        "noise is divided by 3 instead of 2",
        "HALVED: 0.5, LEAST: 0.0}.get",
        "HALVED: 1 / 3, LEAST: 0.0}.get",
        ("tests/mutants/test_treatments.py",),
    ),
    Mutant(
        "mutants/treatments.py",
        "the high end of integers is one too far",
        "np.asarray(high) - (not arguments",
        "np.asarray(high) - 0 * (not arguments",
        ("tests/mutants/test_treatments.py",),
    ),
    Mutant(
        "mutants/recorder.py",
        "stale noise leaves the random stream changed",
        "            bits.state = now\n",
        "            pass\n",
        ("tests/mutants/test_recorder.py",),
    ),
    Mutant(
        "mutants/recorder.py",
        "the call after the intended call is changed",
        "plan.only in (None, index)",
        "plan.only in (None, index + 1)",
        ("tests/mutants/test_recorder.py",),
    ),
    Mutant(
        "mutants/recorder.py",
        "a site consists only of its innermost line",
        "            lines.append(_line(frame))\n",
        "            lines = lines or [_line(frame)]\n",
        ("tests/mutants/test_recorder.py",),
    ),
    Mutant(
        "mutants/sites.py",
        "loops over steps are treated as loops over draws",
        "by_run = after / before > RUNS / 3 and numbers < RUNS / 3",
        "by_run = numbers < RUNS / 3 or after > 0",
        ("tests/mutants/test_noise.py",),
    ),
    Mutant(
        "mutants/code.py",
        "a replaced function is not restored",
        "                setattr(owner, key, self.target.original)\n            # A module",
        "                pass\n            # A module",
        ("tests/mutants/test_code.py",),
    ),
    Mutant(
        "mutants/code.py",
        "a function is replaced only in the module that defines it",
        "            for owner in _owners()\n",
        "            for owner in list(_owners())[:0] + [sys.modules[self.original.__module__]]\n",
        ("tests/mutants/test_code.py",),
    ),
)
