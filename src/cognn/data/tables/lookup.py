"""A hash table from rows to positions, vectorised in NumPy: a few nanoseconds a row."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cognn.errors import DataError

SEEDS = 8
ODD = np.uint64(0x9E3779B97F4A7C15)
"""Multiplying a hash by this brings other bits to its top."""


class SameRows(DataError):
    """Rows that are equal, or have equal hashes for every seed."""


class Lookup:
    """Positions of rows in a table of distinct rows.

    A row is identified by a 64-bit hash.  The seed is chosen such that the hashes of all known rows differ, so a known
    row is always found; an unknown one is mistaken for one of ``n`` known rows with probability ``n / 2^64``.

    The top bits of a hash are the slot of its row in an array of four to eight slots a row.  About a tenth of the rows
    collide; they go to a second, shorter array, and so on until all have a slot.

    Args:
        known: The rows; equal ones are a :class:`SameRows` error.
    """

    def __init__(self, known: pl.DataFrame) -> None:
        self.seed, self.words = _distinct_words(known)
        self.arrays: list[NDArray[np.uint32]] = []  # Polars counts rows in 32 bits too
        left, words = np.arange(len(self.words), dtype=np.uint32), self.words
        while len(left):
            array = np.zeros(1 << (len(left).bit_length() + 2), dtype=np.uint32)
            slot = _slot(words, array)
            array[slot] = left
            self.arrays.append(array)
            collided = array[slot] != left
            left, words = left[collided], words[collided] * ODD

    def find(self, rows: pl.DataFrame, out: NDArray[np.int64]) -> None:
        """Write the position of every row into ``out``; -1 if unknown."""
        out[:] = -1
        words = rows.hash_rows(self.seed).to_numpy()
        left, shown = np.arange(len(words)), words
        for array in self.arrays:
            place = array[_slot(shown, array)]
            found = self.words[place] == words[left]  # an empty slot holds 0, whose hash differs too
            out[left[found]] = place[found]
            left, shown = left[~found], shown[~found] * ODD


def _slot(words: NDArray[np.uint64], array: NDArray[np.uint32]) -> NDArray[np.int64]:
    return (words >> np.uint64(65 - len(array).bit_length())).astype(np.int64)


def _distinct_words(known: pl.DataFrame) -> tuple[int, NDArray[np.uint64]]:
    for seed in range(SEEDS):
        words = known.hash_rows(seed)
        if words.n_unique() == len(words):
            return seed, words.to_numpy()
    raise SameRows(f"ids: {words.is_duplicated().sum():,} of {len(words):,} have equal hashes; number them instead")
