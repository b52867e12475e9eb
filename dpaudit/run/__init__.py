"""Runs of many audits: the pytest plugin, the stored results, the display and the commands.

Names are imported when they are first used, so an unused plugin adds no import time.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
