// The choice of a head, in two places that agree, and the heat maps of all heads.

function showHeads(changed) {
  if (run.heads <= 1) return document.querySelectorAll(".needs-heads").forEach((part) => part.remove());
  document.getElementById("head-note").textContent = page.headNote;
  const choices = [...document.querySelectorAll(".head-choice")];
  const set = (chosen) => {
    part = chosen;
    for (const choice of choices) choice.value = String(chosen);
    changed();
  };
  for (const choice of choices) {
    choice.append(el("option", { value: 0 }, choice.dataset.all), ...run.shownHeads.map((head, i) => el("option", { value: i + 1 }, `head ${head}`)));
    choice.addEventListener("change", () => set(Number(choice.value)));
  }
  document.getElementById("head-maps").append(...page.headMaps.map(chartCard));
}
