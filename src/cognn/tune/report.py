"""The result of a study: its best trials, the importance of the options, plots of both, and a recipe."""

import warnings
from pathlib import Path
from typing import Any

from optuna import Study
from optuna.exceptions import ExperimentalWarning
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cognn.config.spaces import configure, is_range
from cognn.config.toml import to_toml
from cognn.errors import RunError
from cognn.files.atomic import atomic_path, write
from cognn.files.json import write_json
from cognn.tune.study import StudyPlan

SHOWN = 10
"""Best trials in ``tune.json``."""
COLUMNS = 5
"""Best trials in a terminal of 80 columns."""


def summarise_study(folder: Path, study: Study, plan: StudyPlan) -> dict[str, Any]:
    """Write ``tune.json``, ``best.toml`` and the plots; returns the content of ``tune.json``."""
    trials = [trial for trial in study.get_trials(deepcopy=False) if "same_as" not in trial.user_attrs]
    done = [trial for trial in trials if trial.state == TrialState.COMPLETE and trial.value is not None]
    if not done:
        reasons = [trial.user_attrs["why"] for trial in trials if "why" in trial.user_attrs]
        why = f"the last one because: {reasons[-1]}" if reasons else "run more with --trials"
        raise RunError(f"{folder}: no trial of this study has finished; {why}")
    sign = 1 if plan.higher_is_better else -1
    done.sort(key=lambda trial: -sign * _score(trial))  # ties: the earlier trial
    shares, notes = importance(study, len(done))
    if shares and _score(done[0]) == _score(done[-1]):
        shares, notes = {}, ["importance is undefined: all finished trials have the same score"]
    running = sum(trial.state == TrialState.RUNNING for trial in trials)
    if running:
        notes = [*notes, f"trials still running on other machines: {running}; repeat the command to include them"]
    plots, note = _plots(folder, plan, done, shares)
    count = {state: sum(trial.state.name == state for trial in trials) for state in ("COMPLETE", "PRUNED", "FAIL")}
    result = {
        "dataset": plan.name,
        "model": plan.config.model.model,
        "metric": plan.metric,
        "splits": plan.splits,
        "trials": {"finished": count["COMPLETE"], "stopped early": count["PRUNED"], "failed": count["FAIL"]},
        "best": [{"trial": t.number, "val": t.value, "options": t.params} for t in done[:SHOWN]],
        "importance": shares,
        "recipe": str(folder / "best.toml"),
        "plots": plots,
        "notes": notes + note,
    }
    write(folder / "best.toml", _recipe(plan, done[0], len(trials)).encode())
    write_json(folder / "tune.json", result)
    return result


def importance(study: Study, finished: int) -> tuple[dict[str, float], list[str]]:
    """Importance of every option for being among the best trials, in descending order, and notes about it.

    By PED-ANOVA, which needs only NumPy; Optuna's fANOVA needs scikit-learn.
    """
    if finished < 4:
        return {}, [f"importance needs 4 finished trials; there are {finished}"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        warnings.simplefilter("ignore", UserWarning)  # about equal scores, which the caller notes
        try:
            found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        except (ValueError, RuntimeError, ZeroDivisionError) as error:
            return {}, [f"importance could not be computed ({error})"]
    shares = {name: float(share) for name, share in found.items() if share == share}
    if finished < 20:
        return shares, [f"importance is a rough estimate from {finished} finished trials"]
    return shares, []


def show(result: dict[str, Any]) -> None:
    """Print the result to the terminal."""
    console, options = Console(), list(result["best"][0]["options"])
    # A Text, because brackets in the name of a user's file would be markup.
    title = Text(f"{result['dataset']}, {result['model']}, {result['metric']} of validation", "table.title")
    best = result["best"][:COLUMNS]
    table = Table("trial", *(str(trial["trial"]) for trial in best), title=title, title_justify="left")
    table.add_row("val", *(f"{trial['val']:.4f}" for trial in best))
    table.add_section()
    for name in options:
        table.add_row(name, *(_short(trial["options"][name]) for trial in best))
    console.print(table)
    if result["importance"]:
        table = Table("option", "share", title="importance", title_justify="left")
        for name, share in result["importance"].items():
            table.add_row(name, f"{share:.0%}")
        console.print(table)
    counts = ", ".join(f"{number} {what}" for what, number in result["trials"].items())
    lines = [f"trials: {counts}", *result["notes"], f"train with: cognn train --recipe {result['recipe']}"]
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _recipe(plan: StudyPlan, best: FrozenTrial, trials: int) -> str:
    config = configure(plan.config, best.params, f"trial {best.number}")
    about = (
        f"Trial {best.number} of {trials} by cognn tune, chosen by {plan.metric} = {best.value!r} on the validation "
    )
    about += f"items of split {', '.join(map(str, plan.splits))}; test items were not looked at."
    return to_toml(config, {"note": about})


def _plots(
    folder: Path, plan: StudyPlan, done: list[FrozenTrial], shares: dict[str, float]
) -> tuple[list[str], list[str]]:
    """Write the plots; returns their paths and notes about them."""
    from matplotlib.figure import Figure  # 0.3 s, which the workers of a study need not wait for

    pick = max if plan.higher_is_better else min
    ordered = sorted(done, key=lambda trial: trial.number)
    numbers, values = [t.number for t in ordered], [_score(t) for t in ordered]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="trial", ylabel=f"{plan.metric} of validation")
    axes.plot(numbers, values, "o", label="trial")
    axes.step(numbers, [pick(values[: i + 1]) for i in range(len(values))], where="post", label="best so far")
    axes.legend()
    figures = {"history": figure}

    names = [*shares, *(name for name in plan.space if name not in shares)]
    columns = min(4, len(names))
    figure = Figure(figsize=(3 * columns, 2.6 * -(-len(names) // columns)), layout="constrained")
    for i, name in enumerate(names):
        axes = figure.add_subplot(-(-len(names) // columns), columns, i + 1, xlabel=name)
        seen = [t.params[name] for t in ordered]
        if is_range(plan.space[name]):
            axes.set_xscale(plan.space[name][2])
        elif len(plan.space[name]) <= 8:  # choices at equal distances
            choices = [str(value) for value in plan.space[name]]
            axes.set_xticks(range(len(choices)), choices)
            seen = [choices.index(str(value)) for value in seen]
        axes.plot(seen, values, "o", alpha=0.6)
    figures["options"] = figure
    if shares:
        figure = Figure(figsize=(6, 0.6 + 0.35 * len(shares)), layout="constrained")
        axes = figure.add_subplot(xlabel="importance for being among the best")
        axes.barh(list(shares)[::-1], list(shares.values())[::-1])
        figures["importance"] = figure

    paths: list[str] = []
    for name, figure in figures.items():
        path = folder / f"{name}.svg"
        try:
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format="svg")
        except (OSError, RunError) as error:
            return paths, [f"{path}: could not be written ({getattr(error, 'strerror', None) or error})"]
        paths.append(str(path))
    return paths, []


def _score(trial: FrozenTrial) -> float:
    assert trial.value is not None
    return trial.value


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
