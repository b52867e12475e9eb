"""Datasets together with the strategy of an adversary who asks about them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

from dpaudit.data.forms import Census, Form, Label, Packed


class Interaction:
    """A dataset, and the strategy of the adversary who interacts with a session on this dataset.

    Parameters
    ----------
    data : object
        The dataset, which the adversary does not see.
    strategy : object
        The strategy, equal on both sides of a pair. Its ``str`` names it,
        and its ``repr`` is different for strategies that ask differently.
    """

    __slots__ = ("data", "strategy")

    def __init__(self, data: Any, strategy: Any) -> None:
        self.data, self.strategy = data, strategy

    def __repr__(self) -> str:
        return f"Interaction({self.data!r}, {self.strategy})"


class InteractionForm(Form):
    """Handling of a dataset with a strategy; the strategy belongs to no user.

    Parameters
    ----------
    inner : Form
        Form of the dataset.
    """

    def __init__(self, inner: Form) -> None:
        self.inner = inner

    def _on(self, value: Interaction, data: Any) -> Interaction:
        return Interaction(data, value.strategy)

    def frozen(self, value: Interaction, name: str) -> Interaction:
        return self._on(value, self.inner.frozen(value.data, name))

    def handed(self, value: Interaction) -> Interaction:
        return self._on(value, self.inner.handed(value.data))

    def digest(self, value: Interaction) -> bytes:
        known = self.inner.digest(value.data)
        return known and known + repr(value.strategy).encode()

    def census(self, value: Interaction, label: Hashable = None) -> Census:
        return self.inner.census(value.data, label)

    def words(self, value: Interaction) -> str:
        return self.inner.words(value.data)

    def items(self, value: Interaction, user: Any) -> list[Any] | None:
        return self.inner.items(value.data, user)

    def rows_of(self, value: Interaction, users: Collection[Any]) -> tuple[list[int], int] | None:
        return self.inner.rows_of(value.data, users)

    def reordered(self, value: Interaction, order: list[int]) -> Interaction:
        return self._on(value, self.inner.reordered(value.data, order))

    def labels(self, value: Interaction, part: str) -> list[Label]:
        return self.inner.labels(value.data, part)

    def without(self, value: Interaction, labels: Collection[Label]) -> Interaction:
        return self._on(value, self.inner.without(value.data, labels))

    def cells(self, value: Interaction) -> dict[Label, Any]:
        return self.inner.cells(value.data)

    def filled(self, value: Interaction, cells: Mapping[Label, Any]) -> Interaction:
        return self._on(value, self.inner.filled(value.data, cells))

    def packed(self, value: Interaction) -> Packed | None:
        return self.inner.packed(value.data)

    def size(self, value: Interaction) -> int:
        return self.inner.size(value.data)
