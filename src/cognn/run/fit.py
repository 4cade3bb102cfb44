"""``cognn train`` in Python: from data to trained models in one call."""

import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cognn.config.edge_tables import edges_text
from cognn.config.metrics import higher_is_better
from cognn.config.options import Config, TrainConfig
from cognn.config.run_folder import discarded_on_failure, read_summary, remove_run_leftovers, run_config
from cognn.config.toml import load_config
from cognn.core.seeding import seeded
from cognn.data.dataset import Dataset
from cognn.data.defaults import own_defaults
from cognn.data.links.given import with_pairs
from cognn.data.links.items import as_links, is_link
from cognn.data.links.messages import of_split
from cognn.data.load import MEMORY, from_memory, load_data
from cognn.data.tables.targets import with_metric
from cognn.errors import ConfigError, DataError, Interrupted, RunError
from cognn.files.outputs import refuse_links
from cognn.files.tensors import load_tensors, save_tensors
from cognn.nn.actions import ActionSpace
from cognn.nn.options.pretrained import eval_actions
from cognn.nn.options.resolve import is_remembered
from cognn.parallel.devices import find_device
from cognn.run.calibrate import Calibration, both_classes, check_calibration, fit_calibration
from cognn.run.curves.split import with_tensorboard
from cognn.run.log_tail import RunCallback
from cognn.run.new_data import as_new
from cognn.run.python_options import make_config, python_words
from cognn.run.train import create_run, load_again, run_schema, train_run
from cognn.train import metrics
from cognn.train.batcher import Batcher, forward_all
from cognn.train.build import build_model, cooperative
from cognn.train.checkpoint import fingerprint, load_weights

__all__ = ["Fitted", "Prediction", "fit", "open_run", "precision", "predict"]


@dataclass
class Prediction:
    """Predictions for every item of a dataset."""

    value: Tensor
    """Probabilities ``(items, classes)``, of labels ``(items, labels)``, or values ``(items, targets)``.

    The nodes act as they do in the scores of the run.
    """
    spread: Tensor | None
    """Their standard deviation over draws of the actions; None without draws."""
    actions: Tensor | None
    """Action codes ``(num_layers, N)`` of one pass, or ``(num_layers, N, heads)``, if asked for."""
    space: ActionSpace | None = None
    """What the codes mean; None for the four actions of nodes."""
    region: Tensor | None = None
    """With a coverage, sets of classes as booleans ``(items, classes)``, or intervals ``(items, targets, 2)``."""
    decided: Tensor | None = None
    """Of a binary task, whether each item is predicted to be of the second class, by the threshold of the run."""


