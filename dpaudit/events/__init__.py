"""Distinguishing events: learnt on exploration draws, frozen before the draws that certify."""

from dpaudit.events.bits import FloatAttack
from dpaudit.events.portfolio import Event, Goal, Selection, learn

__all__ = ["Event", "FloatAttack", "Goal", "Selection", "learn"]
