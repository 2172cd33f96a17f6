#!/usr/bin/env python3
"""Kills real campaigns at random moments and looks at what is left.

Each campaign is run with `kbeam run`, killed with SIGKILL several times (itself, or one of its
children), gone on with by `kbeam resume`, and examined: nothing recorded may be lost, every decision
must follow from the recorded samples, and no process, temporary file or lock may be left. A moment
is chosen by phase (build, check, measure, commit, report) and a random delay in it; the driver is
frozen for a look at what it is doing, so that the phase of a kill is a fact and not a guess. The
plan follows from --seed. Measures nothing and judges no candidate itself.
"""
import argparse
import collections
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

PHASES = ("build", "check", "measure", "commit", "report")
# A report of 15 evaluations is written in some milliseconds.
LONGEST_DELAY_S = {"build": 0.8, "check": 0.2, "measure": 0.2, "commit": 0.0, "report": 0.004}
TIMING_LOCK = "/tmp/kbeam-timing.lock"
ORPHAN_GRACE_S = 15.0   # a SIGKILLed process must get a processor before it is gone
SESSION_LIMIT_S = 900.0
MOST_EXTRA_CAMPAIGNS = 4
PR_SET_CHILD_SUBREAPER = 36


class Failure(Exception):
    """What the engine did not keep to, in one sentence."""


def children_of(pid):
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as listing:
                found += [int(word) for word in listing.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def descendants_of(pid):
    found = []
    for child in children_of(pid):
        found.append(child)
        found += descendants_of(child)
    return found


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def locks_of(pid):
    """(inode, first byte) of every exclusive lock that the process holds."""
    held = set()
    with open("/proc/locks") as listing:
        for line in listing:
            words = line.split()
            if words[1] == "->" or words[4] != str(pid) or words[3] != "WRITE":
                continue
            held.add((int(words[5].rsplit(":", 1)[1]), words[6]))
    return held


def inode_of(path):
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


class Driver:
    """One process of `kbeam run` or `kbeam resume`."""

    def __init__(self, campaign, arguments):
        self.campaign = campaign
        self.log = open(campaign.folder / "progress.txt", "ab+")
        self.log_start = self.log.seek(0, os.SEEK_END)
        self.result = open(campaign.folder / "result.json", "wb+")
        self.process = subprocess.Popen([campaign.options.kbeam, *arguments], stdout=self.result,
                                        stderr=self.log, stdin=subprocess.DEVNULL,
                                        cwd=campaign.folder, env=campaign.environment)
        self.pid = self.process.pid
        self.deadline = time.monotonic() + SESSION_LIMIT_S

    def ended(self):
        if time.monotonic() > self.deadline:
            raise Failure(f"a session lasts longer than {SESSION_LIMIT_S:.0f} s")
        return self.process.poll() is not None

    def said(self):
        return os.pread(self.log.fileno(), 1 << 20, self.log_start).decode(errors="replace")

    def open_phases(self):
        """What the driver is doing at this moment; exact while it is frozen."""
        phases = set()
        names = [name_of(pid) for pid in descendants_of(self.pid)]
        if any(name not in ("kbeam", "kbeam-runner", "kbeam-warden", "") for name in names):
            phases.add("build")
        held = locks_of(self.pid)
        if any(inode == inode_of(TIMING_LOCK) for inode, _ in held):
            phases.add("measure")
        elif "kbeam-runner" in names:
            phases.add("check")
        run = self.campaign.run_folder()
        # The write lock of SQLite's log is byte 120 of the shared-memory file.
        if run and (inode_of(run / "archive.sqlite-shm"), "120") in held:
            phases.add("commit")
        if "== writing the report" in self.said():
            phases.add("report")
        return phases

    def freeze(self):
        """False when it ended by itself before that."""
        if self.process.poll() is not None:
            return False
        os.kill(self.pid, signal.SIGSTOP)  # not reaped yet, so the number is still its own
        while True:
            with open(f"/proc/{self.pid}/stat") as stat:
                state = stat.read().rsplit(")", 1)[1].split()[0]
            if state in "TZX":
                return state == "T"

    def thaw(self):
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)