@dataclass
class Fitted:
    """A finished run."""

    folder: Path
    config: Config
    result: dict[str, Any]
    """As in ``result.json``: scores of every split, their mean and standard deviation."""
    data: Dataset | None = field(default=None, repr=False)
    device: torch.device = field(default_factory=partial(torch.device, "cpu"))
    """Where its models compute."""

    @property
    def dataset(self) -> Dataset:
        """The training data, loaded on first use; predictions on a new graph do not need it."""
        if self.data is None:
            self.data = self._same(load_again(self.folder, self.config))
        return self.data

    @property
    def best_split(self) -> int:
        """The split with the best validation score."""
        sign = 1 if higher_is_better(self.result["metric"]) else -1
        return int(max(self.result["splits"], key=lambda split: sign * split["val"])["split"])

    def model(self, split: int | None = None, dataset: Dataset | None = None) -> nn.Module:
        """The trained model of a split (by default the best) at its best epoch, in evaluation mode.

        Its ``eval_actions`` is the option ``actions`` of the run.

        Args:
            split: The split.
            dataset: A dataset with the same columns, for the widths of the model; by default the training data.
        """
        path = self._weights(split)
        model = build_model(self.config.model, dataset or self.dataset)
        load_weights(model, load_tensors(path)[0], "", path)
        if (inner := cooperative(model)) is not None:
            inner.eval_actions = eval_actions(self.config.train) or inner.eval_actions
        return model.to(self.device).eval()

    def predict(
        self,
        data: Any = None,
        split: int | None = None,
        samples: int = 0,
        actions: bool = False,
        *,
        edges: str | Path | Mapping[str, str | Path] = "",
        graphs: str | Path = "",
        calibrate: bool = False,
        coverage: float | None = None,
        pairs: Any = None,
    ) -> Prediction:
        """Predict every item of the training data or of new data; the same call gives the same result.

        A run on links predicts ``pairs``.  On its own graph, messages use the edges that it was trained with, which are
        not those of validation and test; on a graph that is given, they use all edges.

        Args:
            data: What :func:`fit` takes: files, a PyG ``Data``, a list of them, a ``HeteroData``, or a ``Dataset``; new
                data needs no targets.  By default the training data.  Of a ``HeteroData``, the nodes of the type with
                the target are predicted, and ``actions`` are those of all nodes, in the order of the types.
            split: The split whose model is used; by default the one with the best validation score.
            samples: Draws of the actions for the spread; 0 is none.
            actions: Whether to return the actions of the nodes.
            edges: The edge table that goes with a node table, or a dictionary of a table for every relation.
            graphs: The table of graphs that goes with a node table.
            calibrate: Whether to scale the probabilities by a temperature that was fitted to the validation items.
            coverage: A probability with which the ``region`` of a prediction contains the truth, by split conformal
                prediction on the validation items; None for no regions.
            pairs: In a run on links, a table with the ids of both ends, or their positions ``(2, P)``.
        """
        with python_words():
            dataset = with_pairs(self._seen(self.read(data, edges, graphs), split), pairs)
            held_out = self.calibration(dataset.task.kind, split, calibrate, coverage)
            with seeded(self.seed(split), self.device):
                model = self.model(split, dataset)
                found = predict(model, dataset, self.config.train, samples, actions, held_out)
        if dataset.target_nodes is not None:
            some = slice(*dataset.target_nodes)
            found.value, found.spread = found.value[some], None if found.spread is None else found.spread[some]
            found.decided = None if found.decided is None else found.decided[some]
        found.region = held_out.region(found.value)
        if dataset.task.kind == "binary":  # the model has one output for two classes
            found.value = both_classes("binary", found.value)
            found.spread = None if found.spread is None else found.spread.expand(-1, 2)
        return found

    def calibration(self, kind: str, split: int | None, calibrate: bool, coverage: float | None) -> Calibration:
        """How outputs become predictions; see :meth:`predict`."""
        check_calibration(kind, calibrate, coverage)
        if not calibrate and coverage is None:
            return Calibration(kind, threshold=self.threshold(split))
        fitted = fit_calibration(kind, *self.held_out(split), calibrate, coverage)
        return fitted._replace(threshold=self.threshold(split))

    def held_out(self, split: int | None = None) -> tuple[Tensor, Tensor]:
        """The outputs of a split's model for its validation items, and their targets.

        They are saved in the run folder, so that only the first call needs the training data.
        """
        index = self._index(split)
        path = self.folder / f"split-{index}" / "held-out.safetensors"
        if not path.exists():
            some = self.dataset.labelled(self.dataset.splits[index].val)
            found = {"out": self.outputs(self.dataset, split)[some].float(), "y": self.dataset.y[some]}
            with suppress(RunError):  # a run folder may be read-only
                refuse_links(path)
                save_tensors(path, found, {})
        else:
            found = load_tensors(path, f"delete {path} to compute it again")[0]
        return found["out"], found["y"]

    def score(
        self,
        data: Any = None,
        split: int | None = None,
        metric: str = "",
        *,
        edges: str | Path | Mapping[str, str | Path] = "",
        graphs: str | Path = "",
    ) -> float:
        """The metric on all items of new data that have a target, or on the test items of the split.

        Args:
            data: What :func:`fit` takes, with targets; by default the training data, of which the test items of the
                split count.
            split: The split whose model is used; by default the one with the best validation score.
            metric: Another score than that of the run.
            edges: The edge table that goes with a node table, or a dictionary of a table for every relation.
            graphs: The table of graphs that goes with a node table.
        """
        with python_words():
            dataset = self.read(data, edges, graphs, targets=True)
            task = with_metric(dataset.task, metric)
            out = self.outputs(dataset, split)
        some = torch.arange(dataset.num_items) if data is not None else dataset.splits[self._index(split)].test
        some = dataset.labelled(some)
        if not len(some):
            raise DataError("data: no item has a target, so there is no score; give targets, or use predict")
        return metrics.score(task, out[some], dataset.y[some], self.threshold(split))

    def outputs(self, dataset: Dataset, split: int | None = None, samples: int = 0) -> Tensor:
        """The outputs of a split's model for all items, as training scores them, or the mean of that many draws."""
        config = replace(self.config.train, samples=samples or self.config.train.samples)
        items = Batcher(self._seen(dataset, split), config.batch_size, self.device)
        with seeded(self.seed(split), self.device), precision(config, self.device):
            return forward_all(self.model(split, dataset), items, config)[0].cpu()

    def read(
        self,
        data: Any,
        edges: str | Path | Mapping[str, str | Path] = "",
        graphs: str | Path = "",
        targets: bool = False,
    ) -> Dataset:
        """New data as the run read its own, and None as its own; with ``targets``, those of files are read too."""
        if data is None:
            return self.dataset
        needed = run_schema(self.folder) is None and not isinstance(data, str | Path | Dataset)
        known = self.dataset if needed else None
        dataset = as_new(self.folder, data, known, edges_text(edges), str(graphs), targets)
        return as_links(dataset) if is_link(self.config.data.task) and dataset.links is None else dataset

    def _seen(self, dataset: Dataset, split: int | None) -> Dataset:
        """A dataset as the model of a split sees it: of its own links, those to be predicted are taken out."""
        return of_split(dataset, self._index(split)) if dataset is self.data else dataset

    def seed(self, split: int | None = None) -> int:
        """The seed of a split (by default the best), with which it was trained and is predicted."""
        return int(self._result(split)["seed"])

    def threshold(self, split: int | None = None) -> float:
        """The probability above which the model of a split (by default the best) predicts the second of two classes."""
        return float(self._result(split).get("threshold", 0.5))

    def _result(self, split: int | None) -> dict[str, Any]:
        index = self._index(split)
        return next(result for result in self.result["splits"] if result["split"] == index)

    def _index(self, split: int | None) -> int:
        trained = [result["split"] for result in self.result["splits"]]
        if split is not None and split not in trained:
            raise RunError(f"split: this run trained {', '.join(map(str, trained))}, got {split}")
        return self.best_split if split is None else split

    def _weights(self, split: int | None) -> Path:
        return self.folder / f"split-{self._index(split)}" / "best.safetensors"

    def _same(self, dataset: Dataset) -> Dataset:
        """Refuse changed data: its columns would be scaled, and its items split, differently."""
        if load_tensors(self._weights(None))[1]["identity"]["data"] != fingerprint(dataset):
            raise RunError(f"{self.folder}: the dataset has changed since this run; predict it as a new graph")
        return dataset


