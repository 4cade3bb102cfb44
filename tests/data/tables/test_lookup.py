import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognn.data.tables import lookup
from cognn.data.tables.lookup import Lookup, SameRows

WORDS = st.one_of(st.text(max_size=20), st.integers(0, 300).map(lambda number: f"user-{number}"))


def find(known: pl.DataFrame, wanted: pl.DataFrame) -> list[int]:
    out = np.empty(wanted.height, dtype=np.int64)
    Lookup(known).find(wanted, out)
    return out.tolist()


@given(st.lists(WORDS, unique=True), st.lists(st.one_of(WORDS, st.none())))
def test_words(known: list[str], wanted: list[str | None]) -> None:
    wanted = [*wanted, *known[::-1]]
    frames = (pl.DataFrame({"key": pl.Series(words, dtype=pl.String)}) for words in (known, wanted))
    assert find(*frames) == [known.index(word) if word in known else -1 for word in wanted]


NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(NUMBERS, st.integers(0, 3)), unique=True), st.lists(st.tuples(NUMBERS, st.integers(0, 3))))
def test_numbers_within_groups(known: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    wanted = [*wanted, *known[::-1]]
    schema = {"key": pl.Int64, "group": pl.Int64}
    frames = (pl.DataFrame(rows, schema, orient="row") for rows in (known, wanted))
    assert find(*frames) == [known.index(row) if row in known else -1 for row in wanted]


def test_many_rows_share_slots_and_are_all_found() -> None:
    known = pl.DataFrame({"key": np.random.default_rng(0).permutation(50_000) * 8})
    assert len(Lookup(known).arrays) > 2
    assert find(known, known) == list(range(50_000))
    assert find(known, known + 1) == [-1] * 50_000


def test_a_row_twice_is_an_error_and_a_seed_that_confuses_rows_is_not(monkeypatch) -> None:
    with pytest.raises(SameRows, match="ids: 2 of 3 have equal hashes"):
        Lookup(pl.DataFrame({"key": ["a", "b", "a"]}))
    known, real = pl.DataFrame({"key": ["a", "b", "c"]}), pl.DataFrame.hash_rows
    monkeypatch.setattr(pl.DataFrame, "hash_rows", lambda self, seed: real(self, seed) // (1 if seed == 2 else 2**63))
    assert Lookup(known).seed == 2
    assert find(known, known) == [0, 1, 2]
    monkeypatch.setattr(lookup, "SEEDS", 2)
    with pytest.raises(SameRows):
        Lookup(known)
