#!/usr/bin/env python3
"""Compares tuners on recorded spaces at equal evaluations: those of kbeam, and Kernel Tuner's in its own simulation
mode. `run` measures and stores every tuning, `publish` writes the table and the plot of docs/tuning.md from what is
stored. Needs nothing but Python; Kernel Tuner lives in a virtual environment of its own, made by `install`."""
import argparse, gzip, json, math, os, pathlib, statistics, subprocess, sys, venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results.json.gz"
SHOWN = (25, 50, 100, 200)
OURS = ("auto", "model", "local_search", "evolutionary", "random")
# brute_force is what tune_kernel does when it is given no strategy; the others are those that its documentation and
# papers use most.
THEIRS = ("brute_force", "random_sample", "genetic_algorithm", "simulated_annealing", "greedy_ils", "mls", "diff_evo",
          "dual_annealing", "pso", "firefly_algorithm", "hybrid_vndx")
THEIR_DEFAULT = "brute_force"
FLOOR = 0.001  # distances below 0.1 % are all the same: no recording tells them apart


def cache_folder():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kbeam" / "kernel_tuner"


def find_kernel_tuner(named):
    python = pathlib.Path(named) if named else cache_folder() / "bin" / "python"
    if not python.exists():
        return None
    found = subprocess.run([python, "-c", "import kernel_tuner; from importlib.metadata import version; "
                            "print(version('kernel-tuner'))"], capture_output=True, text=True)
    return (python, found.stdout.strip()) if found.returncode == 0 else None


def install(_):
    folder = cache_folder()
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "kernel-tuner"], check=True)
    print(f"installed Kernel Tuner {find_kernel_tuner('')[1]} in {folder}")


def improvements(distances):
    """[[evaluation, distance]] where a tuning found something better: all that is known of it."""
    kept, before = [], math.inf
    for index, distance in enumerate(distances):
        if distance is not None and distance < before:
            before = distance
            kept.append([index + 1, float(f"{distance:.5g}")])
    return kept


def distance_at(tuning, evaluations):
    found = math.inf
    for evaluation, distance in tuning:
        if evaluation > evaluations:
            break
        found = distance
    return found


