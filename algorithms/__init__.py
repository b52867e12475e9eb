"""The judged: reference implementations of published private algorithms.

Needs numpy and scipy only, and never imports ``dpaudit``.
"""
