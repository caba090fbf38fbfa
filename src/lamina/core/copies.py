"""Copies of objects that own their containers, so that a copy and its original go on without each other."""

from __future__ import annotations

from copy import copy
from typing import TypeVar

T = TypeVar("T")


def copy_with_containers(original: T) -> T:
    """Return a copy with its own lists, dicts and sets. Their elements are shared."""
    duplicate = copy(original)
    for name, value in vars(duplicate).items():
        if isinstance(value, dict | list | set):
            setattr(duplicate, name, value.copy())
    return duplicate
