"""Reports: lines of text, and self-contained HTML pages.

Names are imported when they are first used, because lines of text need neither matplotlib nor
jinja2.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
