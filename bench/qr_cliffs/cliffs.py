#!/usr/bin/env python3
"""Times geqrf over many shapes with kernelbeam_cuda_qr_bench, in pieces, and says where its times have a cliff.

Usage: cliffs.py sweep --bench PROGRAM --out FOLDER [--seconds 100]   times what FOLDER/samples.tsv lacks
       cliffs.py judge --out FOLDER                                   cliffs.json, time.svg and tflops.svg

It knows nothing of the kernels: edges of buckets come from cuda_rows.json and --edge.
"""
import argparse
import bisect
import json
import math
import pathlib
import random
import subprocess
import sys
import time

ROWS = pathlib.Path(__file__).resolve().parents[2] / 'kernels/src/qr/cuda_rows.json'
BATCHES = (1, 8, 60, 640)
MOST = 8192
GIB_ELEMENTS = 1 << 28  # of float
CLIFF = 1.3
LARGE_SHARE = 0.7
PIECE = 20  # shapes a process: what an interrupted sweep loses at most
# References stand on a grid that is fixed beforehand: a shape that were its own reference could hide no cliff but its own.
GRID = tuple(sorted({1 << i for i in range(14)} | {3 << i for i in range(12)}))


def flops(b, m, n):
    k = min(m, n)
    return b * (2 * m * n * k - (m + n) * k * k + 2 * k**3 / 3)


