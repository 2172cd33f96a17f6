#!/usr/bin/env python3
"""Runs strategies of Kernel Tuner in its simulation mode on one recorded space and prints, a line a seed, the best
time so far after each evaluation over the best of the space, less 1. Run by study.py with the interpreter of a
virtual environment that has the kernel-tuner package; changes nothing but its own temporary folder."""
import argparse, contextlib, gzip, io, json, os, random, tempfile, warnings


def load(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as file:
        return json.load(file)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("space")
    options.add_argument("--strategy", required=True)
    options.add_argument("--seeds", type=int, default=100)
    options.add_argument("--first-seed", type=int, default=1)
    options.add_argument("--evaluations", type=int, default=200)
    chosen = options.parse_args()

    warnings.simplefilter("ignore")
    import numpy
    from kernel_tuner import tune_kernel

    recorded = load(chosen.space)
    names = recorded["tune_params_keys"]
    times = {key: entry["time"] for key, entry in recorded["cache"].items()}
    best = min(time for time in times.values() if isinstance(time, (int, float)))

    # Kernel Tuner knows the recorded settings by a restriction, as kbeam knows them by a list.
    def is_recorded(setting):
        return ",".join(str(setting[name]) for name in names) in times

    with tempfile.TemporaryDirectory() as folder:
        # Its cache holds nothing but what it reads: our own fields would only cost time.
        plain = {key: recorded[key] for key in ("device_name", "kernel_name", "tune_params_keys", "tune_params")}
        plain["problem_size"] = 1
        plain["objective"] = "time"
        plain["schema_version"] = "1.0.0"
        plain["cache"] = {}
        for key, entry in recorded["cache"].items():
            plain["cache"][key] = {name: entry[name] for name in names} | {
                "time": entry["time"], "compile_time": 0, "verification_time": 0, "benchmark_time": 0}
        cache = os.path.join(folder, "cache.json")
        with open(cache, "w") as file:
            json.dump(plain, file)
        # The exhaustive search takes no limit: its first settings are what it had found by then.
        limits = {} if chosen.strategy == "brute_force" else {"max_fevals": chosen.evaluations}
        for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
            random.seed(seed)
            numpy.random.seed(seed)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                results, _ = tune_kernel(
                    recorded["kernel_name"], "", 1, [], recorded["tune_params"], restrictions=is_recorded,
                    strategy=chosen.strategy, strategy_options=limits,
                    simulation_mode=True, cache=cache, quiet=True)
            seen, distances, least = set(), [], float("inf")
            for result in results:
                key = ",".join(str(result[name]) for name in names)
                if key in seen:
                    continue
                seen.add(key)
                if isinstance(times[key], (int, float)):
                    least = min(least, times[key])
                distances.append(round(least / best - 1, 6) if least < float("inf") else None)
            print(json.dumps(distances[: chosen.evaluations]), flush=True)


if __name__ == "__main__":
    main()
