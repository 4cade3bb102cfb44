"""The page next to a record."""

from cognn.experiments.pages.markdown import summary_table


def test_columns_of_the_paper_stand_only_where_it_has_a_figure() -> None:
    own = {"dataset": "cora", "model": "GCN", "metric": "accuracy", "mean": 0.5, "std": None, "runs": 1, "epochs": 9}
    own |= {"paper": None}
    theirs = own | {"paper": {"mean": 0.6, "std": 0.1}, "verdict": "below", "p": 0.01}
    assert summary_table([own]).splitlines()[0] == "| dataset | model | metric | ours | runs | epochs |"
    assert summary_table([own]).splitlines()[2] == "| cora | GCN | accuracy | 50.00 | 1 | 9 |"
    first, second = summary_table([theirs, own]).splitlines()[2:]
    assert first.endswith("| 9 | 60.00 ± 10.00 | worse | 0.01 |")
    assert second.endswith("| 9 | - | - | - |")
