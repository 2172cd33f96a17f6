"""Opens report.html in headless Chromium and compares what is drawn with what the archive holds: the value that each
mark carries, and the pixel at which it lies. Two pages that were tampered with must fail, or the test proves nothing.
"""
import contextlib
import json
import math
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    sys.exit("python3-selenium is missing: apt-get install python3-selenium chromium chromium-driver")

ATTEMPTS = 90
PIXEL = 0.6  # how far a mark may lie from where its axis puts its value

# Every mark with its data and its drawn geometry in screen pixels, and every labelled grid line.
COLLECT = """
return [...document.querySelectorAll(".chart svg")].map((svg) => {
  const place = (element) => {
    const box = element.getBBox(), matrix = element.getScreenCTM();
    const at = (x, y) => { const p = new DOMPoint(x, y).matrixTransform(matrix); return [p.x, p.y]; };
    return { low: at(box.x, box.y + box.height), high: at(box.x + box.width, box.y),
             centre: at(box.x + box.width / 2, box.y + box.height / 2) };
  };
  return { chart: svg.dataset.chart, axis: svg.dataset.axis, scale: svg.dataset.scale,
           ticks: [...svg.querySelectorAll("[data-tick]")].map((e) => ({ value: Number(e.dataset.tick), ...place(e) })),
           marks: [...svg.querySelectorAll(".mark")].map((e) => ({ ...e.dataset, ...place(e),
             lowValue: e.dataset.low, highValue: e.dataset.high })) };
});
"""


class Mismatch(Exception):
    pass


def require(condition, sentence):
    if not condition:
        raise Mismatch(sentence)


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


# ---- what the archive says ----


def expected_marks(archive):
    """(chart, series, key) -> value, or (low, high) for an interval; computed from the archive alone."""
    database = sqlite3.connect(f"file:{archive}?mode=ro", uri=True)
    rows = database.execute
    bodies = lambda kind: [json.loads(body) for (body,) in rows(
        "SELECT body FROM events WHERE kind = ? ORDER BY sequence", (kind,))]
    number = {id: i + 1 for i, (id,) in enumerate(rows("SELECT id FROM evaluations ORDER BY sequence"))}
    marks = {}

    speedups, stages = {}, {}
    for id, stage, speedup in rows(
            "SELECT e.id, e.stage, m.speedup FROM evaluations e JOIN measurements m ON m.evaluation_id = e.id "
            "WHERE m.threads = 1 AND m.reference NOT IN (SELECT id FROM candidates) ORDER BY m.position"):
        speedups.setdefault(id, []).append(speedup)
        stages[id] = stage
    for id, values in speedups.items():
        if stages[id] == "screen":
            marks["progress", "screened", str(number[id])] = geomean(values)
        if stages[id] == "promote":
            marks["progress", "promoted", str(number[id])] = geomean(values)
    for (id,) in rows("SELECT id FROM evaluations WHERE verdict <> 'accepted'"):
        marks["progress", "rejected", str(number[id])] = None

    baseline = bodies("baseline")[-1]
    ceilings = baseline["ceilings"]
    before = lambda sequence: rows("SELECT COUNT(*) FROM evaluations WHERE sequence < ?", (sequence,)).fetchone()[0]
    standing = {name: (1, 1, 1) for name in ceilings}
    gains, last = {}, 1
    for sequence, body in rows("SELECT sequence, body FROM events WHERE kind = 'champion' ORDER BY sequence").fetchall():
        champion, key = json.loads(body), str(before(sequence))
        standing[champion["case_name"]] = tuple(champion[name] for name in ("speedup", "low", "high"))
        best, low, high = (geomean([row[i] for row in standing.values()]) for i in range(3))
        marks["progress", "best", key] = best
        marks["progress", "interval", key] = (low, high)
        category, origin = rows("SELECT i.category, c.origin FROM candidates c JOIN ideas i ON i.id = c.idea_id "
                                "WHERE c.id = ?", (champion["candidate_id"],)).fetchone()
        for name in (f"category {category}", f"origin {origin}"):
            gains[name] = gains.get(name, 1) * best / last
        last = best
    for name, factor in gains.items():
        marks["gains", "all", name] = max(0, math.log(factor))

    # The first attempt of every candidate: in the tree, and in the trace of its source.
    families = dict(rows("SELECT id, family FROM candidates"))
    seen, spent, best_of, order = set(), {}, {}, []
    sources = {id: tuple(hash for (hash,) in rows("SELECT source_hash FROM rows WHERE candidate_id = ?", (id,)))
               for id in families}
    for id, candidate in rows("SELECT id, candidate_id FROM evaluations ORDER BY sequence").fetchall():
        if candidate in seen:
            continue
        seen.add(candidate)
        value = geomean(speedups[id]) if id in speedups else None
        marks["tree", "candidate", str(number[id])] = value
        if len(sources[candidate]) != 1:
            continue
        source = sources[candidate][0]
        if source not in order:
            order.append(source)
        spent[source] = spent.get(source, 0) + 1
        if value is not None and len(speedups[id]) == len(ceilings) and value > best_of.get(source, 0):
            best_of[source] = value
            marks["tuning", f"sketch {order.index(source)}", str(spent[source])] = value

    open_roles, end = {}, max(2, len(number))
    for sequence, body in rows("SELECT sequence, body FROM events WHERE kind = 'role' ORDER BY sequence").fetchall() + [
            (None, json.dumps({"family": name, "role": "end"})) for name in set(families.values())]:
        change, at = json.loads(body), end if sequence is None else before(sequence)
        role, since = open_roles.get(change["family"], ("none", 0))
        if number and role in ("exploit", "near_miss", "structural") and at > since:
            marks["tree", "role", f"{change['family']} {since}"] = None
        open_roles[change["family"]] = change["role"], at

    winner = bodies("stop")[-1]["winner"]
    if winner:
        for case, speedup, low, high, candidate_ns, reference_ns in rows(
                "SELECT m.case_name, m.speedup, m.low, m.high, m.candidate_ns, m.reference_ns FROM measurements m "
                "JOIN evaluations e ON e.id = m.evaluation_id WHERE e.stage = 'promote' AND e.candidate_id = ?",
                (winner["candidate_id"],)):
            marks["cases", "winner", case] = speedup
            marks["cases", "interval", case] = (low, high)
            marks["roofs", "winner", case] = ceilings[case]["flops"] / candidate_ns
            marks["roofs", "baseline", case] = ceilings[case]["flops"] / reference_ns
    for case, row in ceilings.items():
        marks.setdefault(("roofs", "baseline", case), row["flops"] / baseline["case_ns"][case])
        for name, time_ns in row["ns"].items():
            marks["roofs", name, case] = row["flops"] / time_ns

    for verdict, count in rows("SELECT verdict, COUNT(*) FROM evaluations GROUP BY verdict"):
        marks["verdicts", "all", verdict] = count
    if number:
        for family in bodies("families")[-1]["families"]:
            marks["families", "all", family["name"]] = family["evaluations"]
            marks["families", "accepted", family["name"]] = family["accepted"]
    return marks


