"""The ledger: an executable verdict for every numbered statement of a paper.

A check is a function in a ``ledger_*.py`` file::

    @statement("paper.lemma3")
    def jensen(ledger):
        ...  # a docstring: the statement, and the findings

        @ledger.falsify(x=Array(Interval(-1, 1), ("n",)), n=Integer(2, 6))
        def sides(x):
            return np.mean(x) ** 2, np.mean(x**2)

pytest and ``dpaudit run`` collect checks like audits. The statements of a paper are listed in
``statements.md`` next to the checks. A statement without a check is reported as open,
and fails the run.

Names are imported when they are first used. Therefore rows can be read, stored and displayed
without importing hypothesis, which takes a second.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
