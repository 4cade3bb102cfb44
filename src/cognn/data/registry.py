"""From a name to a dataset."""

import difflib
from typing import Literal

from cognn.data.catalogue import ENTRIES, NAMES, Entry
from cognn.data.dataset import Dataset
from cognn.data.published.raw_files import in_cache, in_mirror, public_name
from cognn.errors import DataError

__all__ = ["ENTRIES", "NAMES", "Entry", "Origin", "entry", "load", "origin"]

Origin = Literal["generated", "cache", "mirror", "network", "nowhere"]


def load(name: str, data_seed: int = 0) -> Dataset:
    """The dataset of that name, ready to train on.

    Args:
        name: One of :data:`NAMES`, lower case with hyphens.
        data_seed: Seed of generated datasets; published ones are what they are.
    """
    known = entry(name)
    dataset = _generate(name, data_seed) if known.generated else _read(known)
    dataset.facts = dict(known.facts)
    return dataset


def entry(name: str) -> Entry:
    """What is known about the dataset of that name, without loading it."""
    if name in ENTRIES:
        return ENTRIES[name]
    # Whoever writes PubMed or roman_empire has only the spelling wrong.
    near = difflib.get_close_matches(public_name(name), NAMES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise DataError(f"dataset {name!r} is not known; {hint}`cognn data list` shows all names")


def origin(known: Entry) -> Origin:
    """Where :func:`load` would take the dataset from, in the order it looks."""
    if known.folder is None:
        return "generated"
    if in_cache(*known.folder):
        return "cache"
    if in_mirror(*known.folder):
        return "mirror"
    return "network" if known.downloadable else "nowhere"


def _generate(name: str, seed: int) -> Dataset:
    # Imports stand inside so that one dataset does not pay for the libraries of another.
    if name == "root-neighbors":
        from cognn.data.synthetic.root_neighbors import as_dataset

        return as_dataset(seed=seed)
    if name == "minesweeper-board":
        from cognn.data.synthetic.minesweeper_board import minesweeper_board

        return minesweeper_board(seed=seed)
    if name == "long-range":
        from cognn.data.synthetic.long_range import long_range

        return long_range(seed=seed)
    from cognn.data.synthetic.cycles import cycles

    return cycles()


def _read(known: Entry) -> Dataset:
    assert known.folder is not None
    collection = known.folder[0]
    if collection == "heterophilous":
        from cognn.data.published import heterophilous

        return heterophilous.load(known.name)
    if collection == "planetoid":
        from cognn.data.published import planetoid

        return planetoid.load(known.name)
    if collection == "tu":
        from cognn.data.published import tu

        return tu.load(known.name)
    from cognn.data.published import peptides

    return peptides.load()
