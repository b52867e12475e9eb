"""Mistakes planted in the calling of mechanisms."""

from __future__ import annotations

from benchmarks.planted.mutant import AUDIT, Mutant

SAMPLER = ("tests/mechanisms/test_mechanisms.py", *AUDIT)
MECHANISMS = "tests/mechanisms/test_mutants_of_the_mechanisms.py"
TRAINING = ("tests/mechanisms/test_training.py",)
LIKELIHOOD = ("tests/mechanisms/test_likelihood.py",)
ALONG = ("tests/mechanisms/test_along.py",)
SCORES = ("tests/engine/test_scoring.py",)
INDEPENDENCE = (MECHANISMS, "tests/mechanisms/test_independence.py")

OUTCOMES = ("tests/mechanisms/test_outcomes.py",)
WORKERS = ("tests/mechanisms/test_workers.py",)
COMMAND = ("tests/mechanisms/test_command.py",)
SESSIONS = ("tests/mechanisms/test_interactive.py",)
QUERIES = ("tests/mechanisms/test_sql.py",)

MUTANTS = (
    Mutant(
        "mechanisms/one_draw.py",
        "a second use of the same seed is not detected",
        "if rng.seeded > 1:",
        "if False:",
        ("tests/mechanisms/test_outcomes.py",),
    ),
    Mutant(
        "mechanisms/sampler.py",
        "a seed label is dropped: every call draws the same noise",
        "outputs = self.call(data, size, role, side, index, side=side)",
        "outputs = self.call(data, size, role, side, side=side)",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/sampler.py",
        "the id of the audit is missing in its seed",
        "rng = generator(self._seed, *self._labels, *labels)",
        "rng = generator(self._seed, *labels)",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/sampler.py",
        "inf is allowed",
        "if self._finite and np.isinf(values).any():",
        "if self._finite and np.isinf(values).all():",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/independence.py",
        "the limit uses a logarithm to base 10",
        "limit = math.log(4 / FALSE_REFUSAL)",
        "limit = math.log10(4 / FALSE_REFUSAL)",
        INDEPENDENCE,
    ),
    Mutant(
        "mechanisms/independence.py",
        "the wealth is not divided among the forecasters",
        "special.logsumexp(np.logaddexp(self._grown(), kept))) - math.log(FORECASTERS)",
        "special.logsumexp(np.logaddexp(self._grown(), kept)))",
        INDEPENDENCE,
    ),
    Mutant(
        "mechanisms/watch.py",
        "the remaining time grows",
        "left = self.time_limit - (time.perf_counter() - self.begun)",
        "left = self.time_limit + (time.perf_counter() - self.begun)",
        (MECHANISMS, "tests/mechanisms/test_watch.py"),
    ),
    Mutant(
        "mechanisms/one_draw.py",
        "a score may depend on other draws",
        "if 2 <= size <= _CHECKED_SIZE:",
        "if 2 <= size <= 0:",
        SCORES,
    ),
    Mutant(
        "mechanisms/one_draw.py",
        "a change behind a score always counts as made",
        'return getattr(self.mechanism, "changed", 1)',
        "return 1",
        SCORES,
    ),
    Mutant(
        "mechanisms/training.py",
        "each example is clipped, but their sum is not",
        "return _clip(gradients.sum(axis=2) if by_item else gradients, self.clip_norm)",
        "return _clip(gradients, self.clip_norm).sum(axis=2) if by_item else gradients",
        TRAINING,
    ),
    Mutant(
        "mechanisms/training.py",
        "short gradients are made longer",
        "vectors * (norm / np.maximum(lengths, norm))",
        "vectors * (norm / np.maximum(lengths, 1e-300))",
        TRAINING,
    ),
    Mutant(
        "mechanisms/training.py",
        "noise does not grow with the clip norm",
        "rng.normal(0.0, self.scale, size=shape)",
        "rng.normal(0.0, self.sigma, size=shape)",
        TRAINING,
    ),
    Mutant(
        "mechanisms/training.py",
        "the parameters follow the gradient upwards",
        "return total, params - self.learning_rate * total",
        "return total, params + self.learning_rate * total",
        TRAINING,
    ),
    Mutant(
        "mechanisms/training.py",
        "an added user is treated as a missing user",
        "if len(data) >= len(other):",
        "if len(data) <= len(other):",
        LIKELIHOOD,
    ),
    Mutant(
        "mechanisms/training.py",
        "the order is not shuffled again in later epochs",
        'if step % epoch == 0 and self.kind == "shuffle":',
        'if step == 0 and self.kind == "shuffle":',
        TRAINING,
    ),
    Mutant(
        "mechanisms/training.py",
        "a fixed batch has one user too many",
        "yield _ranks(size, n_users, rng) < batch",
        "yield _ranks(size, n_users, rng) <= batch",
        TRAINING,
    ),
    Mutant(
        "mechanisms/training.py",
        "an epoch that ends early is treated as a whole one",
        "later = max(1.0 - weights.sum(), 0.0) if epoch.shape[1] < len(slots) else 0.0",
        "later = 0.0",
        LIKELIHOOD,
    ),
    Mutant(
        "mechanisms/training.py",
        "the last iterate has the noise of one step",
        "variance = self.steps * self.scale**2",
        "variance = self.scale**2",
        LIKELIHOOD,
    ),
    Mutant(
        "mechanisms/training.py",
        "the last iterate without its noise has the noise of one step",
        "scale = self.scale * math.sqrt(self.steps / steps)",
        "scale = self.scale",
        ALONG,
    ),
    Mutant(
        "mechanisms/training.py",
        "the ball omits users who pull in the other direction",
        "np.minimum(moves, 0).sum(), np.maximum(moves, 0).sum()",
        "0.0, np.maximum(moves, 0).sum()",
        ALONG,
    ),
    Mutant(
        "mechanisms/training.py",
        "the ball of all steps is the ball of one step",
        "half * math.sqrt(steps)",
        "half",
        ALONG,
    ),
    Mutant(
        "mechanisms/training.py",
        "gradients may change along the direction of the user",
        "if off > _STILL * self.clip_norm:",
        "if off < 0:",
        ALONG,
    ),
    Mutant(
        "mechanisms/outcomes.py",
        "a call that fails counts as one failed draw",
        "elif catches and (self.apart or self._fails_on(data)):",
        "elif catches:",
        OUTCOMES,
    ),
    Mutant(
        "mechanisms/outcomes.py",
        "the absence of a key is lost",
        "np.array([key in one for one in dicts])",
        "np.array([True for one in dicts])",
        OUTCOMES,
    ),
    Mutant(
        "mechanisms/protocols.py",
        "global generators stay seeded",
        "        np.random.set_state(ours)  # noqa: NPY002\n",
        "",
        OUTCOMES,
    ),
    Mutant(
        "mechanisms/workers.py",
        "the tasks of a dead worker are lost",
        "for task in tasks:\n                    under_way",
        "for task in tasks[:1]:\n                    under_way",
        WORKERS,
    ),
    Mutant(
        "mechanisms/kept.py",
        "stored calls of changed code are reused",
        "        if known != told:\n",
        "        if False:\n",
        WORKERS,
    ),
    Mutant(
        "mechanisms/local.py",
        "a shuffle keeps the order",
        "return np.sort(reports, axis=1)",
        "return reports",
        ("tests/mechanisms/test_local.py", "tests/engine/test_local.py"),
    ),
    Mutant(
        "mechanisms/local.py",
        "all reports are visible",
        "reports[:, hidden] = np.zeros(1, reports.dtype)[0]",
        "pass",
        ("tests/mechanisms/test_local.py", "tests/engine/test_local.py"),
    ),
    Mutant(
        "mechanisms/command.py",
        "failed draws are outcomes of whole calls",
        "is_single = catches or (self.mode",
        "is_single = (self.mode",
        COMMAND,
    ),
    Mutant(
        "mechanisms/command.py",
        "seeds of whole calls have 32 bits",
        "seed_of(rng, SEEDS)",
        "seed_of(rng)",
        COMMAND,
    ),
    Mutant(
        "mechanisms/command.py",
        "output that no request asked for is read as an answer",
        "if (unread := program.unread()) is not None:",
        "if unread := b'':",
        COMMAND,
    ),
    Mutant(
        "mechanisms/command.py",
        "an answer may have too few draws",
        "if len(answer) != size:",
        "if len(answer) > size:",
        COMMAND,
    ),
    Mutant(
        "mechanisms/command.py",
        "a worker may run another version of a program",
        "if _hash(name) != before:",
        "if False:",
        COMMAND,
    ),
    Mutant(
        "mechanisms/command.py",
        "an interrupted server is asked again",
        "        except BaseException:  # the next request",
        "        except OSError:  # the next request",
        COMMAND,
    ),
    Mutant(
        "mechanisms/command.py",
        "a program without a seed counts as seeded",
        "self.dpaudit_unseeded = not self.seeded",
        "self.dpaudit_unseeded = False",
        COMMAND,
    ),
    Mutant(
        "mechanisms/programs.py",
        "a copy of this process uses the same server",
        "return self._owner == os.getpid()",
        "return True",
        COMMAND,
    ),
    Mutant(
        "mechanisms/programs.py",
        "the processes that a program started live on",
        "os.killpg(process.pid, signal.SIGKILL)",
        "os.kill(process.pid, signal.SIGKILL)",
        COMMAND,
    ),
    Mutant(
        "mechanisms/programs.py",
        "programs of a killed process live on",
        "        _watch(self._process.pid)",
        "        pass",
        COMMAND,
    ),
    Mutant(
        "mechanisms/written.py",
        "missing numbers are written as NaN",
        "return None if math.isnan(value) else value",
        "return value",
        COMMAND,
    ),
    Mutant(
        "mechanisms/interactive.py",
        "other sessions have neighbouring seeds",
        'np.random.SeedSequence([randomness["seed"], at + 1]).generate_state(1)',
        '[randomness["seed"] + at + 1]',
        SESSIONS,
    ),
    Mutant(
        "mechanisms/interactive.py",
        "an interaction goes on at the limit",
        "spent[0] > self.limit:",
        "spent[0] > 2 * self.limit:",
        SESSIONS,
    ),
    Mutant(
        "mechanisms/interactive.py",
        "an answer is a view of the session's buffer",
        "np.array(answer, dtype=np.float64).ravel()",
        "np.asarray(answer, dtype=np.float64).ravel()",
        SESSIONS,
    ),
    Mutant(
        "mechanisms/interactive.py",
        "a budget that is not updated is updated",
        "self.kind == NOT_UPDATED or",
        "False or",
        SESSIONS,
    ),
    Mutant(
        "mechanisms/sql.py",
        "what a query changes stays",
        "        finally:\n            database.restore()\n",
        "        finally:\n            database.keep()\n",
        QUERIES,
    ),
    Mutant(
        "mechanisms/sql.py",
        "the right dataset is not loaded",
        "if not seen or seen not in self._loaded:",
        "if not self._loaded:",
        QUERIES,
    ),
)
