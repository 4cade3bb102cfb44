"""The training loop: one split of one dataset, from the first epoch or from its last checkpoint."""

import hashlib
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
from torch import Tensor

from cognn.config.options import Config, TrainConfig
from cognn.config.values import seconds
from cognn.data.dataset import Dataset
from cognn.data.links.messages import of_split
from cognn.errors import Diverged, FolderGone, Interrupted, RunError
from cognn.files.json import sealed, to_json, write_json
from cognn.files.locks import exclusive
from cognn.files.outputs import refuse_links
from cognn.files.tensors import save_tensors
from cognn.parallel.devices import all_reduce_sum, broadcast, make_fabric, on_rank_zero, sum_gradients
from cognn.train.batcher import Batcher, drop_edges, forward_all
from cognn.train.build import build_model, freeze_actions, num_parameters, set_execution
from cognn.train.checkpoint import TrainState, run_identity
from cognn.train.objective import Objective
from cognn.train.provenance import origin
from cognn.train.samplers import make_sampler

CHECKPOINT_SECONDS = float(os.environ.get("COGNN_CHECKPOINT_SECONDS", "20"))
PENALTY, MULTIPLIER_STEP = 100.0, 1.0
"""Weight of the squared excess over ``edge_budget``, and the step of its Lagrange multiplier."""
LOCK_SECONDS = 30.0
"""How long a split waits for another process that still trains it, such as the orphan of a killed command."""


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


EpochCallback = Callable[[Epoch, float, int], None]
"""Called after every evaluation with the line, the best validation score so far and its epoch."""


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


def train_split(
    config: Config, dataset: Dataset, index: int, folder: Path, data: str, callback: EpochCallback
) -> dict[str, Any]:
    """Train on one split to the end, resuming from the last checkpoint in ``folder``; returns its result.

    With several devices, every process calls this.  Rank 0 evaluates, calls back and writes.

    Args:
        config: The options of the run.
        dataset: The dataset to train on.
        index: Index of the split.
        folder: Folder of the split, for its log, checkpoints and result.
        data: Fingerprint of the dataset.
        callback: Called after every evaluation.
    """
    fabric = make_fabric(config.train)
    refuse_links(folder)
    busy = f"{folder}: another process is training this split; wait for it, or end it"
    with ExitStack() as lock:
        on_rank_zero(fabric, lambda: lock.enter_context(exclusive(folder / ".lock", busy, LOCK_SECONDS)))
        return _SplitTrainer(fabric, config, dataset, index, folder, data, callback).train()


