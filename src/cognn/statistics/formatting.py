"""How tables and figures print scores, gains and p-values."""

from cognn.config.metrics import ERRORS

PERCENT_METRICS = ("accuracy", "roc_auc")
VERDICT_WORDS = {"above": "better", "equal": "equal within noise", "below": "worse", "untested": "not tested"}


def axis_units(metric: str) -> tuple[float, str]:
    """The factor and the axis label of a metric in figures: percent where the tables print percent."""
    name = metric.replace("_", " ")
    return (100.0, f"{name} (%)") if metric in PERCENT_METRICS else (1.0, name)


def format_score(value: float | None, metric: str) -> str:
    """Percent for accuracy and ROC AUC, three decimals for errors, four otherwise."""
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if metric in PERCENT_METRICS else f"{value:.3f}" if metric in ERRORS else f"{value:.4f}"


def format_mean_std(mean: float, std: float | None, metric: str) -> str:
    """``97.31 ± 0.41``."""
    return format_score(mean, metric) + ("" if std is None else f" ± {format_score(std, metric)}")


def format_gain(value: float, metric: str) -> str:
    """A difference of scores with its sign and unit: ``+0.10 points``."""
    return ("+" if value > 0 else "") + format_score(value, metric) + (" points" if metric in PERCENT_METRICS else "")


def without_unit(gain: str) -> str:
    """A gain for a table that names the unit once."""
    return gain.removesuffix(" points")


def format_p(p: float | None) -> str | None:
    """Two significant digits."""
    return None if p is None else f"{p:.2g}"


def gain_with_p(gain: str, p: str | None) -> str:
    """``+0.10, p 0.097``: a gain and its p-value in one cell."""
    return without_unit(gain) + ("" if p is None else f", p {p}")
