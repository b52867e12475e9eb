"""dpaudit: pytest for privacy.

Audit a mechanism against its claim with :func:`audit`. The README describes the command line.

Names are imported when they are first used. The pytest plugin therefore adds no import time to
sessions without audits. The file ``__init__.pyi`` lists the module that defines each name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_OF_EXTRAS = ("check_contraction", "check_lipschitz", "check_sensitivity", "strategies")
# A star import takes only the names that need no extra.
__all__ = [name for name in __all__ if name not in _OF_EXTRAS]
