"""Reference implementations of published private algorithms, which dpaudit audits.

Needs numpy and scipy only, and never imports ``dpaudit``.
"""
