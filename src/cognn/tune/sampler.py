"""A sampler whose draws depend on the number of the trial, not on the process that draws them."""

import hashlib
from collections.abc import Callable
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial


class SeededByTrial(BaseSampler):
    """Draws every option of every trial by a sampler of its own.

    Its seed is a hash of the study's seed, the number of the trial and the name of the option.  So a study that was
    stopped at any moment, even between two options of a trial, draws what one that ran through draws.

    Args:
        make: From a seed to a sampler.
        seed: The seed of the study.
    """

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self.make, self.seed = make, seed

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """No option is drawn together with others."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """No option is drawn together with others."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw one option."""
        bits = hashlib.blake2b(repr((self.seed, trial.number, param_name)).encode(), digest_size=4).digest()
        sampler = self.make(int.from_bytes(bits, "little"))
        return sampler.sample_independent(study, trial, param_name, param_distribution)
