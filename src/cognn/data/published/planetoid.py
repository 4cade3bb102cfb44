"""The citation graphs cora, citeseer and pubmed with the 10 splits of Geom-GCN (Pei et al., ICLR 2020)."""

import warnings
from pathlib import Path

from torch_geometric.datasets import Planetoid
from torch_geometric.transforms import NormalizeFeatures

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Task
from cognn.data.published.pyg_datasets import AtomicDownload, published_splits, raw_file_errors
from cognn.data.published.raw_files import raw_root, verify_sha256
from cognn.errors import DataError

KIND = "planetoid"
FOLDERS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}

# The published files are pickles.  These were inspected; those of citeseer were not, so they are refused.
# ``ind.*.test.index`` is plain text.
SHA256 = {
    "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.pubmed.x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
    "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "ind.pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
    "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
}


def load_planetoid(name: str) -> Dataset:
    """Load a citation graph, undirected and without self-loops.

    The features are the bag of words (cora, citeseer) or TF-IDF weights (pubmed), with rows normalised by PyG's
    ``NormalizeFeatures``, as is usual for these datasets.  Nodes that Geom-GCN left out are in no split.

    Args:
        name: ``"cora"``, ``"citeseer"`` or ``"pubmed"``.
    """
    folder = FOLDERS[name]
    if not any(file.startswith(f"ind.{name}.") for file in SHA256):
        # Refused before anything is copied or downloaded.
        raise DataError(
            f"dataset {name}: published as pickles whose SHA-256 is not known to cognn, so they are not read; "
            f"take {' or '.join(other for other in FOLDERS if other != name)}"
        )
    root = raw_root(KIND, folder)
    with raw_file_errors(root, folder):
        data = NormalizeFeatures()(_Published(str(root), folder, split="geom-gcn")[0])
    return Dataset(
        name=name,
        task=Task("node", "multiclass", int(data.y.max()) + 1, "accuracy"),
        x=data.x.float(),
        y=data.y.long(),
        graphs=[Graph(data.edge_index, data.num_nodes)],
        splits=published_splits(name, data),
    )


class _Published(AtomicDownload, Planetoid):
    kind = KIND

    def process(self) -> None:
        for file in self.raw_file_names:
            if not file.endswith("test.index"):
                verify_sha256(Path(self.raw_dir) / file, SHA256.get(file))
        with warnings.catch_warnings():
            # The pickles of 2016 make today's numpy and scipy warn.
            warnings.simplefilter("ignore")
            super().process()
