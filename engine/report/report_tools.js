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
function drawKeys(legend, keys) {
  for (const [style, colour, label] of keys) {
    const key = node(legend, "span", { class: "key" });
    node(key, "i", { class: style, style: `--swatch: ${colour}` });
    node(key, "span", {}, label);
  }
}

