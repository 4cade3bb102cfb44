"""Data-parallel training: every process takes a part of each mini-batch, and the gradients are summed.

The sum equals the gradient of one process on the complete mini-batch, whatever the sizes of the parts, because every
process weights its mean loss by its share of the targets.  A process without a part adds nothing.
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
from cognn.parallel.cluster import detect_launcher

T = TypeVar("T")
RANK = "LOCAL_RANK"
"""Environment variable with the rank of a process; it also tells Fabric not to start processes itself."""


class SummedGradients(DDPStrategy):
    """The process group of DDP without its module wrapper, which requires a backward pass in every process."""

    def setup_module(self, module: nn.Module) -> Any:
        """The module itself; :func:`sum_gradients` communicates."""
        return module


def find_device(name: str) -> torch.device:
    """The device of an option: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``, or ``"auto"`` for the best there is."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    kind, colon, number = name.partition(":")
    if name == "auto":
        kind = next(kind for kind, found in there.items() if found)
    elif kind not in there or (colon and not (kind == "cuda" and number.isdecimal())):
        raise ConfigError(f"device: expected cpu, cuda, mps or auto, got {name!r}")
    if not there[kind]:
        known = ", ".join(kind for kind, found in there.items() if found)
        raise ConfigError(f"device: {kind} is not there, this PyTorch finds {known}; choose that, or auto")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device: there is no {name}, but {torch.cuda.device_count()} of them, counted from 0")
    return torch.device(kind, int(number or 0)) if kind == "cuda" else torch.device(kind)


def make_fabric(config: TrainConfig) -> Fabric:
    """Fabric for the device and precision of a config; with ``devices`` above 1 this joins the process group."""
    launcher = detect_launcher() if config.devices > 1 else None
    if config.devices > 1 and launcher is None and RANK not in os.environ:
        raise ConfigError("devices: several train one run at a time, by cognn train or cognn.fit; use devices=1 here")
    # Explicit, because Fabric would treat every process of a cluster job as part of this training.
    environment = LightningEnvironment() if launcher is None else launcher.environment
    device = find_device(config.device)
    options: dict[str, Any] = {"accelerator": device.type, "precision": config.precision}
    if config.devices > 1:
        options["strategy"] = SummedGradients(cluster_environment=environment)
        options["num_nodes"] = 1 if launcher is None else launcher.num_nodes
    else:
        options["plugins"] = [environment]
    try:
        alone = [device.index] if device.type == "cuda" and config.devices == 1 else None
        fabric = Fabric(devices=alone or config.devices // options.get("num_nodes", 1), **options)
    except (MisconfigurationException, ImportError, RuntimeError, ValueError) as error:
        raise ConfigError(f"device: {str(error).splitlines()[0]}") from None
    if config.devices > 1:
        with _connected(fabric):
            fabric.launch()
        atexit.register(destroy_process_group)
    return fabric


def destroy_process_group() -> None:
    """Leave the process group, if there is one.

    Fabric does so for NCCL only.  Gloo's threads outlive a group that is not destroyed, and if one releases its last
    tensor while Python shuts down, the process ends with SIGABRT after all its work is done.
    """
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def sum_gradients(fabric: Fabric, model: nn.Module) -> None:
    """Sum the gradients over all processes; a parameter without a gradient in any process keeps none."""
    if fabric.world_size == 1:
        return
    parameters = [p for p in model.parameters() if p.requires_grad]
    own = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    known = own[0].new_tensor([p.grad is not None for p in parameters])
    total = all_reduce_sum(fabric, torch.cat([known, *(gradient.flatten() for gradient in own)]))
    counts, *sums = total.split([len(parameters), *(p.numel() for p in parameters)])
    for parameter, count, gradient in zip(parameters, counts.tolist(), sums, strict=True):
        parameter.grad = gradient.view_as(parameter) if count else None


def all_reduce_sum(fabric: Fabric, values: Tensor) -> Tensor:
    """Sum over all processes."""
    if fabric.world_size == 1:
        return values
    with _connected(fabric):
        return fabric.all_reduce(values.to(fabric.device), reduce_op="sum")  # type: ignore[return-value]


def all_gather(fabric: Fabric, values: Tensor) -> list[Tensor]:
    """The tensors of all processes, by rank."""
    if fabric.world_size == 1:
        return [values]
    values = values.to(fabric.device)
    parts = [torch.empty_like(values) for _ in range(fabric.world_size)]
    with _connected(fabric):
        torch.distributed.all_gather(parts, values)
    return [part.cpu() for part in parts]


def broadcast(fabric: Fabric, value: T) -> T:
    """The value of rank 0."""
    if fabric.world_size == 1:
        return value
    with _connected(fabric):
        return fabric.broadcast(value)


def on_rank_zero(fabric: Fabric | None, work: Callable[[], T]) -> T:
    """Call ``work`` on rank 0 and broadcast its result; an error of cognn is raised on all ranks."""
    if fabric is None or fabric.world_size == 1:
        return work()
    value, error = None, None
    if fabric.is_global_zero:
        try:
            value = work()
        except (ConfigError, RunError) as refused:
            error = refused
    value, error = broadcast(fabric, (value, error))
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


@contextmanager
def _connected(fabric: Fabric) -> Iterator[None]:
    """Turn a broken connection, which the end of any process causes at once, into an error of one line."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rsplit("] ", 1)[-1].split(". ")[0]
        raise Lost(
            f"process {fabric.global_rank} of {fabric.world_size}: another one cannot be reached, and may have died "
            f"({reason}); resume with --resume"
        ) from None