# ---- what the page shows ----


def close(found, wanted):
    return math.isclose(float(found), wanted, rel_tol=1e-12)


def compare_values(charts, expected):
    drawn = {}
    for chart in charts:
        for mark in chart["marks"]:
            key = chart["chart"], mark["series"], mark["key"]
            require(key not in drawn, f"{key} is drawn twice")
            drawn[key] = mark
    require(set(drawn) == set(expected),
            f"drawn but not in the archive: {sorted(set(drawn) - set(expected))[:5]}; "
            f"in the archive but not drawn: {sorted(set(expected) - set(drawn))[:5]}")
    for key, wanted in expected.items():
        mark = drawn[key]
        if isinstance(wanted, tuple):
            require(close(mark["lowValue"], wanted[0]) and close(mark["highValue"], wanted[1]),
                    f"{key} draws {mark['lowValue']}..{mark['highValue']}, the archive has {wanted}")
        elif wanted is not None:
            require(close(mark["value"], wanted), f"{key} draws {mark['value']}, the archive has {wanted}")
        if "x" in mark:
            require(mark["x"] == mark["key"], f"{key} stands at x = {mark['x']}")


def fit_line(points, what):
    """Least squares of pixel against value; every point must lie on the line."""
    count = len(points)
    mean_v = sum(v for v, _ in points) / count
    mean_p = sum(p for _, p in points) / count
    spread = sum((v - mean_v) ** 2 for v, _ in points)
    require(spread > 0, f"{what}: all values are equal, so positions prove nothing")
    slope = sum((v - mean_v) * (p - mean_p) for v, p in points) / spread
    worst = max(abs(mean_p + slope * (v - mean_v) - p) for v, p in points)
    require(worst < PIXEL, f"{what}: a mark lies {worst:.2f} pixels from where the axis puts its value")
    reach = max(p for _, p in points) - min(p for _, p in points)
    require(reach > 25, f"{what}: all marks lie within {reach:.1f} pixels")
    return slope


