// ---- families: who came from whom, how each source was tuned, what paid ----

const kRoleColours = { exploit: "var(--accent)", near_miss: "var(--f4)", structural: "var(--f2)" };
const firstAttempts = data.attempts.filter((attempt) => attempt.first);

// The stretches of evaluations in which each family had one role.
function roleBands() {
  const bands = [], open = new Map(), end = Math.max(2, data.attempts.length);
  const close = (family, at) => {
    const band = open.get(family);
    if (band && at > band.from) bands.push({ ...band, to: at });
  };
  for (const change of data.roles) {
    close(change.family, change.evaluation);
    open.set(change.family, { family: change.family, role: change.role, from: change.evaluation });
  }
  for (const family of open.keys()) close(family, end);
  return bands;
}

// A lane a family; in its lane a candidate stands where it was first evaluated, higher when it was faster.
function drawTree() {
  const names = data.families.map((family) => family.name);
  for (const attempt of firstAttempts) if (!names.includes(attempt.family)) names.push(attempt.family);
  if (firstAttempts.length === 0) return sayEmpty("tree", "Nothing was evaluated.");
  const byNumber = new Map(data.attempts.map((attempt) => [attempt.number, attempt]));
  const values = firstAttempts.map((attempt) => attempt.geomean).filter((value) => known(value) && value > 0);
  const bands = roleBands();
  const lane = 64, head = 18;
  chart("tree", names.length * lane + 26, (svg, width, height) => {
    const left = 2, right = width - 8, many = firstAttempts.length > 600;
    const across = linearScale(0, Math.max(2, data.attempts.length), left, right);
    const topOf = new Map(names.map((name, index) => [name, index * lane + head]));
    const depth = lane - head - 8;
    const within = logScale(...logDomain(values.length ? values : [1], values[0] ?? 1), depth, 0);
    const spot = (attempt) => [across.at(attempt.number),
      topOf.get(attempt.family) + (known(attempt.geomean) ? within.at(attempt.geomean) : depth)];
    svg.setAttribute("aria-label", `Descent of ${firstAttempts.length} candidates in ${names.length} families`);
    svg.dataset.axis = "lanes";
    svg.dataset.scale = "log";
    for (const band of bands) {
      if (!topOf.has(band.family) || !kRoleColours[band.role]) continue;
      mark(svg, "rect", { x: across.at(band.from), y: topOf.get(band.family) - 3, width: across.at(band.to) - across.at(band.from), height: depth + 6, fill: kRoleColours[band.role], class: "band" },
           { series: "role", key: `${band.family} ${band.from}` }, `${band.family}: ${band.role}\nfrom ${band.from} to ${band.to} evaluations`);
    }
    for (const name of names) {
      const top = topOf.get(name), family = data.families.find((one) => one.name === name);
      node(svg, "line", { x1: left, x2: right, y1: top + depth + 4, y2: top + depth + 4, class: "axis" });
      node(svg, "text", { x: left, y: top - 7, class: "strong" }, name);
      if (family) node(svg, "text", { x: right, y: top - 7, "text-anchor": "end" }, family.retired ? "retired" : family.role);
    }
    const edges = firstAttempts.flatMap((attempt) => (attempt.from ?? []).map((number) => [byNumber.get(number), attempt]));
    for (const [from, to] of edges.sort((a, b) => Number(Boolean(a[1].line)) - Number(Boolean(b[1].line)))) {
      const [x1, y1] = spot(from), [x2, y2] = spot(to), middle = (x1 + x2) / 2;
      const path = node(svg, "path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, class: to.line ? "edge line" : many ? "edge faint" : "edge" });
      path.dataset.edge = `${from.number} ${to.number}`;
    }
    for (const attempt of firstAttempts) {
      const [x, y] = spot(attempt), colour = colourOf(attempt.family);
      const title = `#${attempt.number} ${attempt.candidate}, ${attempt.family}\n${known(attempt.geomean) ? `${ratio(attempt.geomean)}×` : attempt.verdict}${attempt.from ? `, from ${attempt.from.map((number) => `#${number}`).join(" ")}` : ""}\n${attempt.knobs}`;
      const facts = { series: "candidate", key: attempt.number, x: attempt.number, value: attempt.geomean, lane: attempt.family };
      if (known(attempt.geomean))
        mark(svg, "circle", { cx: x, cy: y, r: attempt.line ? 4.5 : many ? 1.8 : 3, fill: attempt.line ? "var(--ink)" : colour, "fill-opacity": attempt.line ? 1 : 0.75 }, facts, title);
      else
        mark(svg, "path", { d: `M${x - 2.5} ${y - 2.5}l5 5m0 -5l-5 5`, stroke: colour, "stroke-opacity": 0.7, fill: "none" }, facts, title);
    }
    for (const tick of ticksOf(across, Math.max(3, Math.floor(width / 110))))
      node(svg, "text", { x: across.at(tick), y: height - 4, "text-anchor": tick === 0 ? "start" : "middle" }, tick);
  });
  const legend = document.getElementById("legend-tree");
  const keys = [["", "var(--ink)", "the winner and what it came from"]];
  if (bands.length) for (const [role, colour] of Object.entries(kRoleColours)) keys.push(["band", colour, role]);
  drawKeys(legend, keys);
}

// Of each source, the best so far against the evaluations that were spent on it.
function tuningTraces() {
  return data.sketches.map((sketch, index) => {
    const tried = firstAttempts.filter((attempt) => attempt.sketch === index);
    const steps = [];
    tried.forEach((attempt, at) => {
      const value = attempt.whole ? attempt.geomean : null;
      if (known(value) && value > (steps.at(-1)?.value ?? 0)) steps.push({ spent: at + 1, value, attempt });
    });
    return { ...sketch, index, spent: tried.length, steps };
  }).filter((trace) => trace.steps.length > 0);
}

function drawTuning() {
  const traces = tuningTraces();
  if (traces.length === 0) return sayEmpty("tuning", "No candidate was timed on every case.");
  const order = [...traces].sort((a, b) => b.steps.at(-1).value - a.steps.at(-1).value);
  chart("tuning", (width) => width < 560 ? 300 : 360, (svg, width, height) => {
    const left = 44, right = width - 12, top = 12, bottom = height - 30;
    const scale = logScale(...logDomain(traces.flatMap((trace) => trace.steps.map((step) => step.value)), traces[0].steps[0].value), bottom, top);
    const across = linearScale(1, Math.max(2, ...traces.map((trace) => trace.spent)), left, right);
    svg.setAttribute("aria-label", order.map((trace) => `${trace.name} ${ratio(trace.steps.at(-1).value)}`).join(", "));
    svg.dataset.axis = "y";
    svg.dataset.scale = scale.kind;
    drawGrid(svg, scale, left, right, times, 8);
    for (const tick of ticksOf(across, Math.max(3, Math.floor(width / 110))))
      node(svg, "text", { x: across.at(tick), y: height - 8, "text-anchor": "middle" }, tick);
    for (const trace of traces) {
      const colour = colourOf(trace.family);
      let path = `M${across.at(trace.steps[0].spent)} ${scale.at(trace.steps[0].value)}`;
      for (const step of trace.steps.slice(1)) path += `H${across.at(step.spent)}V${scale.at(step.value)}`;
      node(svg, "path", { d: `${path}H${across.at(trace.spent)}`, fill: "none", stroke: colour, "stroke-width": 1.75, class: "trace" });
      for (const step of trace.steps)
        mark(svg, "circle", { cx: across.at(step.spent), cy: scale.at(step.value), r: 3, fill: colour },
             { series: `sketch ${trace.index}`, key: step.spent, x: step.spent, value: step.value },
             `${trace.name}, evaluation ${step.spent} of ${trace.spent}\n${ratio(step.value)}×, #${step.attempt.number} by ${step.attempt.origin}\n${step.attempt.knobs}`);
    }
  });
  const tuned = order.filter((trace) => trace.spent > 1), named = (tuned.length ? tuned : order).slice(0, 8);
  drawKeys(document.getElementById("legend-tuning"), named.map((trace) =>
    ["bar", colourOf(trace.family), `${trace.name} ${ratio(trace.steps[0].value)} → ${ratio(trace.steps.at(-1).value)}×`]));
  if (named.length < traces.length) node(document.getElementById("legend-tuning"), "span", { class: "key" }, `and ${traces.length - named.length} more`);
}

// Logarithms of the factors add up, so bars that lie end to end are the whole ladder.
function drawGains() {
  const rows = Object.entries(data.gains).flatMap(([what, gains]) => gains.map((gain) => ({ ...gain, what })))
    .filter((gain) => gain.steps > 0 && known(gain.factor));
  drawBars("gains", rows.map((gain) => ({
    label: gain.name, key: `${gain.what} ${gain.name}`, value: Math.max(0, Math.log(gain.factor)), part: null,
    colour: gain.what === "category" ? "var(--accent)" : "var(--none)",
    text: `${ratio(gain.factor)}× in ${gain.steps} step${gain.steps === 1 ? "" : "s"} of ${gain.evaluations} evaluations`,
  })), "No step was confirmed.");
}

