"""The training loop: one split of one dataset, from the first epoch or from where it stopped."""

import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.core.seeding import random_state, set_random_state
from cognn.data.dataset import Dataset, Task
from cognn.errors import Diverged, Interrupted, RunError
from cognn.files.json import to_json, write_json
from cognn.files.locks import exclusive
from cognn.files.tensors import load_tensors, save_tensors
from cognn.parallel.devices import agreed, first, gathered, make_fabric, sum_gradients, summed
from cognn.train import metrics
from cognn.train.batcher import Items, outputs, thinned
from cognn.train.build import build_model, compute, freeze_actions, num_parameters
from cognn.train.checkpoint import load_weights, pack_optimizer, unpack_optimizer
from cognn.train.minibatches import minibatches
from cognn.train.provenance import origin

CHECKPOINT_SECONDS = float(os.environ.get("COGNN_CHECKPOINT_SECONDS", "20"))
WAIT = 30.0
"""Seconds that a split waits for another process to let go of it."""
_REMEDY = "; lower lr or set clip"


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


def train_split(config: Config, dataset: Dataset, index: int, folder: Path, data: str, watch: Watch) -> dict[str, Any]:
    """Train on one split until done, or on from ``folder``'s last state; ``data`` is the dataset's fingerprint.

    With several devices every one of their processes calls this; the first of them evaluates, watches and writes.
    """
    fabric = make_fabric(config.train)
    busy = f"{folder}: another process is training this split; wait for it, or end it"
    with ExitStack() as held:  # an orphan of a command that was killed ends its epoch first
        first(fabric, lambda: held.enter_context(exclusive(folder / ".lock", busy, WAIT)))
        return _train_split(fabric, config, dataset, index, folder, data, watch)


