"""Copies of objects that own their containers, so that a copy and its original go on without each other."""

from __future__ import annotations

from copy import copy
from typing import TypeVar

T = TypeVar("T")


def copy_with_containers(one: T) -> T:
    """Return a copy with its own lists, dicts and sets. Their elements are shared."""
    made = copy(one)
    for name, value in vars(made).items():
        if isinstance(value, dict | list | set):
            setattr(made, name, value.copy())
    return made
