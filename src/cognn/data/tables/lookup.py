"""Where each of many rows stands among known ones, by arrays of hashes: a few nanoseconds a row."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cognn.errors import DataError

SEEDS = 8
ODD = np.uint64(0x9E3779B97F4A7C15)
"""Times this, a word shows other bits at its top."""


class SameRows(DataError):
    """Known rows that are equal, or made to look so."""


class Lookup:
    """Positions of rows in a table of different rows.

    A row is known by a 64-bit word.  The words of the known rows all differ, else another seed is tried, so a known row
    is always found; an unknown one is taken for one of ``n`` known ones with a chance of ``n / 2^64``.

    The top bits of a word say where its row stands in an array of four to eight slots for every row.  The tenth of the
    rows whose slot another has taken go to a second, shorter array, and so on until all have one.

    Args:
        known: The rows; if one is there twice this is a :class:`SameRows` error.
    """

    def __init__(self, known: pl.DataFrame) -> None:
        self.seed, self.words = _different_words(known)
        self.arrays: list[NDArray[np.uint32]] = []  # Polars counts rows in 32 bits too
        left, words = np.arange(len(self.words), dtype=np.uint32), self.words
        while len(left):
            array = np.zeros(1 << (len(left).bit_length() + 2), dtype=np.uint32)
            slot = _slot(words, array)
            array[slot] = left
            self.arrays.append(array)
            homeless = array[slot] != left
            left, words = left[homeless], words[homeless] * ODD

    def find(self, rows: pl.DataFrame, out: NDArray[np.int64]) -> None:
        """Write the position of every row into ``out``; -1 where it is unknown."""
        out[:] = -1
        words = rows.hash_rows(self.seed).to_numpy()
        left, shown = np.arange(len(words)), words
        for array in self.arrays:
            place = array[_slot(shown, array)]
            found = self.words[place] == words[left]  # an empty slot says 0, which is not the row either
            out[left[found]] = place[found]
            left, shown = left[~found], shown[~found] * ODD


def _slot(words: NDArray[np.uint64], array: NDArray[np.uint32]) -> NDArray[np.int64]:
    return (words >> np.uint64(65 - len(array).bit_length())).astype(np.int64)


def _different_words(known: pl.DataFrame) -> tuple[int, NDArray[np.uint64]]:
    for seed in range(SEEDS):
        words = known.hash_rows(seed)
        if words.n_unique() == len(words):
            return seed, words.to_numpy()
    raise SameRows(f"ids: {words.is_duplicated().sum():,} of {len(words):,} cannot be told apart; number them instead")
