// Draws the plots and the list of attempts from the JSON in the page. Every mark carries the value that it draws
// (data-value, data-low, data-high) and its svg names the scale, so that a test can compare pixels with numbers.
"use strict";
const data = JSON.parse(document.getElementById("kbeam-data").textContent);
const kSvg = "http://www.w3.org/2000/svg";

// ---- small tools ----

function node(parent, name, attributes = {}, text = null) {
  const svg = parent && parent.namespaceURI === kSvg || name === "svg";
  const made = svg ? document.createElementNS(kSvg, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

function ratio(value) {
  if (!Number.isFinite(value)) return "-";
  return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}
const between = (low, high) => `${ratio(low)} to ${ratio(high)}`;
const known = (value) => typeof value === "number" && Number.isFinite(value);
const swatch = (index) => index >= 0 && index < 8 ? `var(--f${index})` : "var(--none)";
const familyIndex = new Map(data.families.map((family, index) => [family.name, index]));
const colourOf = (family) => swatch(familyIndex.has(family) ? familyIndex.get(family) : -1);

function logScale(low, high, from, to) {
  const a = Math.log(low), b = Math.log(high);
  return { kind: "log", low, high, at: (value) => from + (to - from) * (Math.log(value) - a) / (b - a) };
}
function linearScale(low, high, from, to) {
  return { kind: "linear", low, high, at: (value) => from + (to - from) * (value - low) / (high - low) };
}
function ticksOf(scale, most) {
  const inside = (list) => list.filter((tick) => tick >= scale.low * 0.999999 && tick <= scale.high * 1.000001);
  if (scale.kind === "linear") {
    const rough = (scale.high - scale.low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough));
    const ticks = [];
    for (let tick = Math.ceil(scale.low / step) * step; tick <= scale.high; tick += step) ticks.push(tick);
    return ticks;
  }
  const decades = [];
  for (let k = Math.floor(Math.log10(scale.low)); k <= Math.ceil(Math.log10(scale.high)); ++k) decades.push(10 ** k);
  let best = [];
  for (const steps of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9]]) {
    const ticks = inside(decades.flatMap((d) => steps.map((s) => Number((s * d).toPrecision(6)))));
    if (ticks.length <= most || best.length < 2) best = ticks;
  }
  return best;
}
// The range of the values with some air, always with `anchor` inside.
function logDomain(values, anchor) {
  const good = values.filter((value) => known(value) && value > 0).concat(anchor);
  const low = Math.min(...good), high = Math.max(...good), air = Math.max(1.06, (high / low) ** 0.06);
  return [low / air, high * air];
}

// ---- charts: each is drawn anew for the width that it has ----

function chart(name, height, draw) {
  const holder = document.getElementById(`chart-${name}`);
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(holder.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    holder.replaceChildren();
    const tall = typeof height === "function" ? height(width) : height;
    const svg = node(holder, "svg", { viewBox: `0 0 ${width} ${tall}`, height: tall, role: "img", "data-chart": name });
    draw(svg, width, tall);
  };
  new ResizeObserver(redraw).observe(holder);
  redraw();
}
function sayEmpty(name, sentence) {
  node(document.getElementById(`chart-${name}`), "p", { class: "empty" }, sentence);
}
function mark(parent, shape, attributes, facts, title) {
  const made = node(parent, shape, attributes);
  made.classList.add("mark");
  for (const [key, value] of Object.entries(facts))
    if (value !== null && value !== undefined) made.dataset[key] = value;
  if (title) made.dataset.title = title;
  return made;
}
function drawGrid(svg, scale, left, right, format, most) {
  for (const tick of ticksOf(scale, most)) {
    const y = scale.at(tick);
    node(svg, "line", { x1: left, x2: right, y1: y, y2: y, class: tick === 1 && scale.kind === "log" ? "one" : "grid", "data-tick": tick });
    node(svg, "text", { x: left - 8, y: y + 4, "text-anchor": "end" }, format(tick));
  }
}
function whisker(svg, x, scale, low, high, colour, facts) {
  const line = mark(svg, "line", { x1: x, x2: x, y1: scale.at(low), y2: scale.at(high), stroke: colour, class: "whisker" },
                    { ...facts, low, high });
  for (const end of [low, high])
    node(svg, "line", { x1: x - 4, x2: x + 4, y1: scale.at(end), y2: scale.at(end), stroke: colour, class: "whisker" });
  return line;
}
const diamond = (x, y, r) => `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`;
const times = (value) => `${Number(value.toPrecision(3))}×`;

