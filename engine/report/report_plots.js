// ---- results: cases, progress, roofs, bars ----

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
  drawKeys(legend, [["bar", "var(--ink)", "confirmed best"], ["diamond", "var(--accent)", "promoted"]]);
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
  drawKeys(legend, series.map(([, label, colour, style]) => [style, colour, label]));
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
    const most = Math.max(...rows.map((row) => row.value)) || 1;
    const scale = linearScale(0, most, 0, width - 4);
    svg.setAttribute("aria-label", rows.map((row) => `${row.label} ${row.value}`).join(", "));
    svg.dataset.axis = "x";
    svg.dataset.scale = scale.kind;
    rows.forEach((row, index) => {
      const y = index * 38 + 18, facts = { key: row.key ?? row.label };
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

