// ---- the list of attempts ----

function listAttempts() {
  const form = document.getElementById("attempt-filters"), body = document.querySelector("#attempt-table tbody");
  const more = document.getElementById("attempt-more"), count = document.getElementById("attempt-count");
  const fill = (select, words) => ["", ...words].forEach((word) => node(form.elements[select], "option", { value: word }, word || "all"));
  fill("family", [...new Set(data.attempts.map((attempt) => attempt.family))]);
  fill("verdict", [...new Set(data.attempts.map((attempt) => attempt.verdict))]);
  for (const attempt of data.attempts) {
    const idea = data.ideas[attempt.idea];
    attempt.haystack = [attempt.candidate, attempt.family, attempt.verdict, attempt.knobs, attempt.reason, attempt.decision, attempt.origin, idea ? idea.text : ""].join(" ").toLowerCase();
  }
  let shown = [], limit = 50;
  const show = () => {
    body.replaceChildren(...shown.slice(0, limit).map(attemptRow));
    more.hidden = shown.length <= limit;
    count.textContent = `${shown.length} of ${data.attempts.length} attempts`;
  };
  const choose = () => {
    const text = form.elements.text.value.trim().toLowerCase(), family = form.elements.family.value;
    const verdict = form.elements.verdict.value, order = form.elements.order.value;
    shown = data.attempts.filter((attempt) => (!text || attempt.haystack.includes(text)) &&
      (!family || attempt.family === family) && (!verdict || attempt.verdict === verdict));
    if (order === "newest") shown.reverse();
    if (order === "fastest") shown.sort((a, b) => b.whole - a.whole || (b.geomean ?? -1) - (a.geomean ?? -1));
    limit = 50;
    show();
  };
  form.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { limit += 200; show(); });
  choose();
}

// A speed-up that is not the mean over every case says so.
function speedText(attempt) {
  if (!known(attempt.geomean)) return "";
  const cases = Object.keys(attempt.speedups), text = `${ratio(attempt.geomean)}×`;
  if (attempt.whole) return text;
  return cases.length === 1 ? `${cases[0]} ${text}` : `${cases.length} of ${data.cases.length}: ${text}`;
}

function attemptRow(attempt) {
  const row = node(null, "tr", { class: "row" });
  const button = node(node(row, "td", { class: "number soft" }), "button",
                      { type: "button", class: "open", "aria-expanded": "false", "aria-label": `Attempt ${attempt.number}` }, attempt.number);
  node(node(row, "td", { class: "wide name" }), "code", {}, attempt.candidate);
  const family = node(row, "td", { class: "family" });
  node(family, "span", { class: "dot", style: `--swatch: ${colourOf(attempt.family)}` });
  family.append(attempt.family);
  node(row, "td", { class: "wider knobs" }, attempt.knobs);
  node(row, "td", { class: "wider soft" }, attempt.stage);
  node(row, "td", { class: attempt.verdict === "accepted" ? "" : "slower" }, attempt.verdict);
  node(row, "td", { class: "number" }, speedText(attempt));
  row.addEventListener("click", () => {
    const open = row.classList.toggle("open");
    button.setAttribute("aria-expanded", open);
    if (open) row.after(attemptDetail(attempt));
    else row.nextElementSibling.remove();
  });
  return row;
}

function attemptDetail(attempt) {
  const detail = node(null, "tr", { class: "detail" });
  const list = node(node(detail, "td", { colspan: 7 }), "dl");
  const idea = data.ideas[attempt.idea];
  const cases = data.cases.filter((row) => row.name in attempt.speedups)
    .map((row) => `${row.name} ${ratio(attempt.speedups[row.name])}×`).join(", ");
  const lines = [["candidate", attempt.candidate], ["idea", idea ? idea.text : ""], ["expected", idea ? idea.expected : ""], ["knobs", attempt.knobs], ["by", attempt.origin],
    ["parent", attempt.parent], ["stage", attempt.stage], ["why", attempt.reason], ["cases", cases], ["decision", attempt.decision]];
  for (const [name, text] of lines) {
    if (!text) continue;
    node(list, "dt", {}, name);
    node(list, "dd", {}, text);
  }
  return detail;
}

// ---- tooltips and copying ----

const tip = document.getElementById("tip");
function showTip(event) {
  const target = event.target instanceof Element ? event.target.closest("[data-title]") : null;
  tip.hidden = !target;
  if (!target) return;
  tip.textContent = target.dataset.title;
  const box = target.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(box.right + 10, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(8, box.top - tip.offsetHeight - 8)}px`;
}
for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, showTip);
for (const kind of ["focusout", "scroll"]) document.addEventListener(kind, () => { tip.hidden = true; }, true);

for (const button of document.querySelectorAll("button.copy"))
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
      button.textContent = "Selected";
    }
  });

drawCases();
drawProgress();
drawRoofs();
drawTree();
drawTuning();
drawGains();
drawBars("families", data.families.map((family) => ({
  label: family.name, value: family.evaluations, part: family.accepted, colour: colourOf(family.name),
  text: `${family.evaluations} · ${family.retired ? "retired" : family.role}${known(family.best) ? ` · ${ratio(family.best)}×` : ""}`,
})), "There were no families.");
drawBars("verdicts", data.verdicts.map((row) => ({
  label: row.verdict, value: row.count, part: null, text: String(row.count),
  colour: row.verdict === "accepted" ? "var(--good)" : row.verdict === "engine_failed" ? "var(--none)" : "var(--bad)",
})), "Nothing was evaluated.");
listAttempts();
for (const dot of document.querySelectorAll(".dot[data-family]")) dot.style.setProperty("--swatch", colourOf(dot.dataset.family));
