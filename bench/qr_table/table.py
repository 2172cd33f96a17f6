#!/usr/bin/env python3
"""Writes the table of batched QR on a GPU from one campaign: table.json and table.md.

Usage: bench/qr_table/table.py RUN --out FOLDER [--torch torch.json] [--contest result.json]

RUN is the folder of a run of batched_qr with --target cuda that promoted a winner (or, with --screened, of one that did
not: then the figures are of its champions' confirmations). Times of the winner and their intervals are those of the
promotion, the errors the worst over every output that it checked; the vendors' routines were timed by the same campaign.
--torch takes what tools/torch_baseline.py wrote on the same machine in the same session, --contest the result of
`kbeam bundle --kind check --grade contest`. Every figure names where it comes from; what is missing is null.
"""
import argparse
import json
import math
import pathlib
import sqlite3
import struct
import sys

FLOORS_MS = {  # each matrix read once and written once at 4.3 TB/s
    (20, 32): 0.00004, (40, 176): 0.0023, (40, 352): 0.0092, (640, 512): 0.312, (60, 1024): 0.117, (8, 2048): 0.062,
    (2, 4096): 0.062,
}
FAMILIES = {  # of torch_baseline.py, by the ending of a case's name
    'mixed': 'mixed', 'rankdef': 'rankdef', 'clustered': 'clustered', 'nearrank': 'nearrank',
}
KIND_OF_PAIRS = b'kbpairs1'


def events(database, kind):
    rows = database.execute('SELECT body FROM events WHERE kind = ? ORDER BY sequence', (kind,))
    return [json.loads(body) for (body,) in rows]


def candidate_samples(database, measurement):
    """The candidate's times of a measurement, in ns, as the archive keeps pairs."""
    row = database.execute('SELECT bytes FROM blobs WHERE hash = ?', (measurement['samples_hash'],)).fetchone()
    if row is None or not row[0].startswith(KIND_OF_PAIRS):
        return []
    (count,) = struct.unpack_from('<Q', row[0], len(KIND_OF_PAIRS))
    return list(struct.unpack_from(f'<{count}d', row[0], len(KIND_OF_PAIRS) + 8))


def figure(checks, case, name):
    values = [f['value'] for c in checks if c['case_name'] == case for f in c['figures'] if f['name'] == name]
    return max(values) if values else None


def parse_case(name):
    """b640_n512_mixed -> (640, 512, 'mixed')."""
    parts = name.split('_')
    return int(parts[0][1:]), int(parts[1][1:]), parts[2] if len(parts) > 2 else 'dense'


def torch_ms(torch, batch, n, family):
    """The better of eager and compiled torch.geqrf."""
    for name, case in (torch or {}).get('cases', {}).items():
        words = name.split()
        if words[:3] == ['qr', f'b{batch}', f'n{n}'] and words[3] == family:
            times = [case[way]['median_ns'] for way in ('eager', 'compiled') if case.get(way, {}).get('median_ns')]
            return min(times) / 1e6 if times else None
    return None


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values and all(values) else None


