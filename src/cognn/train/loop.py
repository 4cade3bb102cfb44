"""The training loop: one split of one dataset, from the first epoch or from where it stopped."""

import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from cognn.data.batches import Batch, Batches
from cognn.data.dataset import Dataset
from cognn.train import metrics
from cognn.train.build import build_model, cooperative, num_parameters
from cognn.train.checkpoint import (
    load_tensors,
    load_weights,
    pack_optimizer,
    save_tensors,
    unpack_optimizer,
    write_json,
)
from cognn.train.config import Config, TrainConfig
from cognn.train.errors import Interrupted, RunError


@dataclass
class Epoch:
    """One line of ``metrics.jsonl``."""

    epoch: int
    loss: float
    lr: float
    train: float
    val: float
    test: float
    seconds: float
    kept: float | None = None


Watch = Callable[[Epoch, float, int], None]
"""Told after every evaluation: the line, the best validation score so far and its epoch."""


def learning_rate(config: TrainConfig, epoch: int) -> float:
    """Learning rate of an epoch, counted from 0: linear warm-up, then constant, steps, or a cosine to zero."""
    if epoch < config.warmup_epochs:
        return config.lr * (epoch + 1) / (config.warmup_epochs + 1)
    after, length = epoch - config.warmup_epochs, config.epochs - config.warmup_epochs
    if config.schedule == "step":
        return float(config.lr * config.gamma ** (after // config.step_size))
    if config.schedule == "cosine":
        return config.lr * (1 + math.cos(math.pi * after / length)) / 2
    return config.lr


class Items:
    """The dataset as batches: the whole graph for node tasks, mini-batches for graph tasks."""

    def __init__(self, dataset: Dataset, batch_size: int, device: torch.device) -> None:
        self.device, self.batch_size = device, batch_size
        self.y, self.num_items = dataset.y.to(device), dataset.num_items
        self.whole: Batch | None = None
        if dataset.task.level == "node":
            attr = None if dataset.edge_attr is None else dataset.edge_attr.to(device)
            everything = torch.arange(dataset.num_nodes, device=device)
            self.whole = Batch(dataset.x.to(device), dataset.graphs[0].to(device), attr, everything)
        else:
            self.batches = Batches(dataset)
            self.fixed = [self._take(items) for items in torch.arange(self.num_items).split(8 * batch_size)]

    def training(self, items: Tensor) -> Iterator[tuple[Batch, Tensor]]:
        """Batches to train on and, within each, the outputs that count."""
        if self.whole is not None:
            yield self.whole, items
            return
        for some in items[torch.randperm(len(items))].split(self.batch_size):
            yield self._take(some), torch.arange(len(some), device=self.device)

    def all(self) -> list[Batch]:
        """Every item once, in order."""
        return [self.whole] if self.whole is not None else self.fixed

    def _take(self, items: Tensor) -> Batch:
        x, graph, attr, _ = self.batches.take(items.cpu())
        return Batch(x.to(self.device), graph.to(self.device), None if attr is None else attr.to(self.device), items)


@torch.no_grad()
def outputs(model: nn.Module, items: Items, config: TrainConfig, trace: bool = False) -> tuple[Tensor, float | None]:
    """The model's output for every item in one pass and, if asked, the share of edges that its actions keep."""
    model.eval()
    options: dict[str, Any] = {}
    acts = cooperative(model) is not None
    if acts and config.samples and not trace:
        options["samples"] = config.samples
    elif acts:
        options["actions"] = config.actions
    outs, kept, edges = [], 0.0, 0
    for batch in items.all():
        if trace and acts:
            out, seen = model(batch.x, batch.graph, batch.edge_attr, return_trace=True, **options)
            kept += float(seen.kept_ratio().nan_to_num(0).mean()) * batch.graph.num_edges
            edges += batch.graph.num_edges
        else:
            out = model(batch.x, batch.graph, batch.edge_attr, **options)
            out = out.mean if config.samples and acts else out
        outs.append(out)
    return torch.cat(outs), kept / edges if edges else None


def train_split(config: Config, dataset: Dataset, index: int, folder: Path, data: str, watch: Watch) -> dict[str, Any]:
    """Train on one split until done, or on from ``folder``'s last state; ``data`` is the dataset's fingerprint."""
    t, task = config.train, dataset.task
    fabric = Fabric(accelerator=t.accelerator, devices=1, precision=t.precision)
    torch.manual_seed(t.seed + index)
    model = build_model(config.model, dataset)
    kind = torch.optim.AdamW if t.optimizer == "adamw" else torch.optim.Adam
    optimizer: Any = kind(model.parameters(), lr=t.lr, weight_decay=t.weight_decay)
    model, optimizer = fabric.setup(model, optimizer)
    items = Items(dataset, t.batch_size, fabric.device)
    split = {name: dataset.labelled(part) for name, part in vars(dataset.splits[index]).items()}
    for name in ("train", "val"):
        if not len(split[name]):
            raise RunError(f"{dataset.name}: split {index} has no labelled {name} items; give it some")
    split = {name: part.to(fabric.device) for name, part in split.items()}

    state, sign = folder / "last" / "state.safetensors", 1 if task.higher_is_better else -1
    progress: dict[str, Any] = {"epoch": 0, "best_epoch": 0, "best": None, "scores": None, "seconds": 0.0, "metrics": 0}
    identity = {"config": asdict(config.model) | asdict(config.train), "data": data, "split": index}
    best_weights: dict[str, Tensor] = {}
    if state.exists():
        tensors, facts = load_tensors(state)
        _same_run(facts["identity"], identity, state)
        load_weights(_unwrapped(model), tensors, "model/", state)
        unpack_optimizer(optimizer, tensors)
        best_weights = {key: value for key, value in tensors.items() if key.startswith("best/")}
        torch.set_rng_state(tensors["rng"])
        progress = facts["progress"]
    log = folder / "metrics.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)

    def save() -> None:
        weights = {f"model/{key}": value for key, value in _unwrapped(model).state_dict().items()}
        rng = {"rng": torch.get_rng_state()}
        tensors = weights | pack_optimizer(optimizer) | best_weights | rng
        save_tensors(state, tensors, {"identity": identity, "progress": progress})

    began, saved = time.perf_counter() - progress["seconds"], time.perf_counter()
    with _stop_when_asked() as asked, _appending(log, progress["metrics"]) as lines:
        while progress["epoch"] < t.epochs:
            lr = learning_rate(t, progress["epoch"])
            loss = _epoch(fabric, model, optimizer, items, split["train"], task, lr, t.clip)
            progress["epoch"] += 1
            epoch, last = progress["epoch"], progress["epoch"] == t.epochs
            done = last
            if epoch % t.eval_every == 0 or last:
                look = last or (epoch // t.eval_every) % 10 == 1  # a trace costs a little: not every time
                with fabric.autocast():
                    out, kept = outputs(_unwrapped(model), items, t, trace=look and not t.samples)
                scores = {name: metrics.score(task, out[part], items.y[part]) for name, part in split.items()}
                seconds = time.perf_counter() - began
                line = Epoch(epoch, loss, lr, **scores, seconds=seconds, kept=kept)
                lines.write(json.dumps(asdict(line)) + "\n")
                if not math.isfinite(loss):
                    raise RunError(f"split {index}: the loss is {loss} at epoch {epoch}; lower lr or set clip")
                better = progress["best"] is None or sign * scores["val"] > sign * progress["best"]
                if better or math.isnan(progress["best"]):
                    weights = _unwrapped(model).state_dict()
                    best_weights = {f"best/{key}": value.detach().clone() for key, value in weights.items()}
                    progress.update(best=scores["val"], best_epoch=epoch, scores=scores)
                watch(line, progress["best"], progress["best_epoch"])
                done = done or bool(t.patience and epoch - progress["best_epoch"] >= t.patience)
            if done:
                break
            if asked() or time.perf_counter() - saved > CHECKPOINT_SECONDS:
                lines.flush()
                progress.update(metrics=lines.tell(), seconds=time.perf_counter() - began)
                save()
                saved = time.perf_counter()
                if asked():
                    raise Interrupted
    progress["seconds"] = time.perf_counter() - began
    facts = {"identity": identity, "epoch": progress["best_epoch"], "scores": progress["scores"]}
    save_tensors(folder / "best.safetensors", {k.removeprefix("best/"): v for k, v in best_weights.items()}, facts)
    result = {
        "split": index,
        "seed": t.seed + index,
        "metric": task.metric,
        "best_epoch": progress["best_epoch"],
        "epochs": progress["epoch"],
        **progress["scores"],
        "seconds": round(progress["seconds"], 2),
        "parameters": num_parameters(model),
    }
    save()
    write_json(folder / "result.json", result)
    return result


CHECKPOINT_SECONDS = float(os.environ.get("COGNN_CHECKPOINT_SECONDS", "20"))


def _epoch(
    fabric: Fabric, model: Any, optimizer: Any, items: Items, train: Tensor, task: Any, lr: float, clip: float
) -> float:
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = lr
    total, count = 0.0, 0
    for batch, rows in items.training(train):
        optimizer.zero_grad()
        out = model(batch.x, batch.graph, batch.edge_attr)
        loss = metrics.loss(task, out[rows], items.y[batch.items[rows]])
        fabric.backward(loss)
        if clip:
            fabric.clip_gradients(model, optimizer, max_norm=clip)
        optimizer.step()
        total, count = total + loss.item() * len(rows), count + len(rows)
    return total / count


def _unwrapped(model: Any) -> nn.Module:
    return getattr(model, "module", model)


def _same_run(found: dict[str, Any], expected: dict[str, Any], path: Path) -> None:
    if found["data"] != expected["data"]:
        raise RunError(f"{path}: the dataset has changed since this run began; start a new one with --out")
    for key, value in expected["config"].items():
        if found["config"].get(key) != value:
            was = found["config"].get(key)
            raise RunError(f"{path}: this run has {key}={was!r}, not {value!r}; start a new one with --out")


@contextmanager
def _appending(path: Path, position: int) -> Iterator[Any]:
    """The log, cut back to what the saved state knows of."""
    with open(path, "a", encoding="utf-8") as file:
        file.truncate(position)
        file.seek(0, os.SEEK_END)
        yield file


@contextmanager
def _stop_when_asked() -> Iterator[Callable[[], bool]]:
    """Let the epoch end before Ctrl-C or a scheduler's SIGTERM takes effect; a second Ctrl-C does not wait."""
    asked: list[int] = []

    def note(number: int, _: Any) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: somebody else's signals
        before = {}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
