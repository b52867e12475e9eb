"""The ledger: an executable verdict for every numbered statement of a paper.

A check is a function in a ``ledger_*.py`` file::

    @statement("paper.lemma3")
    def jensen(ledger):
        ...  # a docstring: the statement, and the findings

        @ledger.falsify(x=Array(Interval(-1, 1), ("n",)), n=Integer(2, 6))
        def sides(x):
            return np.mean(x) ** 2, np.mean(x**2)

pytest and ``dpaudit run`` collect checks like audits. The table of a paper's statements is in
``statements.md`` next to the checks. A statement without a check is shown as open.

Names are imported when they are first used. So rows can be read, stored and shown without
hypothesis, which takes a second to import.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
