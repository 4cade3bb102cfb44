"""The model as a PyG user types it."""

from inspect import signature

import pytest

from cognn import CoGNN


def test_options_are_named_and_the_error_shows_the_call() -> None:
    with pytest.raises(TypeError) as caught:
        CoGNN(7, 32, 2, 3)  # type: ignore[misc,call-arg]
    assert str(caught.value) == (
        "CoGNN: takes in_channels and hidden_channels by position and all else by name, got 4 positional arguments;"
        " write CoGNN(7, 32, out_channels=..., num_layers=...)"
    )
    assert CoGNN(in_channels=7, hidden_channels=32, out_channels=2, num_layers=3).num_layers == 3
    kinds = {p.name: p.kind.name for p in signature(CoGNN).parameters.values()}
    assert {kinds.pop("in_channels"), kinds.pop("hidden_channels")} == {"POSITIONAL_OR_KEYWORD"}
    assert set(kinds.values()) == {"KEYWORD_ONLY"}


@pytest.mark.parametrize(
    ("wrong", "near"), [("droput", "dropout"), ("activation", "action"), ("num_layer", "num_layers"), ("zz", "")]
)
def test_an_unknown_option_gets_the_nearest_names(wrong: str, near: str) -> None:
    with pytest.raises(TypeError, match=f"^CoGNN: unknown option '{wrong}'; did you mean .*{near}.*?$") as caught:
        CoGNN(7, 32, out_channels=2, num_layers=3, **{wrong: 1})
    assert str(caught.value).count(" or ") == 2
