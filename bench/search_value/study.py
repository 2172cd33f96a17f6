#!/usr/bin/env python3
"""Is it search, or one finished sketch? Runs campaigns on a CPU problem and writes docs/search_value.md.

  study.py run [--seeds 1,2,3,4,5] [--budget 180s]   campaigns, then the same number of evaluations by random choice,
                                                     then one without the sketch that won most rows; goes on where it stopped
  study.py publish                                   the page, from results.json

Judges nothing itself: every figure is read from the archive of a run. Wants a machine that does nothing else.
"""
import argparse
import json
import math
import pathlib
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "search_value.md"
PROBLEM = "batched_qr"


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def read_archive(folder):
    """What the observations of a run say: the best default, and which families led a case."""
    archive = sqlite3.connect(f"file:{folder}/archive.sqlite?mode=ro", uri=True)
    candidates = dict(((row[0], (row[1], row[2])) for row in archive.execute("select id, family, origin from candidates")))
    defaults, leads, best = {}, [], {}
    for (body,) in archive.execute("select body from events where kind = 'observation' order by sequence"):
        seen = json.loads(body)
        if seen["verdict"] != "accepted":
            continue
        family, origin = candidates[seen["candidate_id"]]
        if origin.endswith("/default"):
            defaults[family] = max(defaults.get(family, 0), geomean(seen["speedup"].values()))
        for case, speedup in seen["speedup"].items():
            if speedup > best.get(case, 0):
                best[case] = speedup
                if family not in leads:
                    leads.append(family)
    crowned = [json.loads(body)["family"] for (body,) in
               archive.execute("select body from events where kind = 'champion' order by sequence")]
    return {"defaults": defaults, "led_a_screen": leads, "champions": sorted(set(crowned))}


def campaign(problem, options, work):
    command = [str(ROOT / "build" / "kbeam"), "run", problem, "--dir", str(work / "runs"), "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    summary = json.loads(done.stdout.splitlines()[-1])
    winner = summary["winner"]
    row = {"run_id": summary["run_id"], "command": " ".join(["kbeam", *command[1:3], *options]),
           "screens": summary["evaluations"], "wall_s": round(summary["wall_s"], 1),
           "stop": summary["stop_reason"], "engine_overhead": summary["engine_overhead_fraction"],
           **read_archive(work / "runs" / summary["run_id"])}
    if winner:
        row |= {"speedup": winner["speedup_geomean"], "low": winner["speedup_low"], "high": winner["speedup_high"],
                "cases": {c["name"]: [c["speedup"], c["low"], c["high"], c["comparison"]] for c in winner["cases"]},
                "rows": [r["source"] for r in winner["rows"]]}
    return row


def without(source, work):
    """The problem with every idea but those of one sketch, in a folder of its own."""
    folder = work / "problem_without"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "problems" / PROBLEM, folder)
    ideas = re.split(r"(?m)^(?=\[\[idea\]\])", (folder / "ideas.toml").read_text())
    (folder / "ideas.toml").write_text("".join(i for i in ideas if f'sketch = "sketches/{source}"' not in i))
    return str(folder)


def run(arguments):
    work = ROOT / "build" / "search_value"
    work.mkdir(parents=True, exist_ok=True)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"beam": {}, "random": {}, "removed": {}}

    def keep(kind, seed, row):
        results[kind][seed] = row
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        print(kind, seed, row.get("speedup"), row["screens"], "screens", row["wall_s"], "s", flush=True)

    seeds = arguments.seeds.split(",")
    for seed in seeds:
        if seed not in results["beam"]:
            keep("beam", seed, campaign(PROBLEM, ["--seed", seed, "--budget", arguments.budget], work))
    for seed in seeds:
        if seed not in results["random"]:
            options = ["--search", "random", "--seed", seed, "--budget", "600s",
                       "--evaluations", str(results["beam"][seed]["screens"])]
            keep("random", seed, campaign(PROBLEM, options, work))
    rows = [row for result in results["beam"].values() for row in result.get("rows", [])]
    if rows and not results["removed"]:
        source = statistics.mode(rows)
        row = campaign(without(source, work), ["--seed", seeds[0], "--budget", arguments.budget], work)
        keep("removed", source, row | {"command": row["command"].replace(str(work), "build/search_value")})


def publish(_):
    results = json.loads(RESULTS.read_text())
    lines = ["# Is it search? Batched QR on a CPU, campaign by campaign", "",
             "Written by `bench/search_value/study.py publish` from `results.json` beside it, which `study.py run` fills.",
             "Speed-ups are over the best LAPACK routine of each case, confirmed on sealed inputs, 1 thread.", "",
             "| seed | winner | cases `faster` | screens | best default of a sketch | winner / best default | led a case in a screen | same screens by random choice | beam / random |",
             "|---|---|---|---|---|---|---|---|---|"]
    ratios, overs = [], []
    for seed, row in results["beam"].items():
        best = max(row["defaults"], key=row["defaults"].get)
        other = results["random"].get(seed, {})
        faster = sum(c[3] == "faster" for c in row.get("cases", {}).values())
        speedup = row.get("speedup", float("nan"))
        over = speedup / row["defaults"][best]
        overs.append(over)
        by_chance, ratio = "not run", ""
        if "speedup" in other:
            ratios.append(speedup / other["speedup"])
            by_chance, ratio = f"{other['speedup']:.2f}", f"{ratios[-1]:.3f}"
        lines.append(f"| {seed} | {speedup:.2f} [{row.get('low', 0):.2f}, {row.get('high', 0):.2f}] | {faster} of "
                     f"{len(row.get('cases', {}))} | {row['screens']} | {row['defaults'][best]:.2f} `{best}` | {over:.2f} | "
                     f"{', '.join(row['led_a_screen'])} | {by_chance} | {ratio} |")
    speedups = [row["speedup"] for row in results["beam"].values() if "speedup" in row]
    lines += ["", f"Geometric mean over the seeds: {geomean(speedups):.2f} x LAPACK ({min(speedups):.2f} to {max(speedups):.2f}), "
              f"{geomean(overs):.2f} x the best default"
              + (f", {geomean(ratios):.3f} x random choice." if ratios else "; random choice was not run yet."), ""]
    for source, row in results["removed"].items():
        found = (f"{row['speedup']:.2f} [{row['low']:.2f}, {row['high']:.2f}], rows of {', '.join(sorted(set(row['rows'])))}"
                 if "speedup" in row else "no winner")
        lines += [f"Without `{source}`, the sketch of most winning rows: {found}; {row['screens']} screens.", ""]
    lines += ["## The winners", "", "| seed | " + " | ".join(next(iter(results["beam"].values())).get("cases", {})) + " | command |",
              "|---" * (2 + len(next(iter(results["beam"].values())).get("cases", {}))) + "|"]
    for seed, row in results["beam"].items():
        cells = [f"{c[0]:.2f} [{c[1]:.2f}, {c[2]:.2f}]" for c in row.get("cases", {}).values()]
        lines.append(f"| {seed} | " + " | ".join(cells) + f" | `{row['command']}` |")
    PAGE.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run")
    runner.add_argument("--seeds", default="1,2,3,4,5")
    runner.add_argument("--budget", default="180s")
    runner.set_defaults(act=run)
    commands.add_parser("publish").set_defaults(act=publish)
    arguments = parser.parse_args()
    arguments.act(arguments)


if __name__ == "__main__":
    main()