def saturated_batch(n):
    return max(1, min(65536, GIB_ELEMENTS // (n * n)))


def edges_of(rows, more=()):
    return sorted({row['most'] for row in rows} | set(more) | {MOST})


def pad(shape, edges):
    """The same batch, each side grown to its bucket's edge."""
    b, m, n = shape
    return b, edges[bisect.bisect_left(edges, m)], edges[bisect.bisect_left(edges, n)]


def fits(shape):
    return math.prod(shape) <= 4 * GIB_ELEMENTS


def random_shapes(count=200, seed=6):
    draw = random.Random(seed)

    def log_uniform(most):
        return min(most, int(math.exp(draw.uniform(0, math.log(most + 1)))))

    shapes = []
    while len(shapes) < count:
        shape = log_uniform(4096), log_uniform(MOST), log_uniform(MOST)
        if shape not in shapes and math.prod(shape) <= GIB_ELEMENTS // 4:
            shapes.append(shape)
    return shapes


def make_shapes(edges):
    """References first, so that a piece of the sweep can be judged already."""
    shapes = [(1, n, n) for n in GRID] + [(saturated_batch(n), n, n) for n in GRID]
    sizes = set(range(1, 65)) | set(GRID) | {5120, 7168}
    sizes |= {n for edge in edges for n in range(edge - 2, edge + 3)}
    shapes += [(b, n, n) for b in BATCHES for n in sorted(sizes) if 1 <= n <= MOST]
    shapes += random_shapes()
    shapes += [pad(shape, edges) for shape in shapes]
    return [shape for shape in dict.fromkeys(shapes) if fits(shape)]


def read_samples(path):
    """{(batch, m, n): (median ms or None where the program reported an error, its line)}; half a line counts as none."""
    found = {}
    if not path.exists():
        return found
    for line in path.read_text().splitlines(keepends=True):
        words = line.rstrip('\n').split('\t')
        if not line.endswith('\n') or not words[0].isdigit():
            continue
        shape = tuple(map(int, words[:3]))
        if len(words) == 8:
            found[shape] = float(words[3]), words
        elif len(words) == 4:
            found[shape] = None, words
    return found


def sweep(arguments, shapes, clock=time.monotonic):
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / 'samples.tsv'
    done = read_samples(path)
    missing = [shape for shape in shapes if shape not in done]
    end = clock() + arguments.seconds
    pieces = [missing[at:at + PIECE] for at in range(0, len(missing), PIECE)]
    while pieces:
        left = end - clock()
        if left <= 0:
            break
        piece = pieces.pop(0)
        words = ['x'.join(map(str, shape)) for shape in piece]
        with path.open('a') as out:
            out.write('\n')  # ends a line that an earlier sweep was killed in
            out.flush()
            try:
                status = subprocess.run([arguments.bench, *words], stdout=out, timeout=left).returncode
            except subprocess.TimeoutExpired:
                break
        if status != 0:
            print(f'{arguments.bench}: status {status} among {" ".join(words)}', file=sys.stderr)
            if len(piece) > 1:  # one shape that ends the program must not keep its neighbours from being timed
                timed = read_samples(path)
                pieces += [[shape] for shape in piece if shape not in timed]
    done = read_samples(path)
    count = sum(shape in done for shape in shapes)
    print(f'{count} of {len(shapes)} shapes timed')
    return 0 if count == len(shapes) else 1


def interpolate(points, n):
    """Straight in the logarithms of both; None outside the points."""
    sizes = sorted(points)
    if not sizes or not sizes[0] <= n <= sizes[-1]:
        return None
    at = bisect.bisect_left(sizes, n)
    if sizes[at] == n:
        return points[n]
    low, high = sizes[at - 1], sizes[at]
    share = math.log(n / low) / math.log(high / low)
    return math.exp((1 - share) * math.log(points[low]) + share * math.log(points[high]))


def judge(times, edges, shapes):
    """Every rule with its worst ratio, what broke it, and how many shapes it could not judge."""
    def make_rule(limit):
        return {'limit': limit, 'judged': 0, 'not_judged': 0, 'too_large': 0, 'worst': None, 'broken': []}

    def take(rule, shape, ratio):
        if ratio is None:
            rule['not_judged'] += 1
            return
        rule['judged'] += 1
        entry = {'batch': shape[0], 'm': shape[1], 'n': shape[2], 'ratio': ratio}
        if rule['worst'] is None or ratio > rule['worst']['ratio']:
            rule['worst'] = entry
        if ratio > rule['limit']:
            rule['broken'].append(entry)

    latency = {n: times[1, n, n] for n in GRID if times.get((1, n, n))}
    cost = {}  # ms a flop
    for n in GRID:
        shape = saturated_batch(n), n, n
        if times.get(shape):
            cost[n] = times[shape] / flops(*shape)
    rules = {'cliff': make_rule(CLIFF), 'padding': make_rule(1), 'large': make_rule(1 / LARGE_SHARE)}
    for shape in shapes:
        b, m, n = shape
        mine = times.get(shape)
        parts = interpolate(latency, n), interpolate(cost, n)
        known = mine and None not in parts
        take(rules['cliff'], shape, mine / max(parts[0], flops(*shape) * parts[1]) if known else None)
        padded = pad(shape, edges)
        if padded != shape and not fits(padded):
            rules['padding']['too_large'] += 1
        elif padded != shape:
            take(rules['padding'], shape, mine / times[padded] if mine and times.get(padded) else None)
        if m == n > 4096 and b in BATCHES:
            base = b, 4096, 4096
            whole = mine and times.get(base)
            take(rules['large'], shape, mine / flops(*shape) * flops(*base) / times[base] if whole else None)
    # No shape passes unseen: a rule that lacks times is not kept. What a padded batch has no room for is counted apart.
    for rule in rules.values():
        rule['verdict'] = 'broken' if rule['broken'] else 'kept' if rule['judged'] and not rule['not_judged'] else 'unknown'
    rules['families'] = {'limit': CLIFF, 'judged': 0, 'verdict': 'unknown', 'why': 'the bench times independent normals only'}
    return rules


def draw(series, label):
    """Both axes logarithmic, a line a batch."""
    values = [y for points in series.values() for y in points.values() if y > 0]
    if not values:
        return None
    width, height, edge = 760, 420, 60
    low, high = math.floor(math.log10(min(values))), math.floor(math.log10(max(values))) + 1

    def x_of(n):
        return edge + (width - 2 * edge) * math.log(n) / math.log(MOST)

    def y_of(y):
        return height - edge - (height - 2 * edge) * (math.log10(y) - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<text x="{edge}" y="20">{label} against n</text>']
    for n in (1, 8, 64, 512, 4096, 8192):
        out.append(f'<text x="{x_of(n):.1f}" y="{height - edge + 18}" text-anchor="middle">{n}</text>')
    for power in range(low, high + 1):
        y = y_of(10.0**power)
        out.append(f'<path d="M{edge} {y:.1f}H{width - edge}" stroke="#ddd"/><text x="{edge - 6}" y="{y + 4:.1f}" '
                   f'text-anchor="end">{10.0**power:g}</text>')
    for (batch, points), color in zip(series.items(), ('#1b6ca8', '#c8553d', '#3a7d44', '#7d4e9f')):
        shown = [(x_of(n), y_of(y)) for n, y in sorted(points.items()) if y > 0]
        if shown:
            line = ' '.join(f'{x:.1f},{y:.1f}' for x, y in shown)
            out.append(f'<polyline points="{line}" fill="none" stroke="{color}"/>'
                       f'<text x="{shown[-1][0] + 4:.1f}" y="{shown[-1][1]:.1f}" fill="{color}">{batch}</text>')
    return '\n'.join(out + ['</svg>', ''])


def write_judgement(arguments, edges, shapes):
    samples = read_samples(arguments.out / 'samples.tsv')
    times = {shape: ms for shape, (ms, _) in samples.items()}
    rules = judge(times, edges, shapes)
    (arguments.out / 'cliffs.json').write_text(json.dumps({'edges': edges, 'shapes': len(shapes), 'rules': rules}, indent=1) + '\n')
    squares = {b: {n: ms for (c, m, n), ms in times.items() if c == b and m == n and ms} for b in BATCHES}
    rates = {b: {n: flops(b, n, n) / (1e9 * ms) for n, ms in points.items()} for b, points in squares.items()}
    for name, series, label in (('time', squares, 'ms'), ('tflops', rates, 'TFLOP/s')):
        picture = draw(series, label)
        if picture:
            (arguments.out / f'{name}.svg').write_text(picture)
    for name, rule in rules.items():
        print(f"{name}: {rule['verdict']}, {rule['judged']} judged, {len(rule.get('broken', []))} over {rule['limit']:.2f}, "
              f"{rule.get('not_judged', 0)} not judged, {rule.get('too_large', 0)} too large")
    return 0 if all(rule['verdict'] == 'kept' for rule in rules.values()) else 1


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('sweep', 'judge'))
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--bench', help='kernelbeam_cuda_qr_bench')
    parser.add_argument('--seconds', type=float, default=100)
    parser.add_argument('--edge', type=int, action='append', default=[], help='an edge inside a sketch')
    arguments = parser.parse_args(words)
    edges = edges_of(json.loads(ROWS.read_text())['rows'], arguments.edge)
    shapes = make_shapes(edges)
    if arguments.what == 'judge':
        return write_judgement(arguments, edges, shapes)
    if arguments.bench is None:
        parser.error('sweep needs --bench')
    return sweep(arguments, shapes)


if __name__ == '__main__':
    sys.exit(main())
