function headOf(names) {
  return el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name))));
}

function table(head, rows) {
  const body = el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell)))));
  return el("div", { class: "scroll" }, el("table", {}, headOf(head), body));
}

function details(title, content, open) {
  return el("details", open ? { open: "" } : {}, el("summary", {}, title), content);
}