def precision(config: TrainConfig, device: torch.device) -> AbstractContextManager[object]:
    """Autocast as in the scores of a run; double precision is not repeated, because it does not show in them."""
    return torch.autocast(device.type, torch.bfloat16) if config.precision.endswith("mixed") else nullcontext()


def check_draws(samples: int) -> None:
    """Reject a single draw: its standard deviation is undefined."""
    if samples < 0 or samples == 1:
        raise ConfigError(f"samples: expected 0, or 2 and more for a spread, got {samples}")


@torch.no_grad()
def predict(
    model: nn.Module,
    dataset: Dataset,
    config: TrainConfig,
    samples: int,
    actions: bool,
    calibration: Calibration | None = None,
) -> Prediction:
    """Predict every item as training scores it, and the spread over ``samples`` draws of the actions.

    It computes on the device of the model; the predictions are on the CPU.
    """
    check_draws(samples)
    device = next(model.parameters()).device
    items, kind = Batcher(dataset, config.batch_size, device), dataset.task.kind
    calibration = calibration or Calibration(kind)
    values = calibration.values
    spreads, codes = [], []
    with precision(config, device):
        out = forward_all(model, items, config)[0].float().cpu()
        value = values(out)
        for batch in items.all_batches() if cooperative(model) is not None else []:
            if samples:
                draws = [batch.into(model, actions="sample").float().cpu() for _ in range(samples)]
                spreads.append(torch.stack([values(draw) for draw in draws]).std(0))
            if actions:
                codes.append(batch.into(model, actions=eval_actions(config), return_trace=True)[1].actions.cpu())
    spread, acted = (torch.cat(spreads) if spreads else None), (torch.cat(codes, dim=1) if codes else None)
    inner = cooperative(model)
    space = None if inner is None else inner.space
    return Prediction(value, spread, acted, space, decided=calibration.decide(out))


def open_run(folder: str | Path, data: Any = None, device: str = "cpu") -> Fitted:
    """Open a finished run.

    Args:
        folder: The folder of the run.
        data: The training data, if it was given in memory; files and known datasets are loaded again.
        device: Where its models compute: ``"cpu"``, ``"cuda"``, ``"mps"``, or ``"auto"``.
    """
    folder = Path(folder)
    config = run_config(folder)
    if not (folder / "result.json").exists():
        raise RunError(
            f"{folder}: this run is not finished; resume it: cognn train --resume {folder}, or"
            f" cognn.fit(resume={str(folder)!r})"
        )
    remove_run_leftovers(folder)
    fitted = Fitted(folder, config, read_summary(folder), device=find_device(device))
    if data is not None:
        fitted.data = fitted._same(_dataset(data, config))
    return fitted


