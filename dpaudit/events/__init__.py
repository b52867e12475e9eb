"""Distinguishing events: learnt on exploration draws, frozen before the draws that certify."""

from dpaudit.events.portfolio import Event, Goal, Selection, learn

__all__ = ["Event", "Goal", "Selection", "learn"]
