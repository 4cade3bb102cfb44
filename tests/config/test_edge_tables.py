import pytest

from cognn.config.edge_tables import edges_text, join_tables, named_tables
from cognn.errors import ConfigError


@pytest.mark.parametrize("path", ["edges.csv", "", "runs/date=1/edges.csv", "./a=b.csv"])
def test_a_single_path_names_no_relations(path: str) -> None:
    assert named_tables(path) is None


def test_every_table_has_the_name_before_it() -> None:
    assert named_tables("pays=p.csv,follows=data/f.csv") == {"follows": "data/f.csv", "pays": "p.csv"}
    assert named_tables("pays=a,b/p=1.csv") == {"pays": "a,b/p=1.csv"}
    assert list(named_tables("pays=p.csv,follows=f.csv")) == ["follows", "pays"]


def test_a_file_whose_name_looks_so_is_a_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert named_tables("a=b.csv") == {"a": "b.csv"}
    (tmp_path / "a=b.csv").touch()
    assert named_tables("a=b.csv") is None


@pytest.mark.parametrize("text", ["follows=", "=f.csv,pays=p.csv", "follows= ,pays=p.csv", "pays=p.csv,pays=q.csv"])
def test_bad_tables_are_refused(text: str) -> None:
    if text.startswith("="):
        assert named_tables(text) is None
    else:
        with pytest.raises(ConfigError, match=r"^edges: .*NAME=FILE|^edges: relation 'pays' is given twice; [^\n]*$"):
            named_tables(text)


def test_several_values_become_one() -> None:
    assert join_tables(["e.csv"]) == "e.csv"
    assert join_tables(["a=e.csv", "b=f.csv"]) == edges_text({"a": "e.csv", "b": "f.csv"}) == "a=e.csv,b=f.csv"
    assert edges_text("e.csv") == "e.csv"
    with pytest.raises(ConfigError, match=r"^edges: 'e.csv' is one of 2 edge tables and has no name; expected .*$"):
        join_tables(["a=e.csv", "e.csv"])