def compare_positions(charts):
    for chart in charts:
        name = chart["chart"]
        at = {"log": math.log, "linear": float}[chart["scale"]]
        if chart["axis"] == "lanes":
            compare_lanes(chart)
            continue
        if chart["axis"] == "x":
            for mark in chart["marks"]:
                require(abs(mark["low"][0] - chart["marks"][0]["low"][0]) < PIXEL, f"{name}: bars start together")
            points = [(at(float(mark["value"])), mark["high"][0]) for mark in chart["marks"]]
            points.append((0.0, chart["marks"][0]["low"][0]))
            require(fit_line(points, name) > 0, f"{name}: longer is more")
            continue
        points = [(at(tick["value"]), tick["centre"][1]) for tick in chart["ticks"]]
        require(len(points) >= 2, f"{name}: the axis has labelled lines")
        for mark in chart["marks"]:
            if "value" in mark:
                points.append((at(float(mark["value"])), mark["centre"][1]))
            if mark["series"] == "interval":
                points.append((at(float(mark["lowValue"])), mark["low"][1]))
                points.append((at(float(mark["highValue"])), mark["high"][1]))
        require(fit_line(points, name) < 0, f"{name}: higher is more")
        across = [(float(mark["x"]), mark["centre"][0]) for mark in chart["marks"] if "x" in mark]
        if across:
            require(fit_line(across, name + ", x") > 0, f"{name}: later is right")


def compare_lanes(chart):
    """Higher in its lane is faster, on one scale for all lanes; across all of them, later is right."""
    slopes, across = [], []
    for lane in {mark["lane"] for mark in chart["marks"] if "lane" in mark}:
        marks = [mark for mark in chart["marks"] if mark.get("lane") == lane]
        across += [(float(mark["x"]), mark["centre"][0]) for mark in marks]
        points = [(math.log(float(mark["value"])), mark["centre"][1]) for mark in marks if "value" in mark]
        if len(points) < 3:
            continue
        lowest, highest = min(points), max(points)
        slopes.append((highest[1] - lowest[1]) / (highest[0] - lowest[0]))
        off = max(abs(lowest[1] + slopes[-1] * (value - lowest[0]) - pixel) for value, pixel in points)
        require(off < PIXEL, f"lane {lane}: a mark lies {off:.2f} pixels from where its speed-up belongs")
    require(slopes and max(slopes) < 0 and max(slopes) - min(slopes) < 0.5, f"lanes share one scale: {slopes}")
    require(fit_line(across, "tree, x") > 0, "tree: later is right")


def check_steps(browser, page, archive):
    """The ladder is a list of all champions in order; what an agent changed is shown as changed lines."""
    browser.open(page, 390, "light")
    database = sqlite3.connect(f"file:{archive}?mode=ro", uri=True)
    wanted = [json.loads(body) for (body,) in database.execute(
        "SELECT body FROM events WHERE kind = 'champion' ORDER BY sequence")]
    shown = browser.run("""return [...document.querySelectorAll("ol.steps > li")].map((row) => row.textContent);""")
    require(len(shown) == len(wanted), f"{len(shown)} steps of {len(wanted)}")
    for text, champion in zip(shown, wanted):
        require(champion["candidate_id"] in text and champion["case_name"] in text, f"a step says {text}")
    edges = browser.run("""return [...document.querySelectorAll("#chart-tree [data-edge]")].map((e) => e.dataset.edge);""")
    parents = database.execute("SELECT COUNT(*) FROM candidates c JOIN candidates p ON c.parent = p.id").fetchone()[0]
    require(len(edges) >= parents > 0, f"{len(edges)} lines of descent for {parents} candidates with a parent")


