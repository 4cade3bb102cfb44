"""What a study found: the best trials, what mattered, pictures of both, and a recipe."""

import importlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cognn.config.spaces import configure, is_range
from cognn.config.toml import to_toml
from cognn.errors import RunError
from cognn.files.atomic import write
from cognn.files.json import write_json

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

    from cognn.tune.study import Plan

SHOWN = 10
BESIDE = 5  # of them in a terminal of 80 columns, a column each


def summarise(folder: Path, study: "Study", plan: "Plan") -> dict[str, Any]:
    """Write ``tune.json``, ``best.toml`` and the plots; the content of the first."""
    from optuna.trial import TrialState

    trials = [trial for trial in study.get_trials(deepcopy=False) if "same_as" not in trial.user_attrs]
    done = [trial for trial in trials if trial.state == TrialState.COMPLETE and trial.value is not None]
    if not done:
        reasons = [trial.user_attrs["why"] for trial in trials if "why" in trial.user_attrs]
        why = f"the last one because: {reasons[-1]}" if reasons else "run more with --trials"
        raise RunError(f"{folder}: no trial of this study came to its end; {why}")
    sign = 1 if plan.higher_is_better else -1
    done.sort(key=lambda trial: -sign * _score(trial))  # ties: the earlier trial
    mattered, notes = importance(study, len(done))
    if mattered and _score(done[0]) == _score(done[-1]):
        mattered, notes = {}, ["nothing mattered: all finished trials have the same score"]
    elsewhere = sum(trial.state == TrialState.RUNNING for trial in trials)
    if elsewhere:
        notes = [*notes, f"trials that others are still at: {elsewhere}; give the command again to count them in"]
    plots, note = _plots(folder, plan, done, mattered)
    count = {state: sum(trial.state.name == state for trial in trials) for state in ("COMPLETE", "PRUNED", "FAIL")}
    result = {
        "dataset": plan.name,
        "model": plan.config.model.model,
        "metric": plan.metric,
        "splits": plan.splits,
        "trials": {"finished": count["COMPLETE"], "stopped early": count["PRUNED"], "failed": count["FAIL"]},
        "best": [{"trial": t.number, "val": t.value, "options": t.params} for t in done[:SHOWN]],
        "importance": mattered,
        "recipe": str(folder / "best.toml"),
        "plots": plots,
        "notes": notes + note,
    }
    write(folder / "best.toml", _recipe(plan, done[0], len(trials)).encode())
    write_json(folder / "tune.json", result)
    return result


def importance(study: "Study", finished: int) -> tuple[dict[str, float], list[str]]:
    """Share of every option in being among the best trials, most important first.

    By PED-ANOVA, which needs nothing but NumPy; Optuna's fANOVA would bring scikit-learn along.
    """
    if finished < 4:
        return {}, [f"what mattered is told from 4 finished trials on; there are {finished}"]
    from optuna.exceptions import ExperimentalWarning
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        warnings.simplefilter("ignore", UserWarning)  # all trials alike: then nothing mattered
        try:
            found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        except (ValueError, RuntimeError, ZeroDivisionError) as error:
            return {}, [f"what mattered could not be told ({error})"]
    shares = {name: float(share) for name, share in found.items() if share == share}
    if finished < 20:
        return shares, [f"what mattered is a rough guess from {finished} finished trials"]
    return shares, []


def show(result: dict[str, Any]) -> None:
    """The same for the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, options = Console(), list(result["best"][0]["options"])
    # A Text, because brackets in the name of a user's file would be markup.
    title = Text(f"{result['dataset']}, {result['model']}, {result['metric']} of validation", "table.title")
    best = result["best"][:BESIDE]
    table = Table("trial", *(str(trial["trial"]) for trial in best), title=title, title_justify="left")
    table.add_row("val", *(f"{trial['val']:.4f}" for trial in best))
    table.add_section()
    for name in options:
        table.add_row(name, *(_short(trial["options"][name]) for trial in best))
    console.print(table)
    if result["importance"]:
        table = Table("option", "share", title="what mattered", title_justify="left")
        for name, share in result["importance"].items():
            table.add_row(name, f"{share:.0%}")
        console.print(table)
    counts = ", ".join(f"{number} {what}" for what, number in result["trials"].items())
    lines = [f"trials: {counts}", *result["notes"], f"train with: cognn train --recipe {result['recipe']}"]
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _recipe(plan: "Plan", best: "FrozenTrial", trials: int) -> str:
    config = configure(plan.config, best.params, f"trial {best.number}")
    about = (
        f"Trial {best.number} of {trials} by cognn tune, chosen by {plan.metric} = {best.value!r} on the validation "
    )
    about += f"items of split {', '.join(map(str, plan.splits))}; test items were not looked at."
    return to_toml(config, {"note": about})


def _plots(folder: Path, plan: "Plan", done: "list[FrozenTrial]", mattered: dict[str, float]) -> tuple[Any, list[str]]:
    try:
        Figure = importlib.import_module("matplotlib.figure").Figure
    except ImportError:
        return [], ["no plots: matplotlib is not installed"]
    pick = max if plan.higher_is_better else min
    ordered = sorted(done, key=lambda trial: trial.number)
    numbers, values = [t.number for t in ordered], [_score(t) for t in ordered]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="trial", ylabel=f"{plan.metric} of validation")
    axes.plot(numbers, values, "o", label="trial")
    axes.step(numbers, [pick(values[: i + 1]) for i in range(len(values))], where="post", label="best so far")
    axes.legend()
    figures = {"history": figure}

    names = [*mattered, *(name for name in plan.space if name not in mattered)]
    columns = min(4, len(names))
    figure = Figure(figsize=(3 * columns, 2.6 * -(-len(names) // columns)), layout="constrained")
    for i, name in enumerate(names):
        axes = figure.add_subplot(-(-len(names) // columns), columns, i + 1, xlabel=name)
        seen = [t.params[name] for t in ordered]
        if is_range(plan.space[name]):
            axes.set_xscale(plan.space[name][2])
        elif len(plan.space[name]) <= 8:  # choices stand side by side, whatever their values
            choices = [str(value) for value in plan.space[name]]
            axes.set_xticks(range(len(choices)), choices)
            seen = [choices.index(str(value)) for value in seen]
        axes.plot(seen, values, "o", alpha=0.6)
    figures["options"] = figure
    if mattered:
        figure = Figure(figsize=(6, 0.6 + 0.35 * len(mattered)), layout="constrained")
        axes = figure.add_subplot(xlabel="share in being among the best")
        axes.barh(list(mattered)[::-1], list(mattered.values())[::-1])
        figures["importance"] = figure

    paths: list[str] = []
    for name, figure in figures.items():
        path = folder / f"{name}.svg"
        try:
            figure.savefig(path)
        except OSError as error:
            return paths, [f"{path}: could not be written ({error.strerror})"]
        paths.append(str(path))
    return paths, []


def _score(trial: "FrozenTrial") -> float:
    assert trial.value is not None
    return trial.value


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
