"""Models in a folder, in the layout of ``huggingface_hub``: ``config.json`` and ``model.safetensors``.

``config.json`` holds the options of the constructor.  A model behind an encoder of categories has one key more,
``encoder``.  ``schema.json`` holds how the tables of the training data were read.  The folder of a run is read as well.
"""

import json
import re
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from cognn.config.metrics import higher_is_better
from cognn.core.seeding import seeded
from cognn.errors import RunError
from cognn.files.atomic import write
from cognn.files.json import read_json, sealed
from cognn.files.tensors import check_digest, pack_tensors
from cognn.nn.options.constructor import Unnamed

if TYPE_CHECKING:
    from cognn.config.options import Config, ModelConfig, TrainConfig

CONFIG, WEIGHTS, SCHEMA = "config.json", "model.safetensors", "schema.json"
CHANGEABLE = {"eval_actions", "dropout", "input_dropout", "compile", "checkpoint"}
"""The options of a saved model that do not change its weights."""
BASES = {"sumgnn": "sum", "meangnn": "mean"}
"""The baselines that are a Co-GNN without actions, and their layer."""


def model_options(model: nn.Module) -> dict[str, Any]:
    """What ``config.json`` says of a model."""
    inner: Any = getattr(model, "model", model)  # maybe behind an encoder
    options = inner.options | {"in_channels": inner.in_channels, "eval_actions": inner.eval_actions}
    for name, value in options.items():
        if isinstance(value, Unnamed):
            raise RunError(f"{name}: {value} is an object without a name and cannot be saved; use a PyG class")
    return options if inner is model else options | {"encoder": model.encoder_options()}  # type: ignore[operator]


def config_json(options: dict[str, Any]) -> bytes:
    """The options as the content of ``config.json``."""
    return (json.dumps(options, indent=2) + "\n").encode()


def config_options(config: "ModelConfig") -> dict[str, Any]:
    """The options of :class:`~cognn.CoGNN` in the config of a run, without the sizes of the data and the pool."""
    names = {f.name for f in fields(config)} - {"model", "pool", "decoder", "heads", "alpha", "theta"}
    options = {name: getattr(config, name) for name in names}
    if config.model in BASES:
        options |= {"env": BASES[config.model], "action": "none"}
    options |= {name: None for name in ("action", "norm", "residual") if options[name] == "none"}
    options["action_heads"] = int(config.action_heads) if config.action_heads.isdecimal() else config.action_heads
    for name in ("temperature", "direction_share"):
        options[name] = "learned" if options[name] == "learned" else float(options[name])
    return options


def eval_actions(config: "TrainConfig") -> Any:
    """The argument ``eval_actions`` of a model in the config of a run; None leaves it to the model."""
    return None if config.actions == "auto" else config.actions


def save_model(model: nn.Module, path: str | Path) -> None:
    """Write a model and its schema, if it has one, to a folder."""
    folder = Path(path)
    if (folder / "config.toml").exists():
        raise RunError(f"{folder}: is the folder of a run; choose another")
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise RunError("in_channels: is -1 until the model has seen data; call it once before it is saved")
    options = model_options(model)
    write(folder / CONFIG, config_json(options))
    write(folder / WEIGHTS, pack_tensors(model.state_dict(), {"format": "pt"}))
    if (schema := getattr(model, "schema", None)) is not None:
        write(folder / SCHEMA, json.dumps(sealed(schema), ensure_ascii=False, indent=1).encode())


