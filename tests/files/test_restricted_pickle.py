import os
import pickle
import pickletools
from collections import defaultdict

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cognn.errors import DataError
from cognn.files.restricted_pickle import unpickle_arrays


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("kind", ["<f4", ">f8", "<i4", "u1", "?"])
def test_arrays_and_matrices_are_read_as_they_are(protocol, kind) -> None:
    values = (np.arange(12).reshape(3, 4) % 5 > 1).astype(kind)
    for given in (values, np.asfortranarray(values), values[:, 0], values[:0]):
        found = unpickle_arrays(pickle.dumps(given, protocol), "toy")
        assert np.array_equal(found, given)
        assert found.dtype == given.dtype.newbyteorder("=")
    matrix = csr_matrix(values.astype(float))
    assert np.array_equal(unpickle_arrays(pickle.dumps(matrix, protocol), "toy").toarray(), matrix.toarray())


def test_a_graph_is_a_dictionary_of_lists() -> None:
    graph = defaultdict(list, {0: [1, 2], 1: [0], 2: [0]})
    assert unpickle_arrays(pickle.dumps(graph, 2), "toy") == {0: [1, 2], 1: [0], 2: [0]}


@pytest.mark.parametrize("evil", [os.system, eval, exec, getattr, __import__, np.load, np.frombuffer, pickle.loads])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_name_that_no_array_needs_is_refused_by_name(evil, protocol) -> None:
    class Evil:
        def __reduce__(self):
            return evil, ("1",)

    content = pickle.dumps([Evil()], protocol)
    asked = [arg for op, arg, _ in pickletools.genops(content) if op.name == "GLOBAL"]
    name = asked[0].replace(" ", ".") if asked else evil.__qualname__
    with pytest.raises(DataError, match=rf"^toy: its pickle asks for .*{name}, which") as error:
        unpickle_arrays(content, "toy")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("values", [np.array([{}, []], dtype=object), np.array(["a"]), np.zeros(2, "i4,f4")])
def test_arrays_of_anything_but_numbers_are_refused(values) -> None:
    with pytest.raises(ValueError, match="an array holds"):
        unpickle_arrays(pickle.dumps(values), "toy")


@pytest.mark.parametrize(("part", "values"), [("indices", [0, 99]), ("indices", [-1, 0]), ("indptr", [0, 1, 9])])
def test_a_matrix_with_indices_out_of_range_is_refused(part, values) -> None:
    matrix = csr_matrix(np.eye(2))
    setattr(matrix, part, np.array(values, dtype=np.int32))
    with pytest.raises(ValueError, match=r"ind"):
        unpickle_arrays(pickle.dumps(matrix), "toy")