def run(options):
    spaces = [pathlib.Path(space) for space in options.spaces] or sorted((ROOT / "bench" / "spaces").glob("*.json*"))
    kernel_tuner = find_kernel_tuner(options.kernel_tuner)
    if kernel_tuner is None:
        print("no Kernel Tuner here: its rows are left out; `study.py install` brings it", file=sys.stderr)
    # A study goes on where it was stopped; --fresh begins anew.
    stored = {"spaces": {}} if options.fresh or not RESULTS.exists() else json.loads(gzip.open(RESULTS, "rt").read())
    stored["seeds"], stored["evaluations"] = options.seeds, options.evaluations
    if kernel_tuner:
        stored["kernel_tuner"] = kernel_tuner[1]
    for space in spaces:
        name = space.name.removesuffix(".gz").removesuffix(".json")
        print(f"== {name}", file=sys.stderr)
        ran = subprocess.run([options.kbeam, "tune", "--simulate", space, "--strategy", "all", "--seeds",
                              str(options.seeds), "--evaluations", str(options.evaluations), "--json"],
                             check=True, capture_output=True, text=True)
        report = json.loads(ran.stdout)
        entry = stored["spaces"].setdefault(name, {"kbeam": {}, "kernel_tuner": {}})
        for key in ("kernel", "settings", "failed", "best_ms", "median_ms"):
            entry[key] = report[key]
        entry["kbeam"] = {strategy: one["tunings"] for strategy, one in report["strategies"].items()}
        for strategy in THEIRS if kernel_tuner else ():
            print(f"   {strategy}", file=sys.stderr)
            seeds = 1 if strategy == THEIR_DEFAULT else options.seeds  # it draws nothing
            ran = subprocess.run([kernel_tuner[0], HERE / "kernel_tuner_runs.py", space, "--strategy", strategy,
                                  "--seeds", str(seeds), "--evaluations", str(options.evaluations)],
                                 capture_output=True, text=True)
            if ran.returncode != 0:
                print(f"   {strategy} failed: {ran.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                continue
            entry["kernel_tuner"][strategy] = [improvements(json.loads(line)) for line in ran.stdout.splitlines()]
        with gzip.GzipFile(RESULTS, "wb", mtime=0) as file:
            file.write(json.dumps(stored, separators=(",", ":")).encode())
    print(f"wrote {RESULTS}", file=sys.stderr)


def medians(stored, tool, strategy, at):
    """By space, the median distance of this strategy; infinite where half found nothing that works."""
    return {name: statistics.median(distance_at(tuning, at) for tuning in space[tool][strategy])
            for name, space in stored["spaces"].items() if strategy in space[tool]}


def geometric_mean(distances):
    if not distances or any(math.isinf(distance) for distance in distances):
        return math.inf
    return math.exp(statistics.fmean(math.log(max(distance, FLOOR)) for distance in distances))


def percent(distance):
    return "-" if math.isinf(distance) else f"{100 * distance:.2f} %"


def rows_of(stored):
    rows = [("kbeam", strategy) for strategy in OURS]
    rows += [("kernel_tuner", strategy) for strategy in THEIRS
             if any(strategy in space["kernel_tuner"] for space in stored["spaces"].values())]
    return rows


def label(tool, strategy):
    if tool == "kbeam":
        return f"`{strategy}`" + (" (default)" if strategy == OURS[0] else "")
    return f"Kernel Tuner `{strategy}`" + (" (its default)" if strategy == THEIR_DEFAULT else "")


def tables(stored):
    rows = rows_of(stored)
    lines = ["| strategy | " + " | ".join(f"{at} evaluations" for at in SHOWN) + " |", "|---" * (len(SHOWN) + 1) + "|"]
    for tool, strategy in rows:
        means = [geometric_mean(list(medians(stored, tool, strategy, at).values())) for at in SHOWN]
        lines.append(f"| {label(tool, strategy)} | " + " | ".join(percent(mean) for mean in means) + " |")
    for name, space in stored["spaces"].items():
        lines += ["", f"**{name}**: {space['settings']} settings, {space['failed']} failed, the middle one "
                  f"{space['median_ms'] / space['best_ms']:.2f} times the best", "",
                  "| strategy | " + " | ".join(str(at) for at in SHOWN) + " |", "|---" * (len(SHOWN) + 1) + "|"]
        for tool, strategy in rows:
            if strategy in space[tool]:
                found = [medians(stored, tool, strategy, at)[name] for at in SHOWN]
                lines.append(f"| {label(tool, strategy)} | " + " | ".join(percent(one) for one in found) + " |")
    return lines


def verdicts(stored):
    """Where the default does not come out ahead: told, not left for the reader to find."""
    lines, losses = [], []
    for tool, strategy in rows_of(stored):
        if (tool, strategy) == ("kbeam", OURS[0]):
            continue
        ours = {at: medians(stored, "kbeam", OURS[0], at) for at in SHOWN}
        for at in SHOWN:
            theirs = medians(stored, tool, strategy, at)
            lost = [name for name in theirs if ours[at][name] > theirs[name] + 1e-9]
            if lost:
                losses.append(f"- {label(tool, strategy)} is ahead of the default after {at} evaluations on "
                              + ", ".join(f"{name} ({percent(theirs[name])} against {percent(ours[at][name])})"
                                          for name in lost))
    lines.append("Where the default is behind:" if losses else "The default is behind nowhere.")
    return lines + ([""] + losses if losses else [])


def plot(stored):
    """Distance over evaluations, the geometric mean over the spaces, on two logarithmic axes."""
    width, height, left, right, top, bottom = 860, 460, 70, 210, 20, 50
    colours = {"auto": "#c0392b", "model": "#e08e0b", "local_search": "#2c7fb8", "evolutionary": "#41864f",
               "random": "#777777"}
    most, least = 1.0, FLOOR
    first, last = 10, stored["evaluations"]

    def x(at):
        return left + (width - left - right) * math.log(at / first) / math.log(last / first)

    def y(distance):
        share = math.log(min(max(distance, least), most) / least) / math.log(most / least)
        return height - bottom - (height - top - bottom) * share

    text = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            'font-size="13">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for distance in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0):
        text.append(f'<line x1="{left}" x2="{width - right}" y1="{y(distance):.1f}" y2="{y(distance):.1f}" '
                    'stroke="#ddd"/>')
        text.append(f'<text x="{left - 8}" y="{y(distance) + 4:.1f}" text-anchor="end">{100 * distance:g} %</text>')
    for at in (10, 25, 50, 100, 200):
        if at <= last:
            text.append(f'<text x="{x(at):.1f}" y="{height - bottom + 20}" text-anchor="middle">{at}</text>')
    text.append(f'<text x="{(left + width - right) / 2}" y="{height - 10}" text-anchor="middle">evaluations</text>')
    ends = []
    for tool, strategy in rows_of(stored):
        points = []
        for at in range(first, last + 1, 2):
            mean = geometric_mean(list(medians(stored, tool, strategy, at).values()))
            if not math.isinf(mean):
                points.append((x(at), y(mean)))
        if not points:
            continue
        colour = colours.get(strategy, "#9b8bb4") if tool == "kbeam" else "#b9a7c9"
        dash = "" if tool == "kbeam" else ' stroke-dasharray="4 3"'
        stroke = 3 if (tool, strategy) == ("kbeam", OURS[0]) else 1.6
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        text.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{stroke}"{dash}/>')
        ends.append([points[-1][1], strategy if tool == "kbeam" else "KT " + strategy, colour])
    ends.sort()
    for index, end in enumerate(ends):  # labels keep clear of each other
        end.append(max(end[0], ends[index - 1][3] + 15 if index else top + 8))
    overhang = max(0, ends[-1][3] - (height - bottom)) if ends else 0
    for _, name, colour, place in ends:
        text.append(f'<text x="{width - right + 8}" y="{place - overhang + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(text + ["</svg>", ""])


def publish(_):
    stored = json.loads(gzip.open(RESULTS, "rt").read())
    page = ROOT / "docs" / "tuning.md"
    text = page.read_text()
    begin, end = "<!-- study: begin -->\n", "<!-- study: end -->"
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    about = (f"{stored['seeds']} tunings a strategy and space (Kernel Tuner {stored.get('kernel_tuner', 'not run')}), "
             f"{len(stored['spaces'])} recorded space(s). Median distance to the best setting of a space; above all, the geometric "
             f"mean over the spaces, distances below {100 * FLOOR:g} % counted as that.")
    page.write_text(head + begin + "\n".join([about, ""] + tables(stored) + [""] + verdicts(stored)) + "\n" + end + tail)
    (ROOT / "docs" / "tuning_study.svg").write_text(plot(stored))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    commands.add_parser("install", help="Kernel Tuner, in a virtual environment outside the tree").set_defaults(
        do=install)
    runs = commands.add_parser("run", help="run every strategy on every space")
    runs.add_argument("spaces", nargs="*", help="recorded spaces; those of bench/spaces when left out")
    runs.add_argument("--kbeam", default=str(ROOT / "build" / "kbeam"))
    runs.add_argument("--kernel-tuner", default="", help="a Python that has the kernel-tuner package")
    runs.add_argument("--seeds", type=int, default=100)
    runs.add_argument("--evaluations", type=int, default=200)
    runs.add_argument("--fresh", action="store_true", help="forget what is stored of other spaces")
    runs.set_defaults(do=run)
    commands.add_parser("publish", help="write docs/tuning.md and its plot from what is stored").set_defaults(do=publish)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