def load_model(build: Callable[..., nn.Module], path: str | Path, split: int | None, changes: dict[str, Any]) -> Any:
    """The model in a folder, in evaluation mode; ``build`` makes one from the options in ``config.json``."""
    folder = _folder(path)
    run = (folder / "config.toml").exists()
    if split is not None and not run:
        raise RunError(f"split: is for the folder of a run, and {folder} is none; leave it out")
    if unknown := sorted(changes.keys() - CHANGEABLE):
        raise TypeError(f"from_pretrained: {unknown[0]!r} cannot be changed; only {', '.join(sorted(CHANGEABLE))} can")
    weights = _weights(_best(folder, split) if run else folder / WEIGHTS)
    schema = _json(folder / SCHEMA) if (folder / SCHEMA).exists() else None
    if (folder / CONFIG).exists():
        options = _json(folder / CONFIG)
    elif run:
        options = _earlier(folder, weights, schema)
    else:
        raise RunError(f"{folder}: holds neither {CONFIG} nor a run; expected what save_pretrained or a training wrote")
    try:
        with seeded(0, torch.device("cpu")):  # the weights are replaced in a moment
            model = build(**options | changes)
    except (TypeError, ValueError, AttributeError) as error:
        raise RunError(f"{folder}: {CONFIG} does not hold the options of a CoGNN ({error})") from None
    floating = [value.dtype for value in weights.values() if value.is_floating_point()]
    model = model.to(floating[0]) if floating else model
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise RunError(f"{folder}: the weights are those of another model ({reason})") from None
    model.schema = schema  # type: ignore[assignment]
    return model.eval()


def _folder(path: str | Path) -> Path:
    folder = Path(path)
    if folder.is_dir():
        return folder
    if folder.exists() or not re.fullmatch(r"[\w.-]+/[\w.-]+", str(path)):
        raise RunError(f"{path}: {'a file' if folder.exists() else 'not there'}; expected the folder of a model")
    if find_spec("huggingface_hub") is None:
        raise RunError(f"{path}: no such folder; a model of the Hugging Face Hub needs pip install huggingface_hub")
    hub = import_module("huggingface_hub")  # an optional dependency
    try:
        return Path(hub.snapshot_download(str(path), allow_patterns=[CONFIG, WEIGHTS, SCHEMA]))
    except Exception as error:  # its own errors, and those of the network below it
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunError(f"{path}: no such folder, nor a model of the Hugging Face Hub ({reason})") from None


def _best(folder: Path, split: int | None) -> Path:
    """The weights of a split of a run, by default of that with the best validation score."""
    config = _run_config(folder).model
    if config.model not in ("cognn", *BASES):
        raise RunError(f"{folder}: holds a {config.model}, not a Co-GNN; open it with cognn.open_run")
    if not (folder / "result.json").exists():
        raise RunError(f"{folder}: this run is not finished; resume it: cognn.fit(resume={str(folder)!r})")
    from cognn.config.run_folder import read_summary

    result = read_summary(folder)
    sign = 1 if higher_is_better(result["metric"]) else -1
    scores = {int(known["split"]): sign * known["val"] for known in result["splits"]}
    if split is not None and split not in scores:
        raise RunError(f"split: this run trained {', '.join(map(str, scores))}, got {split}")
    chosen = max(scores, key=lambda number: scores[number]) if split is None else split
    return folder / f"split-{chosen}" / "best.safetensors"


def _run_config(folder: Path) -> "Config":
    from cognn.config.run_folder import run_config  # 9 ms of `import cognn`, for runs only

    return run_config(folder)


def _weights(path: Path) -> dict[str, Tensor]:
    try:
        weights = load_file(path)
        check_digest(path)
        return weights
    except (OSError, SafetensorError, ValueError, AttributeError) as error:
        reason = "there is no such file" if not path.exists() else str(error).splitlines()[0]
        raise RunError(f"{path}: cannot be read as weights ({reason})") from None


def _json(path: Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise RunError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def _earlier(folder: Path, weights: dict[str, Tensor], schema: dict[str, Any] | None) -> dict[str, Any]:
    """The options of a run that has no ``config.json``: sizes are read from the weights and the schema."""
    if schema is None:
        raise RunError(
            f"{folder}: has neither {CONFIG} nor {SCHEMA}; use cognn.open_run(...).model().save_pretrained(...)"
        )
    config = _run_config(folder)
    try:
        sizes = {"in_channels": weights["encoder.weight"].size(1), "out_channels": schema["task"]["num_outputs"]}
        sizes |= {name: schema[name] for name in ("edge_dim", "edge_categories")}
        pool = config.model.pool if schema["task"]["level"] == "graph" else None
    except (KeyError, TypeError, IndexError) as error:
        raise RunError(f"{folder}: {SCHEMA} and weights do not say the sizes of the model ({error})") from None
    return config_options(config.model) | sizes | {"pool": pool, "eval_actions": eval_actions(config.train)}