class _SplitTrainer:
    """The training of one split; the arguments are those of :func:`train_split`."""

    def __init__(
        self,
        fabric: Fabric,
        config: Config,
        dataset: Dataset,
        index: int,
        folder: Path,
        data: str,
        callback: EpochCallback,
    ) -> None:
        t, dataset = config.train, of_split(dataset, index)
        self.fabric, self.config, self.task, self.index, self.callback = fabric, t, dataset.task, index, callback
        self.folder, self.checkpoint = folder, folder / "last" / "state.safetensors"
        self.identity = run_identity(config, data) | {"split": index}
        self.seed = t.seed + index

        torch.manual_seed(self.seed)
        model = build_model(config.model, dataset)
        set_execution(model, t)
        if t.freeze_actions:
            freeze_actions(model)
        kind = torch.optim.AdamW if t.optimizer == "adamw" else torch.optim.Adam
        fused = fabric.device.type == "cpu" and t.precision.endswith("true")  # one call instead of a dozen a parameter
        optimizer: Any = kind(model.parameters(), lr=t.lr, weight_decay=t.weight_decay, fused=fused)
        self.fabric_model, optimizer = fabric.setup(model, optimizer)
        if fabric.global_rank:  # equal initial weights, but other actions and dropout
            torch.manual_seed(self.seed + (fabric.global_rank << 32))

        sampler = make_sampler(config, dataset, folder.parent, data, fabric)
        dtype = torch.float64 if t.precision == "64-true" else torch.float32
        self.batcher = Batcher(dataset, t.batch_size, fabric.device, dtype, sampler)
        self.split = {name: dataset.labelled(part) for name, part in vars(dataset.splits[index]).items()}
        for name in ("train", "val"):
            if not len(self.split[name]):
                raise RunError(f"{dataset.name}: split {index} has no labelled {name} items; give it some")
        self.y, self.parts = dataset.y, self.split  # on the CPU, where scores are computed in double precision
        self.split = {name: part.to(fabric.device) for name, part in self.split.items()}
        self.objective = Objective(t, dataset, self.batcher.y[self.split["train"]])
        self.max_seconds, self.late = seconds(t.max_time), False
        self.state = TrainState(model, optimizer)

    def train(self) -> dict[str, Any]:
        """Train to the last epoch, until ``patience`` is exhausted, or until the time is over."""
        fabric, state = self.fabric, self.state
        state.restore(self.checkpoint, self.identity, fabric)
        self.began, saved = time.perf_counter() - state.seconds, time.perf_counter()
        self.late = state.seconds >= self.max_seconds
        writes = fabric.is_global_zero
        known = state.log_bytes, state.log_digest
        opened = _open_log(self.folder / "metrics.jsonl", *known) if writes else nullcontext()
        with _defer_signals() as stop_requested, opened as log:
            finished = self.finished()  # a resumed split may be
            while not finished:
                lr = learning_rate(self.config, state.epoch)
                loss = self.train_epoch(lr)
                self.late = time.perf_counter() - self.began >= self.max_seconds
                if writes and self.evaluation_due():
                    self.evaluate(loss, lr, log)
                # Processes differ in scores, clocks and signals, so they agree on what to do.
                stop = self.any_process(stop_requested())
                due = stop or time.perf_counter() - saved > CHECKPOINT_SECONDS
                finished, due = broadcast(fabric, (self.finished(), due))
                if finished or due:
                    self.save(log)
                    saved = time.perf_counter()
                if stop and not finished:
                    raise Interrupted
        result = self.write_result()
        if self.any_process(stop_requested()):  # in the last epoch: the next split must not start
            raise Interrupted
        return result

    def train_epoch(self, lr: float) -> float:
        """One pass over the training items; returns the mean loss over the items of all processes."""
        fabric, config, model, optimizer = self.fabric, self.config, self.fabric_model, self.state.optimizer
        model.train()
        for group in optimizer.param_groups:
            group["lr"] = lr
        total, count = 0.0, 0
        train, disjoint = self.split["train"], config.disjoint_train_ratio
        for rank_batch in self.batcher.train_batches(train, fabric, config.draws, disjoint):
            optimizer.zero_grad()
            share = 0.0  # this process's part of the expected share of kept edges
            if rank_batch is not None:
                batch, rows, weight = rank_batch
                batch = drop_edges(batch, config.drop_edge) if config.drop_edge else batch
                priced = bool(config.edge_price) or config.edge_budget is not None
                options = {"return_trace": True} if priced else {}
                with fabric.autocast(), _explain_batch_norm():
                    out = batch.into(self.state.model, **options)
                out, trace = out if options else (out, None)
                loss = self.objective.loss(out[rows], self.batcher.y[batch.items[rows]])
                price: Tensor | float = 0.0
                if trace is not None:
                    kept = trace.expected_kept().mean()
                    price, share = self.price(kept), weight * kept.item()
                fabric.backward((loss + price) * weight)
                total, count = total + loss.item() * len(rows), count + len(rows)
            sum_gradients(fabric, model)
            if config.clip:
                fabric.clip_gradients(model, optimizer, max_norm=config.clip)
            optimizer.step()
            if config.edge_budget is not None:
                share = float(all_reduce_sum(fabric, torch.tensor(share)))
                self.state.multiplier += MULTIPLIER_STEP * (share - config.edge_budget)
        total, count = all_reduce_sum(fabric, torch.tensor([total, count], dtype=torch.float64)).tolist()
        self.state.epoch += 1
        if not math.isfinite(total / count):
            raise self.diverged(f"the loss is {total / count} at epoch {self.state.epoch}")
        return total / count

    def price(self, kept: Tensor) -> Tensor:
        r"""What the expected share of kept edges adds to the loss.

        An augmented Lagrangian holds a budget :math:`b`: :math:`\lambda c + \rho c^2 / 2` with :math:`c` the excess
        over :math:`b`; :math:`\lambda` grows by a step of :math:`c` after every update of the weights.
        """
        if self.config.edge_budget is None:
            return self.config.edge_price * kept
        excess = kept - self.config.edge_budget
        return self.state.multiplier * excess + PENALTY / 2 * excess**2

    def evaluation_due(self) -> bool:
        """Whether this epoch is evaluated: every ``eval_every`` epochs, and at the end."""
        return self.late or self.state.epoch % self.config.eval_every == 0 or self.state.epoch == self.config.epochs

    def evaluate(self, loss: float, lr: float, log: Any) -> None:
        """Score all parts of the split, log a line, and keep the weights if they are the best."""
        config, state, task = self.config, self.state, self.task
        # Tracing the actions takes a little longer, so not every evaluation does.
        trace = state.epoch == config.epochs or (state.epoch // config.eval_every) % 10 == 1
        with self.objective.in_units(state.model):
            with self.fabric.autocast():
                out, kept = forward_all(state.model, self.batcher, config, trace=trace and not config.samples)
            if not bool(out.isfinite().all()):
                raise self.diverged(f"an output is not finite after epoch {state.epoch}")
            scores, facts = self.objective.score(out.cpu(), self.y, self.parts)
            line = Epoch(state.epoch, loss, lr, **scores, seconds=time.perf_counter() - self.began, kept=kept)
            log.write(to_json(asdict(line)) + "\n")
            sign = 1 if task.higher_is_better else -1
            if state.best is None or math.isnan(state.best) or sign * scores["val"] > sign * state.best:
                state.keep_best(scores, facts)
        assert state.best is not None
        self.callback(line, state.best, state.best_epoch)

    def finished(self) -> bool:
        """Whether the last epoch is reached, ``patience`` is exhausted, or the time is over."""
        config, epoch = self.config, self.state.epoch
        waited = epoch - self.state.best_epoch if epoch % config.eval_every == 0 else 0
        return self.late or epoch == config.epochs or bool(config.patience and waited >= config.patience)

    def save(self, log: Any) -> None:
        """Write a checkpoint, unless a weight has diverged."""
        state = self.state
        if self.fabric.is_global_zero:
            if not all(bool(weight.isfinite().all()) for weight in state.model.state_dict().values()):
                raise self.diverged(f"a weight is not finite after epoch {state.epoch}")
            self.require_folder(log)
            log.flush()
            os.fsync(log.fileno())  # after a power failure the log must have all lines that the checkpoint counts
            state.log_bytes, state.log_digest = log.tell(), log_digest(self.folder / "metrics.jsonl", log.tell())
        state.seconds = time.perf_counter() - self.began
        state.save(self.checkpoint, self.identity, self.fabric)

    def write_result(self) -> dict[str, Any]:
        """The result of the split; rank 0 writes it and the best weights."""
        state = self.state
        result = {
            "split": self.index,
            "seed": self.seed,
            "metric": self.task.metric,
            "best_epoch": state.best_epoch,
            "epochs": state.epoch,
            **(state.best_scores or {}),
            **state.best_facts,
            **self.objective.facts(),
            "seconds": round(state.seconds, 2),
            "parameters": num_parameters(state.model),
            "threads": torch.get_num_threads(),
            **origin(),
        }
        if self.fabric.is_global_zero:
            facts = {"identity": self.identity, "epoch": state.best_epoch, "scores": state.best_scores}
            save_tensors(self.folder / "best.safetensors", state.best_weights, facts)
            write_json(self.folder / "result.json", sealed(result))
        return result

    def any_process(self, flag: bool) -> bool:
        """Whether ``flag`` is set on any process."""
        return bool(all_reduce_sum(self.fabric, torch.tensor(float(flag))))

    def require_folder(self, log: Any) -> None:
        """Refuse to save where the folder was deleted or moved: it would hold a part of a run."""
        path = self.folder / "metrics.jsonl"
        if not path.exists() or not os.path.samestat(os.fstat(log.fileno()), path.stat()):
            raise folder_gone(self.folder.parent, f"before epoch {self.state.epoch} of split {self.index} was saved")

    def diverged(self, what: str) -> Diverged:
        """The error for a number that is not finite."""
        return Diverged(f"split {self.index}: {what}; lower lr or set clip")


def folder_gone(folder: Path, when: str) -> FolderGone:
    """The error for a run whose folder is not there any more."""
    return FolderGone(
        f"{folder}: was deleted or moved {when}, so the training has no result; resume it where it is now, or start it"
        " again"
    )


@contextmanager
def _explain_batch_norm() -> Iterator[None]:
    """Turn PyTorch's error for batch norm over a single node into one that names the option."""
    try:
        yield
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise RunError("norm: batch needs mini-batches of two nodes and more; use norm=layer, or larger ones") from None


def log_digest(path: Path, size: int) -> str:
    """A digest of the first ``size`` bytes of a log."""
    with path.open("rb") as file:
        return hashlib.blake2b(file.read(size), digest_size=16).hexdigest()


@contextmanager
def _open_log(path: Path, size: int, digest: str) -> Iterator[Any]:
    """The log, truncated to ``size``, which the checkpoint knows, or to complete lines if it is shorter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        if path.stat().st_size < size:
            size = path.read_bytes().rfind(b"\n") + 1
        elif digest and log_digest(path, size) != digest:
            raise RunError(f"{path}: is not what was written; delete {path.parent} to train this split again")
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        yield file


@contextmanager
def _defer_signals() -> Iterator[Callable[[], bool]]:
    """Let the epoch end before Ctrl-C or a scheduler's SIGTERM takes effect; a second Ctrl-C stops at once."""
    received: list[int] = []

    def receive(number: int, _: Any) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(number)

    try:
        before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # signal handlers can be set in the main thread only
        before = {}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