function drawCases() {
  const cases = data.cases.filter((row) => known(row.speedup));
  if (cases.length === 0) return sayEmpty("cases", "No winner was confirmed.");
  chart("cases", 300, (svg, width, height) => {
    const left = 44, right = width - 8, top = 22, bottom = height - 30;
    const scale = logScale(...logDomain(cases.flatMap((row) => [row.low, row.high, row.speedup]), 1), bottom, top);
    svg.setAttribute("aria-label", cases.map((row) => `${row.name} ${ratio(row.speedup)}`).join(", "));
    svg.dataset.axis = "y";
    svg.dataset.scale = scale.kind;
    drawGrid(svg, scale, left, right, times, 7);
    const step = (right - left) / cases.length;
    cases.forEach((row, index) => {
      const x = left + step * (index + 0.5), y = scale.at(row.speedup);
      const title = `${row.name}: ${ratio(row.speedup)}× (${between(row.low, row.high)})\n${row.comparison}\n${row.row}`;
      node(svg, "line", { x1: x, x2: x, y1: scale.at(1), y2: y, stroke: "var(--accent)", "stroke-width": 10, opacity: 0.16 });
      if (known(row.low) && known(row.high))
        whisker(svg, x, scale, row.low, row.high, "var(--accent)", { series: "interval", key: row.name });
      mark(svg, "circle", { cx: x, cy: y, r: 5, fill: "var(--accent)", tabindex: 0 },
           { series: "winner", key: row.name, value: row.speedup }, title);
      node(svg, "text", { x: x + 9, y: y - 7, class: "strong" }, ratio(row.speedup));
      node(svg, "text", { x, y: height - 8, "text-anchor": "middle" }, row.name);
    });
  });
}

function drawProgress() {
  const screened = data.attempts.filter((attempt) => known(attempt.geomean) && attempt.stage === "screen");
  const promoted = data.attempts.filter((attempt) => known(attempt.geomean) && attempt.stage === "promote" && attempt.whole);
  const rejected = data.attempts.filter((attempt) => attempt.verdict !== "accepted");
  if (data.attempts.length === 0) return sayEmpty("progress", "Nothing was evaluated.");
  const values = screened.concat(promoted).map((a) => a.geomean).concat(data.ladder.flatMap((step) => [step.low, step.high, step.geomean]));
  const picked = new Set();
  chart("progress", (width) => width < 560 ? 320 : 400, (svg, width, height) => {
    const left = 44, right = width - 10, top = 12, bottom = height - 56, strip = height - 38;
    const scale = logScale(...logDomain(values, 1), bottom, top);
    const across = linearScale(0, Math.max(2, data.attempts.length), left, right);
    svg.setAttribute("aria-label", `Speed-up over ${data.attempts.length} evaluations`);
    svg.dataset.axis = "y";
    svg.dataset.scale = scale.kind;
    drawGrid(svg, scale, left, right, times, 8);
    for (const tick of ticksOf(across, Math.max(3, Math.floor(width / 110))))
      node(svg, "text", { x: across.at(tick), y: height - 12, "text-anchor": "middle" }, tick);
    node(svg, "line", { x1: left, x2: right, y1: bottom + 6, y2: bottom + 6, class: "axis" });
    const small = data.attempts.length > 600;
    for (const attempt of rejected) {
      const x = across.at(attempt.number), d = small ? 2 : 3;
      mark(svg, "path", { d: `M${x - d} ${strip - d}l${2 * d} ${2 * d}m0 ${-2 * d}l${-2 * d} ${2 * d}`, stroke: colourOf(attempt.family), "stroke-opacity": 0.65, fill: "none", "data-family": attempt.family },
           { series: "rejected", key: attempt.number, x: attempt.number }, `#${attempt.number} ${attempt.family}\n${attempt.verdict}`);
    }
    for (const attempt of screened) {
      const colour = colourOf(attempt.family), full = attempt.whole;
      mark(svg, "circle", { cx: across.at(attempt.number), cy: scale.at(attempt.geomean), r: small ? 2.2 : 3.5, fill: full ? colour : "var(--paper)", stroke: colour, "stroke-width": full ? 0 : 1.5, "fill-opacity": full ? 0.75 : 1, "data-family": attempt.family },
           { series: "screened", key: attempt.number, x: attempt.number, value: attempt.geomean },
           `#${attempt.number} ${attempt.family}\n${ratio(attempt.geomean)}× on ${Object.keys(attempt.speedups).length} of ${data.cases.length} cases\n${attempt.knobs}`);
    }
    drawLadder(svg, across, scale);
    for (const attempt of promoted)
      mark(svg, "path", { d: diamond(across.at(attempt.number), scale.at(attempt.geomean), 7), fill: "var(--accent)", stroke: "var(--paper)", "stroke-width": 1.5, tabindex: 0 },
           { series: "promoted", key: attempt.number, x: attempt.number, value: attempt.geomean }, `#${attempt.number} promoted\n${ratio(attempt.geomean)}×`);
    const dim = () => svg.querySelectorAll("[data-family]").forEach((dot) =>
      dot.classList.toggle("dimmed", picked.size > 0 && !picked.has(dot.dataset.family)));
    svg.addEventListener("dim", dim);
    dim();
  });
  const legend = document.getElementById("legend-progress");
  for (const family of data.families) {
    const button = node(legend, "button", { type: "button", "aria-pressed": "false" });
    node(button, "i", { style: `--swatch: ${colourOf(family.name)}` });
    node(button, "span", {}, family.name);
    button.addEventListener("click", () => {
      if (!picked.delete(family.name)) picked.add(family.name);
      button.setAttribute("aria-pressed", picked.has(family.name));
      document.querySelector("#chart-progress svg").dispatchEvent(new Event("dim"));
    });
  }
  for (const [style, colour, label] of [["bar", "var(--ink)", "confirmed best"], ["diamond", "var(--accent)", "promoted"]]) {
    const key = node(legend, "span", { class: "key" });
    node(key, "i", { class: style, style: `--swatch: ${colour}` });
    node(key, "span", {}, label);
  }
}

