"""A run of many audits: the pytest plugin, what it stores and shows, the commands.

Names are imported when they are first used: the plugin costs nothing where it is idle.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
