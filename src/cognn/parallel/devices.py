"""Several processes that train one model: each takes its share of every mini-batch, and their gradients are summed.

The summed gradient is that of one process on the whole mini-batch, whatever the sizes of the shares, because every
process weighs its mean loss by its part of the batch's targets.  A process without a share adds nothing.
"""

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from cognn.config.options import TrainConfig
from cognn.errors import ConfigError, Lost, RunError
from cognn.parallel.cluster import launched

T = TypeVar("T")
RANK = "LOCAL_RANK"
"""Environment variable by which a process knows its number, and Fabric that others are there already."""


class SummedGradients(DDPStrategy):
    """The process group of DDP without its wrapper, which would wait for a backward pass of every process."""

    def setup_module(self, module: nn.Module) -> Any:
        """The module as it is; :func:`sum_gradients` does the rest."""
        return module


def make_fabric(config: TrainConfig) -> Fabric:
    """Device and precision of a config; with ``devices`` above 1 the process joins the others."""
    launch = launched() if config.devices > 1 else None
    if config.devices > 1 and launch is None and RANK not in os.environ:
        raise ConfigError("devices: several train one run at a time, by cognn train or cognn.fit; use devices=1 here")
    # Named, because Fabric would take every process of a cluster's job for a part of this training.
    environment = LightningEnvironment() if launch is None else launch.environment
    options: dict[str, Any] = {"accelerator": config.accelerator, "precision": config.precision}
    if config.devices > 1:
        options["strategy"] = SummedGradients(cluster_environment=environment)
        options["num_nodes"] = 1 if launch is None else launch.nodes
    else:
        options["plugins"] = [environment]
    try:
        fabric = Fabric(devices=config.devices // options.get("num_nodes", 1), **options)
    except (MisconfigurationException, RuntimeError, ValueError) as error:
        raise ConfigError(f"accelerator: {str(error).splitlines()[0]}") from None
    if config.devices > 1:
        with _reaching(fabric):
            fabric.launch()
        atexit.register(leave)
    return fabric


def leave() -> None:
    """Take this process out of its group, if it is in one.

    Fabric does so for NCCL only.  Gloo's threads outlive a group that is not destroyed, and one that lets go of its
    last tensor while Python shuts down ends the process with SIGABRT after all its work is done.
    """
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def sum_gradients(fabric: Fabric, model: nn.Module) -> None:
    """Give every process the sum of all gradients; a parameter that none has a gradient for keeps none."""
    if fabric.world_size == 1:
        return
    parameters = [p for p in model.parameters() if p.requires_grad]
    own = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    known = own[0].new_tensor([p.grad is not None for p in parameters])
    total = summed(fabric, torch.cat([known, *(gradient.flatten() for gradient in own)]))
    counts, *sums = total.split([len(parameters), *(p.numel() for p in parameters)])
    for parameter, count, gradient in zip(parameters, counts.tolist(), sums, strict=True):
        parameter.grad = gradient.view_as(parameter) if count else None


def summed(fabric: Fabric, values: Tensor) -> Tensor:
    """Sum over all processes."""
    if fabric.world_size == 1:
        return values
    with _reaching(fabric):
        return fabric.all_reduce(values.to(fabric.device), reduce_op="sum")  # type: ignore[return-value]


def gathered(fabric: Fabric, values: Tensor) -> list[Tensor]:
    """The tensor of every process, in their order."""
    if fabric.world_size == 1:
        return [values]
    values = values.to(fabric.device)
    parts = [torch.empty_like(values) for _ in range(fabric.world_size)]
    with _reaching(fabric):
        torch.distributed.all_gather(parts, values)
    return [part.cpu() for part in parts]


def agreed(fabric: Fabric, value: T) -> T:
    """What the first process has."""
    if fabric.world_size == 1:
        return value
    with _reaching(fabric):
        return fabric.broadcast(value)


def first(fabric: Fabric | None, work: Callable[[], T]) -> T:
    """What ``work`` gives the first process, while the others wait for it; what it refuses, all refuse."""
    if fabric is None or fabric.world_size == 1:
        return work()
    value, error = None, None
    if fabric.is_global_zero:
        try:
            value = work()
        except (ConfigError, RunError) as refused:
            error = refused
    value, error = agreed(fabric, (value, error))
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


@contextmanager
def _reaching(fabric: Fabric) -> Iterator[None]:
    """Say in one line that another process is gone: its end closes the connection, so this is known at once."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rsplit("] ", 1)[-1].split(". ")[0]
        raise Lost(
            f"process {fabric.global_rank} of {fabric.world_size}: another one cannot be reached, and may have died "
            f"({reason}); go on with --resume"
        ) from None