function drawLadder(svg, across, scale) {
  if (data.ladder.length === 0) return;
  let path = `M${across.at(0)} ${scale.at(1)}`;
  for (const step of data.ladder) path += `H${across.at(step.evaluation)}V${scale.at(step.geomean)}`;
  node(svg, "path", { d: `${path}H${across.at(data.attempts.length)}`, class: "best" });
  // Several champions may be crowned after one evaluation; the whisker belongs to the last of them.
  const last = new Map(data.ladder.map((step) => [step.evaluation, step]));
  for (const step of last.values()) {
    const x = across.at(step.evaluation), facts = { key: step.evaluation, x: step.evaluation };
    whisker(svg, x, scale, step.low, step.high, "var(--ink)", { series: "interval", ...facts });
    mark(svg, "circle", { cx: x, cy: scale.at(step.geomean), r: 3.5, fill: "var(--ink)", stroke: "var(--paper)", tabindex: 0 },
         { series: "best", ...facts, value: step.geomean },
         `after ${step.evaluation}: ${ratio(step.geomean)}× (${between(step.low, step.high)})\n${step.case}: ${step.family} ${step.candidate}`);
  }
}

function drawRoofs() {
  const cases = data.cases.filter((row) => known(row.flops) && known(row.baseline_ns));
  if (cases.length === 0) return sayEmpty("roofs", "The ceilings were not measured.");
  const ceilings = [...new Set(cases.flatMap((row) => Object.keys(row.ceilings)))];
  const series = [["baseline", data.run.baseline, "var(--soft)", "hollow"], ["winner", "winner", "var(--accent)", ""]]
    .concat(ceilings.map((name, index) => [name, name, swatch(index + 1), index % 2 ? "bar dashed" : "bar"]));
  const legend = document.getElementById("legend-roofs");
  for (const [, label, colour, style] of series) {
    const key = node(legend, "span", { class: "key" });
    node(key, "i", { class: style, style: `--swatch: ${colour}` });
    node(key, "span", {}, label);
  }
  const speed = (row, time_ns) => known(time_ns) && time_ns > 0 ? row.flops / time_ns : NaN;
  const values = cases.flatMap((row) => [row.baseline_ns, row.candidate_ns, ...Object.values(row.ceilings)].map((t) => speed(row, t)));
  chart("roofs", 320, (svg, width, height) => {
    const left = 44, right = width - 8, top = 12, bottom = height - 30, step = (right - left) / cases.length;
    const positive = values.filter((value) => known(value) && value > 0);
    const scale = logScale(...logDomain(positive, positive[0]), bottom, top);
    svg.setAttribute("aria-label", "GFLOP/s by case");
    svg.dataset.axis = "y";
    svg.dataset.scale = scale.kind;
    drawGrid(svg, scale, left, right, (tick) => String(Number(tick.toPrecision(3))), 7);
    cases.forEach((row, index) => {
      const x = left + step * (index + 0.5), half = Math.min(22, step * 0.38);
      const before = speed(row, row.baseline_ns), after = speed(row, row.candidate_ns);
      if (known(after)) node(svg, "line", { x1: x, x2: x, y1: scale.at(before), y2: scale.at(after), stroke: "var(--accent)", "stroke-width": 2, opacity: 0.4 });
      ceilings.forEach((name, at) => {
        const value = speed(row, row.ceilings[name]);
        if (!known(value)) return;
        mark(svg, "line", { x1: x - half, x2: x + half, y1: scale.at(value), y2: scale.at(value), stroke: swatch(at + 1), "stroke-width": 2.5, "stroke-dasharray": at % 2 ? "5 3" : null },
             { series: name, key: row.name, value }, `${row.name}: ${name}\n${ratio(value)} GFLOP/s`);
      });
      mark(svg, "circle", { cx: x, cy: scale.at(before), r: 4.5, fill: "var(--paper)", stroke: "var(--soft)", "stroke-width": 2 },
           { series: "baseline", key: row.name, value: before }, `${row.name}: ${data.run.baseline}\n${ratio(before)} GFLOP/s`);
      if (known(after))
        mark(svg, "circle", { cx: x, cy: scale.at(after), r: 5.5, fill: "var(--accent)", tabindex: 0 },
             { series: "winner", key: row.name, value: after }, `${row.name}: winner\n${ratio(after)} GFLOP/s`);
      node(svg, "text", { x, y: height - 8, "text-anchor": "middle" }, row.name);
    });
  });
}