class Browser:
    def __init__(self, profile):
        options = Options()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--no-first-run", f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)

    def open(self, page, width, scheme):
        command = self.driver.execute_cdp_cmd
        command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        command("Emulation.setDeviceMetricsOverride",
                {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.get(page.as_uri())
        trouble = [entry["message"] for entry in self.driver.get_log("browser")]
        require(not trouble, f"the console shows {trouble}")
        loaded = self.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        require(not [name for name in loaded if not name.startswith("data:")], f"the page loads {loaded}")
        wide = self.run("return document.documentElement.scrollWidth")
        require(wide <= width, f"the page is {wide} pixels wide in a window of {width}")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)


def check_page(browser, page, expected):
    grounds = set()
    for width, scheme in ((1200, "light"), (390, "dark"), (880, "light")):
        browser.open(page, width, scheme)
        grounds.add((scheme, browser.run("return getComputedStyle(document.body).backgroundColor")))
        charts = browser.run(COLLECT)
        compare_values(charts, expected)
        compare_positions(charts)
    require(len(grounds) == 2, f"light and dark have grounds of their own: {grounds}")


def check_attempt_list(browser, page, archive):
    """Filtering for one candidate shows its attempts; opening one shows its idea."""
    browser.open(page, 1200, "light")
    database = sqlite3.connect(f"file:{archive}?mode=ro", uri=True)
    candidate, count = database.execute(
        "SELECT candidate_id, COUNT(*) FROM evaluations WHERE stage <> 'promote' GROUP BY 1 ORDER BY 2 DESC, 1").fetchone()
    (idea,) = database.execute(
        "SELECT i.text FROM ideas i JOIN candidates c ON c.idea_id = i.id WHERE c.id = ?", (candidate,)).fetchone()
    shown = browser.run("""
      const form = document.getElementById("attempt-filters");
      form.elements.text.value = arguments[0];
      form.dispatchEvent(new Event("input"));
      const rows = document.querySelectorAll("#attempt-table tr.row");
      rows[0].click();
      return [rows.length, document.getElementById("attempt-count").textContent,
              document.querySelector("#attempt-table tr.detail").textContent];""", candidate)
    require(shown[0] == count, f"{shown[0]} rows for a candidate with {count} attempts")
    require(shown[1] == f"{count} of {ATTEMPTS} attempts", f"the count says {shown[1]}")
    require(idea in shown[2], f"the detail of an attempt lacks its idea: {shown[2]}")


def check_tampering_is_noticed(browser, page, expected):
    text = page.read_text()
    marks = [
        ("a changed number", re.compile(r'("geomean":)(\d+\.\d+)'), lambda m: f"{m[1]}{float(m[2]) * 1.001}", "archive has"),
        ("a mark drawn elsewhere", re.compile(r"cy: y, r: 5"), lambda m: "cy: y + 2 * (index % 2), r: 5", "pixels from"),
    ]
    for what, pattern, replace, complaint in marks:
        changed, count = pattern.subn(replace, text, count=1)
        require(count == 1, f"{what}: nothing to tamper with")
        copy = page.with_name("tampered.html")
        copy.write_text(changed)
        try:
            check_page(browser, copy, expected)
        except Mismatch as noticed:
            require(complaint in str(noticed), f"{what} was noticed as something else: {noticed}")
            continue
        raise Mismatch(f"{what} was not noticed")


def main(make_report):
    for program in (CHROMIUM, DRIVER):
        if not shutil.which(program):
            sys.exit(f"{program} is missing: apt-get install chromium chromium-driver python3-selenium")
    with tempfile.TemporaryDirectory(prefix="kbeam-report-browser-") as name:
        folder = pathlib.Path(name)
        pages = {}
        for attempts in (ATTEMPTS, 0):
            place = folder / f"attempts_{attempts}"
            place.mkdir()
            subprocess.run([make_report, str(place), str(attempts)], check=True)
            pages[attempts] = place
        browser = Browser(folder / "profile")
        with contextlib.closing(type("Quit", (), {"close": lambda self: browser.driver.quit()})()):
            page, archive = pages[ATTEMPTS] / "report.html", pages[ATTEMPTS] / "archive.sqlite"
            expected = expected_marks(archive)
            require(len(expected) > ATTEMPTS, "the archive has enough to draw")
            check_page(browser, page, expected)
            check_attempt_list(browser, page, archive)
            check_steps(browser, page, archive)
            check_tampering_is_noticed(browser, page, expected)
            # A campaign that evaluated nothing: only the ceilings are drawn, and nothing complains.
            check_page(browser, pages[0] / "report.html", expected_marks(pages[0] / "archive.sqlite"))
            print(f"{len(expected)} marks agree with the archive, in value and position, at three widths")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Mismatch as mismatch:
        sys.exit(f"report and archive differ: {mismatch}")