class Campaign:
    def __init__(self, options, number, make_up=None):
        """`make_up`: the kills that earlier campaigns ended without, instead of a plan of its own."""
        self.options = options
        self.make_up = make_up
        self.number = number
        self.folder = options.work / f"campaign-{number:02}"
        self.folder.mkdir(parents=True)
        for name in ("runs", "tmp"):
            (self.folder / name).mkdir()
        self.random = random.Random(f"{options.seed} {number}")
        # One that makes up for kills builds anew: a campaign that found all its builds has no moment for them.
        self.seed = 1 + (number % options.seeds if make_up is None else options.seeds + number)
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(options.work / "cache"),
                                TMPDIR=str(self.folder / "tmp"))
        self.planned = []
        self.kills = []
        self.failures = []
        self.sessions = 0
        self.seen = []
        self.longest_orphan_s = 0.0

    # ---- what is on the disk

    def run_folder(self):
        for folder in (self.folder / "runs").iterdir():
            if (folder / "archive.sqlite").exists():
                return folder
        return None

    def events(self, timeout_s=20.0):
        run = self.run_folder()
        if run is None:
            return []
        try:
            self.seen = self.read_events(run, "ro", timeout_s)
        except sqlite3.OperationalError as trouble:
            if "readonly" not in str(trouble):
                raise
            # Killed while it closed: the log it left has to be taken in first.
            self.seen = self.read_events(run, "rw", timeout_s)
        return self.seen

    @staticmethod
    def take_log_in(run):
        """SQLite leaves its log to the next who opens the file where a reader, this driver, was in it at the last close."""
        base = sqlite3.connect(f"file:{run}/archive.sqlite?mode=rw", uri=True, timeout=20.0)
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        base.close()

    @staticmethod
    def read_events(run, mode, timeout_s):
        base = sqlite3.connect(f"file:{run}/archive.sqlite?mode={mode}", uri=True, timeout=timeout_s)
        try:
            return base.execute(
                "SELECT sequence, kind, hash FROM events ORDER BY sequence").fetchall()
        finally:
            base.close()

    def events_of_frozen(self):
        """Those seen last where the frozen driver holds the whole file: while it opens or closes it."""
        try:
            return self.events(timeout_s=0.1)
        except sqlite3.OperationalError:
            return self.seen

    def evaluations(self):
        return sum(1 for event in self.events() if event[1] == "observation")

    # ---- sessions

    def start(self):
        self.sessions += 1
        run = self.run_folder()
        if run is None:
            return Driver(self, ["run", self.options.problem, "--evaluations",
                                 str(self.options.evaluations), "--budget", "7200s", "--seed",
                                 str(self.seed), "--dir", "runs", "--json"])
        return Driver(self, ["resume", run.name, "--dir", "runs", "--json"])

    def plan(self):
        """Phase, victim and place in the campaign of each kill; the report comes last."""
        if self.make_up is not None:
            return self.make_up
        deck = []
        while len(deck) < self.options.kills:
            phases = list(PHASES)
            self.random.shuffle(phases)
            deck += phases
        deck = deck[:self.options.kills]
        victims = ["driver", "child"] * (len(deck) // 2 + 1)
        if self.number % 2:
            victims = victims[1:]
        self.random.shuffle(deck)
        search = [phase for phase in deck if phase != "report"]
        places = sorted(self.random.randrange(max(1, self.options.evaluations - 2)) for _ in search)
        plan = [(phase, place) for phase, place in zip(search, places)]
        plan += [("report", 0)] * (len(deck) - len(search))
        return [(phase, place, victim) for (phase, place), victim in zip(plan, victims)]

    def run(self):
        began = time.monotonic()
        try:
            driver = self.start()
            self.planned = self.plan()
            for phase, place, victim in self.planned:
                driver = self.one_kill(driver, phase, place, victim)
                if driver is None:
                    break
            while driver is not None:
                code = driver.process.wait()
                self.expect_no_orphans()
                if code in (0, 1):
                    break
                driver = self.after_own_end(driver, code)
            self.examine_end()
        except Failure as failure:
            self.failures.append(str(failure))
        finally:
            self.clear_processes()
        return {"campaign": self.number, "seed": self.seed, "sessions": self.sessions,
                "evaluations": self.evaluations(), "kills": self.kills, "failures": self.failures,
                "missed": self.planned[len(self.kills):],
                "longest_orphan_s": round(self.longest_orphan_s, 3),
                "wall_s": round(time.monotonic() - began, 1)}

    def one_kill(self, driver, phase, place, victim):
        """Waits for the moment and kills; gives the driver that runs then, or None when none does."""
        delay_s = self.random.random() * LONGEST_DELAY_S[phase]
        choice = self.random.random()
        polls = 0
        while True:
            if driver.ended():
                self.expect_no_orphans()
                if driver.process.returncode in (0, 1):
                    return None
                driver = self.after_own_end(driver, driver.process.returncode)
            polls += 1
            if polls % 25 == 1 and place > 0 and self.evaluations() < place and \
                    "== promoting" not in driver.said():
                time.sleep(0.02)
                polls = 0
                continue
            if phase not in driver.open_phases():
                if phase != "commit":
                    time.sleep(0.001)
                continue
            time.sleep(delay_s)
            if not driver.freeze():
                continue
            phases = driver.open_phases()
            if phase in phases and self.kill(driver, phase, phases, victim, choice):
                break
            driver.thaw()
            delay_s *= 0.5  # the phase was shorter than that
        if victim == "driver":
            return self.start()
        return driver

    def kill(self, driver, phase, phases, victim, choice):
        before = self.events_of_frozen()
        target, name = driver.pid, "kbeam"
        if victim == "child":
            living = [pid for pid in descendants_of(driver.pid) if is_alive(pid)]
            if phase == "build":
                compilers = [pid for pid in living if not name_of(pid).startswith("kbeam")]
                living = compilers or living
            elif phase in ("check", "measure"):
                living = [pid for pid in living if name_of(pid) == "kbeam-runner"]
            if not living:
                return False
            target = living[int(choice * len(living))]
            name = name_of(target)
        os.kill(target, signal.SIGKILL)
        self.kills.append({"phase": phase, "open": sorted(phases), "victim": victim, "name": name,
                           "events_before": len(before)})
        if victim == "child":
            driver.thaw()
            return True
        driver.process.wait()
        self.expect_no_orphans()
        after = self.events()
        if after[:len(before)] != before:
            raise Failure(f"kill {len(self.kills)} ({phase}) lost an event that was recorded")
        self.expect_no_lock()
        return True

    def after_own_end(self, driver, code):
        """A session that could not go on because a child of its was killed says so and resumes."""
        said = driver.said()
        if code != 3 or not any(kill["victim"] == "child" for kill in self.kills[-2:]):
            raise Failure(f"a session ended with {code}: {said[-400:]}")
        if "kbeam: could not" not in said:
            raise Failure(f"a session ended with {code} and no clear error: {said[-400:]}")
        return self.start()

    # ---- what must hold

    def expect_no_orphans(self):
        """This process is the subreaper: whatever outlives a driver becomes its child."""
        began = time.monotonic()
        while True:
            reap_others()
            left = children_of(os.getpid())
            if not left:
                self.longest_orphan_s = max(self.longest_orphan_s, time.monotonic() - began)
                return
            if time.monotonic() - began > ORPHAN_GRACE_S:
                raise Failure("left behind: " + ", ".join(f"{name_of(pid)} {pid}" for pid in left))
            time.sleep(0.002)

    def expect_no_lock(self):
        run = self.run_folder()
        if run is None:
            return
        status = self.kbeam("status", run.name, "--json")
        if status["state"] == "running" or status["writer"] is not None:
            raise Failure("a lock outlived its process: " + json.dumps(status)[:300])

    def kbeam(self, command, run, *more):
        done = subprocess.run([self.options.kbeam, command, run, "--dir", "runs", *more],
                              cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"kbeam {command} ended with {done.returncode}: "
                          f"{(done.stderr or done.stdout)[-400:]}")
        return json.loads(done.stdout.strip().splitlines()[-1])

    def examine_end(self):
        run = self.run_folder()
        if run is None:
            raise Failure("there is no run at the end")
        kinds = collections.Counter(event[1] for event in self.events())
        if kinds["observation"] < self.options.evaluations:
            raise Failure(f"{kinds['observation']} of {self.options.evaluations} evaluations")
        self.take_log_in(run)
        report = self.kbeam("replay", run.name, "--only-recorded", "--json")
        if report["mistakes"] or report["decisions"] == 0:
            raise Failure("replay: " + json.dumps(report)[:600])
        self.replayed = report
        allowed = {"archive.sqlite", "report.html", "attempts_log.md"}
        left = [path for path in run.rglob("*") if path.is_file() and path.name not in allowed]
        left += [path for path in (self.folder / "runs").iterdir() if path != run]
        left += list((self.folder / "tmp").iterdir())
        if left:
            raise Failure("left behind: " + ", ".join(str(path) for path in left[:5]))

    def clear_processes(self):
        """After a failure only: the next campaign begins with nothing of this one."""
        for pid in descendants_of(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
        reap_others()


def reap_others():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def cache_leftovers(cache):
    marks = ("draft-", ".part-", "damaged")
    return [str(path) for path in cache.rglob("*") if any(mark in path.name for mark in marks)]


def total(results, options):
    kills = [kill for result in results for kill in result["kills"]]
    by_phase = collections.Counter(kill["phase"] for kill in kills)
    return {"campaigns": len(results), "whole": sum(not result["failures"] for result in results),
            "kills": len(kills), "planned": options.campaigns * options.kills,
            "on_children": sum(kill["victim"] == "child" for kill in kills),
            "by_phase": {phase: by_phase[phase] for phase in PHASES},
            "resumed": sum(result["sessions"] - 1 for result in results),
            "longest_orphan_s": max([result["longest_orphan_s"] for result in results] or [0.0])}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kbeam", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--problem", default="softmax")
    parser.add_argument("--campaigns", type=int, default=20)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=5, help="campaigns that share one find its builds")
    parser.add_argument("--least", type=int, default=0, help="kills that must land in each phase")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.kbeam = str(pathlib.Path(options.kbeam).resolve())
    options.work = options.work.resolve()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("torture: this kernel has no subreapers, so orphans could not be found")
    results = []
    began = time.monotonic()

    def run(campaign):
        results.append(campaign.run())
        last = results[-1]
        print(f"campaign {campaign.number + 1}: {len(last['kills'])} kills, "
              f"{last['sessions']} sessions, {last['evaluations']} evaluations, "
              f"{last['wall_s']} s {'; '.join(last['failures']) or 'whole'}", flush=True)

    for number in range(options.campaigns):
        run(Campaign(options, number))
    # A campaign can be over before the moment of its last kill: others take those.
    missed = sorted((kill for result in results for kill in result["missed"]),
                    key=lambda kill: (kill[0] == "report", kill[1]))
    for number in range(options.campaigns, options.campaigns + MOST_EXTRA_CAMPAIGNS):
        if not missed:
            break
        run(Campaign(options, number, missed))
        missed = results[-1]["missed"]
    sums = total(results, options)
    sums["left_in_cache"] = cache_leftovers(options.work / "cache")
    sums["wall_s"] = round(time.monotonic() - began, 1)
    sums["seed"] = options.seed
    options.out.write_text(json.dumps({"total": sums, "campaigns": results}, indent=1) + "\n")
    enough = all(count >= options.least for count in sums["by_phase"].values())
    good = sums["whole"] == sums["campaigns"] and sums["kills"] == sums["planned"] and enough and \
        not sums["left_in_cache"]
    phases = ", ".join(f"{phase} {count}" for phase, count in sums["by_phase"].items())
    print(f"torture: {sums['kills']} of {sums['planned']} kills ({sums['on_children']} on children; "
          f"{phases}), {sums['whole']} of {sums['campaigns']} campaigns whole, "
          f"{len(sums['left_in_cache'])} files left in the cache, {sums['wall_s']} s")
    if good:
        shutil.rmtree(options.work, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