// Rows of a label above a bar, so that long names fit on a phone.
function drawBars(name, rows, empty) {
  if (rows.length === 0) return sayEmpty(name, empty);
  chart(name, rows.length * 38 + 4, (svg, width) => {
    const most = Math.max(1, ...rows.map((row) => row.value));
    const scale = linearScale(0, most, 0, width - 4);
    svg.setAttribute("aria-label", rows.map((row) => `${row.label} ${row.value}`).join(", "));
    svg.dataset.axis = "x";
    svg.dataset.scale = scale.kind;
    rows.forEach((row, index) => {
      const y = index * 38 + 18, facts = { key: row.label };
      node(svg, "text", { x: 0, y: y - 5, class: "strong" }, row.label);
      node(svg, "text", { x: width - 4, y: y - 5, "text-anchor": "end" }, row.text);
      mark(svg, "rect", { x: 0, y, width: scale.at(row.value), height: 10, rx: 1.5, fill: row.colour, opacity: row.part === null ? 0.85 : 0.28 },
           { series: "all", ...facts, value: row.value }, `${row.label}: ${row.text}`);
      if (row.part !== null)
        mark(svg, "rect", { x: 0, y, width: scale.at(row.part), height: 10, rx: 1.5, fill: row.colour, opacity: 0.9 },
             { series: "accepted", ...facts, value: row.part }, `${row.label}: ${row.part} accepted of ${row.value}`);
    });
  });
}

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
drawBars("families", data.families.map((family) => ({
  label: family.name, value: family.evaluations, part: family.accepted, colour: colourOf(family.name),
  text: `${family.evaluations} · ${family.retired ? "retired" : family.role}${known(family.best) ? ` · ${ratio(family.best)}×` : ""}`,
})), "There were no families.");
drawBars("verdicts", data.verdicts.map((row) => ({
  label: row.verdict, value: row.count, part: null, text: String(row.count),
  colour: row.verdict === "accepted" ? "var(--good)" : row.verdict === "engine_failed" ? "var(--none)" : "var(--bad)",
})), "Nothing was evaluated.");
listAttempts();
