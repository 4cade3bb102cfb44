import pytest
import torch
from hypothesis import given

from cognn.nn.encoders import DENSE_NODES, CategoricalEncoder, SignFlip, laplacian_encoding, random_walk_encoding
from tests.conftest import cases, dense

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def simple(edge_index, num_nodes):
    """Dense symmetric adjacency of ones without loops."""
    matrix = dense(edge_index, num_nodes, loops=False)
    return ((matrix + matrix.T) > 0).double()


def laplacian(edge_index, num_nodes):
    matrix = simple(edge_index, num_nodes)
    degree = matrix.sum(1)
    scale = degree.clamp(min=1) ** -0.5
    return torch.diag((degree > 0).double()) - scale[:, None] * matrix * scale


def ring(num_nodes):
    nodes = torch.arange(num_nodes)
    following = (nodes + 1) % num_nodes
    return torch.stack([torch.cat([nodes, following]), torch.cat([following, nodes])])


def test_categories_are_summed():
    encoder = CategoricalEncoder([3, 2, 5], 4)
    x = torch.tensor([[2.0, 1, 4], [0, 0, 0], [1, 1, 3]])
    table = encoder.table.weight
    want = torch.stack([table[2] + table[4] + table[9], table[0] + table[3] + table[5], table[1] + table[4] + table[8]])
    torch.testing.assert_close(encoder(x), want)
    torch.testing.assert_close(encoder(x.long()), want)
    encoder(x).sum().backward()
    assert encoder.table.weight.grad[7].abs().sum() == 0  # nobody has value 2 in the last column
    assert encoder.table.weight.grad[4].tolist() == [2.0] * 4


def test_numbers_after_the_categories_enter_linearly():
    encoder = CategoricalEncoder([3], 4, num_continuous=2)
    x = torch.tensor([[1.0, 0.5, -2.0]])
    want = encoder.table.weight[1] + encoder.linear.weight @ torch.tensor([0.5, -2.0]) + encoder.linear.bias
    torch.testing.assert_close(encoder(x)[0], want)


def test_categories_start_with_unit_variance_and_are_drawn_anew():
    torch.manual_seed(0)
    encoder = CategoricalEncoder([50] * 9, 64)
    assert encoder(torch.randint(50, (200, 9))).detach().std() == pytest.approx(1, abs=0.1)
    before = encoder.table.weight.clone()
    encoder.reset_parameters()
    assert not torch.equal(before, encoder.table.weight)
    assert set(encoder.state_dict()) == {"table.weight"}


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[3.0, 0]], r"x: row 0, column 0 is 3, expected 0 to 2"),
        ([[0.0, 0], [0, -1]], r"x: row 1, column 1 is -1, expected 0 to 1"),
        ([[0.0]], r"x: expected shape \(N, 2\), got \(1, 1\)"),
    ],
)
def test_wrong_codes_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        CategoricalEncoder([3, 2], 4)(torch.tensor(x))


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="categories: expected at least one column"):
        CategoricalEncoder([], 4)
    with pytest.raises(ValueError, match="categories: expected 1 or more, got 0"):
        CategoricalEncoder([3, 0], 4)


def test_signs_flip_by_graph_and_column_in_training_only():
    torch.manual_seed(0)
    x, batch = torch.rand(60, 5) + 1, torch.arange(20).repeat_interleave(3)
    flip = SignFlip(first=1, count=3)
    out = flip(x, batch)
    torch.testing.assert_close(out.abs(), x)
    assert torch.equal(out[:, [0, 4]], x[:, [0, 4]])
    signs = out.sign().view(20, 3, 5)
    assert (signs == signs[:, :1]).all(), "one sign for all nodes of a graph"
    assert len(signs[:, 0, 1:4].unique(dim=0)) > 4, "graphs and columns draw their own"
    assert torch.equal(flip.eval()(x, batch), x)


def test_signs_of_a_single_graph():
    torch.manual_seed(0)
    x = torch.ones(4, 40)
    out = SignFlip()(x)
    assert (out == out[:1]).all()
    assert set(out[0].tolist()) == {-1.0, 1.0}


@given(cases())
def test_laplacian_encoding_against_the_dense_formula(case):
    k, n = 4, case.num_nodes
    encoding = laplacian_encoding(case.edge_index, n, k).double()
    values = torch.linalg.eigvalsh(laplacian(case.edge_index, n))
    found = min(k, n - 1)
    assert encoding.shape == (n, k)
    assert (encoding[:, found:] == 0).all()
    vectors = encoding[:, :found]
    # Eigenvectors of equal eigenvalues are free to mix, so what is tested is that they are some orthonormal choice.
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(found, dtype=torch.float64), atol=1e-5, rtol=0)
    image = laplacian(case.edge_index, n) @ vectors
    torch.testing.assert_close(image, vectors * values[1 : found + 1], atol=1e-5, rtol=0)


def test_laplacian_encoding_of_a_path():
    encoding = laplacian_encoding(PATH, 4, 2)
    values, vectors = torch.linalg.eigh(laplacian(PATH, 4))
    assert values[1] > 1e-6
    torch.testing.assert_close(encoding.double().abs(), vectors[:, 1:3].abs(), atol=1e-6, rtol=0)
    assert (encoding.amax(0) >= -encoding.amin(0) - 1e-6).all(), "the largest entry is positive"


@pytest.mark.parametrize("num_nodes", [0, 1])
def test_encodings_of_next_to_nothing(num_nodes):
    edges = torch.empty(2, 0, dtype=torch.long)
    assert laplacian_encoding(edges, num_nodes, 3).tolist() == [[0.0] * 3] * num_nodes
    assert random_walk_encoding(edges, num_nodes, 3).tolist() == [[0.0] * 3] * num_nodes


def test_large_graphs_take_the_iterative_way_to_the_same_vectors():
    num_nodes = DENSE_NODES + 1
    rng = torch.Generator().manual_seed(0)
    edges = torch.cat([ring(num_nodes), torch.randint(num_nodes, (2, 3000), generator=rng)], dim=1)
    values, vectors = torch.linalg.eigh(laplacian(edges, num_nodes))
    assert values[:5].diff().min() > 1e-4, "the test needs simple eigenvalues"
    encoding = laplacian_encoding(edges, num_nodes, 3).double()
    torch.testing.assert_close(encoding.abs(), vectors[:, 1:4].abs(), atol=1e-5, rtol=0)
    assert torch.equal(encoding, laplacian_encoding(edges, num_nodes, 3).double())


@given(cases())
def test_random_walk_encoding_against_the_dense_formula(case):
    walk = dense(case.edge_index, case.num_nodes).T  # sender by receiver
    walk = walk / walk.sum(1, keepdim=True).clamp(min=1)
    want = torch.stack([torch.linalg.matrix_power(walk, t).diag() for t in range(1, 7)], dim=1)
    encoding = random_walk_encoding(case.edge_index, case.num_nodes, 6)
    torch.testing.assert_close(encoding, want.float(), atol=1e-6, rtol=1e-5)


def test_random_walks_by_blocks_of_nodes():
    # So large that the nodes go in several blocks; on a ring all nodes are alike.
    encoding = random_walk_encoding(ring(3000), 3000, 4)
    torch.testing.assert_close(encoding, torch.tensor([[0, 1 / 2, 0, 3 / 8]]).expand(3000, 4))


def test_encodings_refuse_nonsense():
    with pytest.raises(ValueError, match="k: expected 1 or more, got 0"):
        laplacian_encoding(PATH, 4, 0)
    with pytest.raises(ValueError, match="steps: expected 1 or more, got 0"):
        random_walk_encoding(PATH, 4, 0)
