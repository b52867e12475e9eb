"""dpaudit: pytest for privacy.

Audit a mechanism against its claim with :func:`audit`; see the README for the command line.

Names are imported when they are first used, so that the pytest plugin costs nothing in sessions
that audit nothing; ``__init__.pyi`` says where each one lives.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