def measurements_of(database, screened):
    """(evaluation, measurement) of every case: of the promotion, or of the last confirmation that crowned."""
    found = {}
    for evaluation in events(database, 'evaluation'):
        wanted = evaluation['stage'] == 'promote' or screened and evaluation['stage'] == 'confirm'
        if wanted and evaluation['verdict'] == 'accepted':
            for measurement in evaluation['measurements']:
                found[measurement['case_name']] = (evaluation, measurement)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('run', type=pathlib.Path)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--torch', type=pathlib.Path)
    parser.add_argument('--contest', type=pathlib.Path)
    parser.add_argument('--screened', action='store_true')
    options = parser.parse_args()
    archive = options.run / 'archive.sqlite'
    if not archive.exists():
        sys.exit(f'table.py: there is no {archive}: give the folder of a run')
    database = sqlite3.connect(f'file:{archive}?mode=ro', uri=True)
    baselines = events(database, 'baseline')
    found = measurements_of(database, options.screened)
    if not baselines or not found:
        sys.exit(f'table.py: {options.run} has no promotion yet: `kbeam resume` it, or use --screened')
    ranked = baselines[-1].get('ranked_ns', {})
    torch = json.loads(options.torch.read_text()) if options.torch else None
    contest = json.loads(options.contest.read_text()) if options.contest else None
    contest_checks = {c['case_name']: c['verdict'] for c in contest['evaluation']['checks']} if contest else {}
    cases = []
    for name, (evaluation, measurement) in found.items():
        batch, n, family = parse_case(name)
        ns = candidate_samples(database, measurement)
        summary = measurement['summary']
        baseline_ms = summary['reference_ns'] / 1e6
        vendor = lambda which: ranked.get(which, {}).get(name, 0) / 1e6 or None
        cases.append({
            'case': name, 'batch': batch, 'n': n, 'family': family, 'ours_ms': summary['candidate_ns'] / 1e6,
            # The interval is that of the ratio to the baseline, taken to the baseline's median.
            'low_ms': baseline_ms / float(summary['high']) if float(summary['high']) > 0 else None,
            'high_ms': baseline_ms / float(summary['low']) if float(summary['low']) > 0 else None,
            'samples': [t / 1e6 for t in ns], 'floor_ms': FLOORS_MS.get((batch, n)),
            'torch_geqrf_ms': torch_ms(torch, batch, n, family), 'cusolver_ms': vendor('cusolver'),
            'cublas_batched_ms': vendor('cublas_batched'), 'contest_ms': None,
            'worst_column_error_eps': figure(evaluation['checks'], name, 'column_residual'),
            'orthogonality_n_eps': figure(evaluation['checks'], name, 'orthogonality'),
            'fp32_grade': evaluation['grade'] == 'fp32' and evaluation['verdict'] == 'accepted',
            'contest_grade': contest_checks[name] == 'accepted' if name in contest_checks else None,
            'evaluation_id': evaluation['id'],
        })
    cases.sort(key=lambda c: (c['family'] != 'dense', c['n'], c['case']))
    environment = json.loads(database.execute("SELECT body FROM events WHERE kind = 'campaign'").fetchone()[0])
    devices = [e.get('device', {}) for e, _ in found.values()]
    table = {
        'run': options.run.name, 'device': (torch or {}).get('environment', {}).get('device') or devices[0].get('name'),
        'driver': devices[0].get('driver'), 'toolkit': (torch or {}).get('environment', {}).get('cuda'),
        'date': options.run.name[:8], 'command': f'kbeam run batched_qr --target cuda, run {options.run.name}',
        'compiler': environment.get('environment', {}).get('compiler'), 'cases': cases,
        'geomean_ms': geomean([c['ours_ms'] for c in cases]),
        'geomean_speedup_over_torch': geomean([(c['torch_geqrf_ms'] or 0) / c['ours_ms'] for c in cases]),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / 'table.json').write_text(json.dumps(table, indent=1) + '\n')
    (options.out / 'table.md').write_text(render(table))
    print(f"{options.out}/table.md: {len(cases)} cases, geometric mean {table['geomean_ms']:.4g} ms")


def show(value, digits=4):
    return '' if value is None else 'yes' if value is True else 'no' if value is False else f'{value:.{digits}g}'


def render(table):
    lines = [f"# Batched QR on {table['device'] or 'a GPU'}", '',
             'Written by bench/qr_table/table.py from `table.json` beside it, which holds every sample.', '',
             '| case | ours ms | interval | floor | torch.geqrf | cuSOLVER | cuBLAS batched | column error, eps | '
             'orthogonality, n eps | FP32 grade | contest grade | evaluation |',
             '|---|---|---|---|---|---|---|---|---|---|---|---|']
    for c in table['cases']:
        interval = f"{show(c['low_ms'])} to {show(c['high_ms'])}" if c['low_ms'] and c['high_ms'] else ''
        lines.append(f"| {c['case']} | **{show(c['ours_ms'])}** | {interval} | {show(c['floor_ms'])} | "
                     f"{show(c['torch_geqrf_ms'])} | {show(c['cusolver_ms'])} | {show(c['cublas_batched_ms'])} | "
                     f"{show(c['worst_column_error_eps'], 3)} | {show(c['orthogonality_n_eps'], 2)} | "
                     f"{show(c['fp32_grade'])} | {show(c['contest_grade'])} | {c['evaluation_id']} |")
    lines += ['', f"Geometric mean of these {len(table['cases'])} cases: {show(table['geomean_ms'])} ms"
              + (f", {show(table['geomean_speedup_over_torch'])} x torch.geqrf in the same session"
                 if table['geomean_speedup_over_torch'] else '') + '.', '']
    return '\n'.join(lines)


if __name__ == '__main__':
    main()