def fit(
    data: Any = None,
    out: str | Path | None = None,
    jobs: int = 1,
    report: RunCallback | None = None,
    *,
    recipe: str | Path | None = None,
    resume: str | Path | None = None,
    log: str = "",
    tensorboard: bool = False,
    **options: Any,
) -> Fitted:
    """Train on a known dataset, your own files, or data in memory, with the options of ``cognn train``.

    .. code-block:: python

        fitted = cognn.fit("minesweeper-board", env="mean", action="sum", splits="0", epochs=100)
        fitted = cognn.fit("nodes.csv", edges="edges.csv", target="label", directed=False)
        fitted = cognn.fit(data, task="multiclass", random_splits=5, seed=1)  # data: of PyG
        fitted.result["test"]["mean"], fitted.score(data), fitted.predict(data).value

    ``env``, ``action`` and ``act`` also take what :class:`~cognn.CoGNN` takes: a layer class of PyG, a function, a
    module.  A run with a function cannot be opened by another process; one with a class of PyG can.

    Args:
        data: A name (``cognn data list``), a path, a PyG ``Data``, a list of them, a ``HeteroData`` or a dataset of
            PyG's, or a :class:`~cognn.data.dataset.Dataset`; a recipe can name it too, and a resumed run knows its own.
        out: Folder of the run; by default a new one among the temporary files.
        jobs: Splits to train at once.
        report: Called after every evaluation with split, metrics, best validation score and its epoch.
        recipe: TOML file with options, or the name of a recipe that comes with cognn; options given here win.
        resume: Folder of a run to resume, with its own options.
        log: Programs that get the curves too: ``"tensorboard"``, ``"wandb"``, ``"mlflow"``, or several with commas.
        tensorboard: The same as ``log="tensorboard"``.
        options: Options of the data, the model and the training by their names; ``preset="authors"`` starts from those
            of the paper's script.
    """
    with python_words():
        return _fit(data, out, jobs, report, recipe, resume, with_tensorboard(log, tensorboard), options)


def _fit(
    data: Any,
    out: str | Path | None,
    jobs: int,
    report: RunCallback | None,
    recipe: str | Path | None,
    resume: str | Path | None,
    log: str,
    options: dict[str, Any],
) -> Fitted:
    if jobs < 1:
        raise ConfigError(f"jobs: expected 1 or more, got {jobs}")
    if resume is not None:
        own = {"recipe": recipe, "out": out, "data": data if isinstance(data, str | Path) else None}
        given = [*options, *(name for name, value in own.items() if value is not None)]
        if given:
            raise ConfigError(f"{given[0]}: a resumed run keeps its own options; leave it out, or start a new run")
        folder = Path(resume)
        config = run_config(folder)
        dataset = _dataset(data, config)
    else:
        config = make_config(None if recipe is None else load_config(recipe), **options)
        if data is not None:
            if options.get("dataset"):
                raise ConfigError(f"dataset: {options['dataset']!r} besides the data itself; give one of them")
            config.data.dataset = str(data) if isinstance(data, str | Path) else MEMORY
        config.data = own_defaults(config.data, None if isinstance(data, str | Path) else data)
        dataset = _dataset(data, config)
        folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="cognn-"))
    named = (config.model.env, config.model.action, config.model.act, config.model.action_act or "")
    layers = "layers from memory" if any(map(is_remembered, named)) else ""
    what = "data from memory" if config.data.dataset == MEMORY else layers
    for name, count in (("jobs", jobs), ("devices", config.train.devices)) if what else ():
        if count > 1:
            raise ConfigError(f"{name}: {what} cannot be handed to other processes; use {name}=1")
    try:
        with discarded_on_failure(folder) if resume is None else nullcontext():
            if resume is None:
                create_run(config, folder, dataset)
            return Fitted(folder, config, train_run(folder, jobs, report, dataset, log), dataset)
    except Interrupted:
        raise Interrupted(f"stopped; resume with cognn.fit(resume={str(folder)!r})") from None


def _dataset(data: Any, config: Config) -> Dataset:
    if data is None or isinstance(data, str | Path):
        return load_data(config.data)
    return from_memory(data, config.data)
