import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cognn import Graph
from cognn.data.sampling.subgraphs import Subgraphs


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 20))
def test_a_cut_is_the_graph_that_its_edges_would_make(data, nodes: int) -> None:
    ends = data.draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=80))
    graph = Graph(torch.tensor(ends, dtype=torch.long).view(-1, 2).t(), nodes, torch.arange(len(ends)) % 3, 3)
    subgraphs = Subgraphs(graph)
    for _ in range(2):  # nothing of the one before is left
        chosen = torch.tensor(sorted(data.draw(st.sets(st.integers(0, nodes - 1)))), dtype=torch.long)
        cut, edges = subgraphs.induced(chosen)
        inside = torch.isin(graph.edge_index, chosen).all(0)
        assert sorted(edges.tolist()) == inside.nonzero().flatten().tolist()
        assert torch.equal(chosen[cut.edge_index], graph.edge_index[:, edges])
        assert torch.equal(cut.edge_type, graph.edge_type[edges])
        assert cut.num_relations == cut.loopless.num_relations == 3
        fresh = Graph(cut.edge_index, len(chosen))
        for one, other in ((cut, fresh), (cut.loopless, fresh.loopless)):
            for name in Graph._tensors:
                assert torch.equal(getattr(one, name), getattr(other, name)), name
                assert getattr(one, name).dtype == getattr(other, name).dtype, name
        into = torch.isin(graph.edge_index[1], chosen)
        assert sorted(subgraphs.senders(chosen).tolist()) == sorted(graph.edge_index[0, into].tolist())