def _train_split(
    fabric: Fabric, config: Config, dataset: Dataset, index: int, folder: Path, data: str, watch: Watch
) -> dict[str, Any]:
    t, task = config.train, dataset.task
    torch.manual_seed(t.seed + index)
    model = build_model(config.model, dataset)
    compute(model, t)
    if t.freeze_actions:
        freeze_actions(model)
    kind = torch.optim.AdamW if t.optimizer == "adamw" else torch.optim.Adam
    fused = fabric.device.type == "cpu" and t.precision.endswith("true")  # one call instead of a dozen a parameter
    optimizer: Any = kind(model.parameters(), lr=t.lr, weight_decay=t.weight_decay, fused=fused)
    model, optimizer = fabric.setup(model, optimizer)
    if fabric.global_rank:  # the same weights, but actions and dropout of its own
        torch.manual_seed(t.seed + index + (fabric.global_rank << 32))
    some = minibatches(config, dataset, folder.parent, data, fabric)
    dtype = torch.float64 if t.precision == "64-true" else torch.float32
    items = Items(dataset, t.batch_size, fabric.device, dtype, some)
    split = {name: dataset.labelled(part) for name, part in vars(dataset.splits[index]).items()}
    for name in ("train", "val"):
        if not len(split[name]):
            raise RunError(f"{dataset.name}: split {index} has no labelled {name} items; give it some")
    split = {name: part.to(fabric.device) for name, part in split.items()}

    state, sign = folder / "last" / "state.safetensors", 1 if task.higher_is_better else -1
    progress: dict[str, Any] = {"epoch": 0, "best_epoch": 0, "best": None, "scores": None, "seconds": 0.0, "metrics": 0}
    identity = identify(config, data) | {"split": index}
    best_weights: dict[str, Tensor] = {}
    if state.exists():
        tensors, facts = load_tensors(state)
        same_run(facts["identity"], identity, state)
        load_weights(_unwrapped(model), tensors, "model/", state)
        unpack_optimizer(optimizer, tensors)
        best_weights = {key: value for key, value in tensors.items() if key.startswith("best/")}
        set_random_state(fabric.device, tensors[_rng(fabric.global_rank)])
        progress = facts["progress"]
    if agreed(fabric, progress["epoch"]) != progress["epoch"]:
        raise RunError(f"{state}: process {fabric.global_rank} does not see it as the first one does; share the folder")

    def save(lines: Any) -> None:
        generators = {_rng(rank): bits for rank, bits in enumerate(gathered(fabric, random_state(fabric.device)))}
        if not fabric.is_global_zero:
            return
        weights = {f"model/{key}": value for key, value in _unwrapped(model).state_dict().items()}
        if not all(bool(value.isfinite().all()) for value in weights.values()):
            raise Diverged(f"split {index}: a weight is not finite after epoch {progress['epoch']}{_REMEDY}")
        lines.flush()
        os.fsync(lines.fileno())  # a power cut must not leave a state that knows more of the log than there is
        progress.update(metrics=lines.tell(), seconds=time.perf_counter() - began)
        tensors = weights | pack_optimizer(optimizer) | best_weights | generators
        save_tensors(state, tensors, {"identity": identity, "progress": progress})

    def done() -> bool:
        epoch = progress["epoch"]
        late = t.patience and epoch % t.eval_every == 0 and epoch - progress["best_epoch"] >= t.patience
        return bool(late) or epoch == t.epochs

    def evaluate(loss: float, lr: float, lines: Any) -> None:
        nonlocal best_weights
        epoch = progress["epoch"]
        look = epoch == t.epochs or (epoch // t.eval_every) % 10 == 1  # a trace costs a little: not every time
        with fabric.autocast():
            out, kept = outputs(_unwrapped(model), items, t, trace=look and not t.samples)
        if not bool(out.isfinite().all()):
            raise Diverged(f"split {index}: an output is not finite after epoch {epoch}{_REMEDY}")
        scores = {name: metrics.score(task, out[part], items.y[part]) for name, part in split.items()}
        line = Epoch(epoch, loss, lr, **scores, seconds=time.perf_counter() - began, kept=kept)
        lines.write(to_json(asdict(line)) + "\n")
        better = progress["best"] is None or sign * scores["val"] > sign * progress["best"]
        if better or math.isnan(progress["best"]):
            weights = _unwrapped(model).state_dict()
            best_weights = {f"best/{key}": value.detach().clone() for key, value in weights.items()}
            progress.update(best=scores["val"], best_epoch=epoch, scores=scores)
        watch(line, progress["best"], progress["best_epoch"])

    began, saved = time.perf_counter() - progress["seconds"], time.perf_counter()
    writing = _appending(folder / "metrics.jsonl", progress["metrics"]) if fabric.is_global_zero else nullcontext()
    with _stop_when_asked() as asked, writing as lines:
        ends = done()
        while not ends:
            lr = learning_rate(t, progress["epoch"])
            loss = _epoch(fabric, model, optimizer, items, split["train"], task, lr, t)
            progress["epoch"] += 1
            if not math.isfinite(loss):
                raise Diverged(f"split {index}: the loss is {loss} at epoch {progress['epoch']}{_REMEDY}")
            if fabric.is_global_zero and (progress["epoch"] % t.eval_every == 0 or progress["epoch"] == t.epochs):
                evaluate(loss, lr, lines)
            # What hangs on a score, a clock or a signal is decided once for all processes.
            stop = bool(summed(fabric, torch.tensor(float(asked()))))
            due = stop or time.perf_counter() - saved > CHECKPOINT_SECONDS
            ends, due = agreed(fabric, (done(), due))
            if due or ends:
                save(lines)
                saved = time.perf_counter()
            if stop and not ends:
                raise Interrupted
    result = {
        "split": index,
        "seed": t.seed + index,
        "metric": task.metric,
        "best_epoch": progress["best_epoch"],
        "epochs": progress["epoch"],
        **(progress["scores"] or {}),
        "seconds": round(progress["seconds"], 2),
        "parameters": num_parameters(model),
        "threads": torch.get_num_threads(),
        **origin(),
    }
    if fabric.is_global_zero:
        facts = {"identity": identity, "epoch": progress["best_epoch"], "scores": progress["scores"]}
        save_tensors(folder / "best.safetensors", {k.removeprefix("best/"): v for k, v in best_weights.items()}, facts)
        write_json(folder / "result.json", result)
    if bool(summed(fabric, torch.tensor(float(asked())))):  # too late for this one, but not for what would follow
        raise Interrupted
    return result


def _epoch(
    fabric: Fabric, model: Any, optimizer: Any, items: Items, train: Tensor, task: Task, lr: float, config: TrainConfig
) -> float:
    """One pass over the training items; the mean loss over them, of all processes."""
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = lr
    total, count = 0.0, 0
    for share in items.training(train, fabric, config.draws):
        optimizer.zero_grad()
        if share is not None:
            batch, rows, weight = share
            batch = thinned(batch, config.drop_edge) if config.drop_edge else batch
            options = {"return_trace": True} if config.edge_price else {}
            with fabric.autocast(), _enough_nodes():
                out = _unwrapped(model)(batch.x, batch.graph, batch.edge_attr, **options)
            out, trace = out if options else (out, None)
            loss = metrics.loss(task, out[rows], items.y[batch.items[rows]])
            price = 0.0 if trace is None else config.edge_price * trace.expected_kept().mean()
            fabric.backward((loss + price) * weight)
            total, count = total + loss.item() * len(rows), count + len(rows)
        sum_gradients(fabric, model)
        if config.clip:
            fabric.clip_gradients(model, optimizer, max_norm=config.clip)
        optimizer.step()
    total, count = summed(fabric, torch.tensor([total, count], dtype=torch.float64)).tolist()
    return total / count


@contextmanager
def _enough_nodes() -> Iterator[None]:
    """Batch norm has no spread to divide by where a mini-batch is one node."""
    try:
        yield
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise RunError("norm: batch needs mini-batches of two nodes and more; use norm=layer, or larger ones") from None


def _rng(rank: int) -> str:
    return f"rng/{rank}" if rank else "rng"


def _unwrapped(model: Any) -> nn.Module:
    return getattr(model, "module", model)


def identify(config: Config, data: str) -> dict[str, Any]:
    """What a model was trained by and on, ``data`` being the fingerprint of the dataset."""
    return {"config": asdict(config.model) | asdict(config.train), "data": data}


def same_run(found: dict[str, Any], expected: dict[str, Any], path: Path) -> None:
    """Refuse to go on with a run, saved in ``path``, whose dataset or options are no longer the same."""
    if found["data"] != expected["data"]:
        raise RunError(f"{path}: the dataset has changed since this run began; start a new one with --out")
    defaults = asdict(ModelConfig()) | asdict(TrainConfig())  # for a run that began before an option was there
    for key, value in expected["config"].items():
        was = found["config"].get(key, defaults.get(key))
        if was != value:
            raise RunError(f"{path}: this run has {key}={was!r}, not {value!r}; start a new one with --out")


@contextmanager
def _appending(path: Path, position: int) -> Iterator[Any]:
    """The log, cut back to what the saved state knows of, and to whole lines if it is shorter than that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        if path.stat().st_size < position:
            position = path.read_bytes().rfind(b"\n") + 1
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
