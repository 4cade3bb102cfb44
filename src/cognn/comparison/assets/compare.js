// The page of a comparison: its charts. The rest is HTML already.

$("compare-charts").append(...page.charts.map(chartCard));
theme(() => {});
document.documentElement.dataset.ready = "true";
