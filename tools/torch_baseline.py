#!/usr/bin/env python3
"""Times PyTorch on the workloads that kernelbeam's GPU goals name, eager and compiled, on this machine's GPU.

Usage: tools/torch_baseline.py [--out FILE] [--only NAME ...] [--calls N] [--pieces-s S] [--device N]

Every timed call gets inputs that no call has seen, and a cold L2 (twice its size is written and read before the call),
and is timed by CUDA events around the call alone, which is a replay of a CUDA graph wherever the call can be captured,
as kernelbeam's own are; the median, the least and every sample are kept. Results go to FILE
(default torch_baseline.json) after every case: the same command goes on from there, so that it can be run in pieces.
Needs PyTorch with CUDA and nothing of kernelbeam. Inputs are of the families that the batched QR problem describes.
"""
import argparse
import json
import math
import os
import statistics
import sys
import time

import torch

EPS = 2.0 ** -23

# batch, n, family, column scales from 1 down to 10^-cond.
QR_CASES = [
    (20, 32, 'dense', 1), (40, 176, 'dense', 1), (40, 352, 'dense', 1), (640, 512, 'dense', 2), (60, 1024, 'dense', 2),
    (8, 2048, 'dense', 1), (2, 4096, 'dense', 1), (640, 512, 'mixed', 2), (60, 1024, 'mixed', 2),
    (640, 512, 'rankdef', 0), (640, 512, 'clustered', 0), (60, 1024, 'nearrank', 0),
]


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, device='cuda')


def scale_columns(a, cond):
    n = a.shape[-1]
    exponents = torch.arange(n, device='cuda', dtype=torch.float64) * (-cond / max(n - 1, 1))
    return a * torch.pow(10.0, exponents).to(torch.float32)


def zero_tail(a, _):
    a[..., 3 * a.shape[-1] // 4:] = 0  # the last quarter of the columns
    return a


def clustered(a, _):
    a[..., a.shape[-1] // 2:] *= 4 * EPS  # the last half is at noise level
    return a


def near_rank(a, generator):
    quarter = a.shape[-1] // 4
    a[..., a.shape[-1] - quarter:] = a[..., :quarter] + 1e-5 * normal(generator, *a.shape[:-1], quarter)
    return a


def band(a, _):
    i = torch.arange(a.shape[-1], device='cuda')
    return a * ((i[:, None] - i[None, :]).abs() <= 8)


def row_graded(a, _):
    n = a.shape[-2]
    exponents = torch.arange(n, device='cuda', dtype=torch.float64) * (-4.0 / max(n - 1, 1))
    return a * torch.pow(10.0, exponents).to(torch.float32)[:, None]


def near_collinear(a, generator):
    direction = normal(generator, *a.shape[:-1], 1)
    return direction + 1e-4 * a


KINDS = {'dense': lambda a, _: a, 'rankdef': zero_tail, 'clustered': clustered, 'nearrank': near_rank, 'band': band,
         'rowscale': row_graded, 'nearcollinear': near_collinear}


def qr_input(case, seed):
    batch, n, family, cond = case
    generator = torch.Generator(device='cuda').manual_seed(seed)
    a = normal(generator, batch, n, n)
    if family == 'mixed':
        kinds = list(KINDS.values())
        chosen = torch.randint(len(kinds), (batch,), generator=generator, device='cuda').tolist()
        for index, kind in enumerate(chosen):
            a[index] = kinds[kind](a[index].clone(), generator)
    else:
        a = KINDS[family](a, generator)
    return scale_columns(a, cond) if cond else a


def worst_column_error(a, output, matrices=2):
    """max_j ||(R - Q'A) e_j|| / (eps ||A e_j||) over the first matrices, in double precision."""
    h, tau = (part[:matrices].double() for part in output)
    a = a[:matrices].double()
    q = torch.linalg.householder_product(h, tau)
    residual = (torch.triu(h) - q.transpose(-1, -2) @ a).norm(dim=-2)
    norms = a.norm(dim=-2)
    worst = torch.where(norms > 0, residual / (EPS * norms), residual)
    return worst.max().item()


class ColdCache:
    """Writes and reads twice the L2, so that no call finds its inputs there."""

    def __init__(self):
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        size = getattr(properties, 'L2_cache_size', 0) or 64 << 20
        self.buffer = torch.empty(2 * size // 4, device='cuda')

    def flush(self):
        self.buffer.fill_(1.0)
        self.buffer.sum()


def capture(function, make_input):
    """The call as a graph on inputs that stay in place, as (replay, inputs); after three calls, which load and compile."""
    arguments = make_input(1)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function(*arguments)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function(*arguments)

    def replay(*fresh):
        graph.replay()
        return output

    return replay, arguments


def time_calls(work, function, calls, cold):
    """Nanoseconds of each call; the first two, which load and compile, are not counted."""
    samples = []
    make_input = work['input']
    replay, place = capture(function, make_input) if work['capturable'] else (function, None)
    for index in range(calls + 2):
        arguments = make_input(int.from_bytes(os.urandom(6), 'little'))
        for to, fresh in zip(place or (), arguments):
            to.copy_(fresh)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        # The call is queued while the flush runs: what the host needs to launch it is not held against it.
        cold.flush()
        begin.record()
        output = replay(*arguments)
        end.record()
        torch.cuda.synchronize()
        if index >= 2:
            samples.append(begin.elapsed_time(end) * 1e6)
        del output
    return {'median_ns': statistics.median(samples), 'least_ns': min(samples), 'samples_ns': samples,
            'replayed_graph': bool(work['capturable'])}


def qr_work(case):
    batch, n, family, cond = case
    return {'name': f'qr b{batch} n{n} {family}' + (f' cond{cond}' if cond else ''), 'function': torch.geqrf,
            'input': lambda seed: (qr_input(case, seed),), 'flops': batch * 4 / 3 * n ** 3,
            'bytes': batch * (2 * n * n + n) * 4, 'check': worst_column_error,
            'capturable': False}  # cuSOLVER's routine synchronises


def make_random(*shapes, dtype=torch.float32, mean=0.0):
    def make(seed):
        generator = torch.Generator(device='cuda').manual_seed(seed)
        return tuple((normal(generator, *shape) + mean).to(dtype) for shape in shapes)
    return make


def other_work():
    relu, pool = torch.nn.functional.relu, torch.nn.functional.max_pool2d
    attention = torch.nn.functional.scaled_dot_product_attention
    layer = (64, 256, 256)
    heads = (4, 16, 8192, 128)
    queries = make_random(heads, heads, heads, dtype=torch.float16)

    def conv(x, w):
        return torch.nn.functional.conv2d(x, w, stride=4, padding=2)

    images = make_random((100, 3, 224, 224), (96, 3, 11, 11))
    work = [
        ('matmul 4096', torch.matmul, make_random((4096, 4096), (4096, 4096)), 2 * 4096 ** 3),
        ('conv2d', conv, images, 21.08e9),
        ('conv2d relu maxpool', lambda x, w: pool(relu(conv(x, w)), 3, 2), images, 21.08e9),
        ('softmax 4096 x 65536', lambda x: torch.softmax(x, -1), make_random((4096, 65536)), 0),
        ('layer norm', lambda x, g, b: torch.nn.functional.layer_norm(x, layer, g, b),
         make_random((16,) + layer, layer, layer), 0),
        ('matmul 4096 fp16', torch.matmul, make_random((4096, 4096), (4096, 4096), dtype=torch.float16), 2 * 4096 ** 3),
        ('attention fp16', attention, queries, 4 * 4 * 16 * 8192 ** 2 * 128),
        ('attention fp16 causal', lambda q, k, v: attention(q, k, v, is_causal=True), queries,
         2 * 4 * 16 * 8192 ** 2 * 128),
    ]
    return [{'name': name, 'function': function, 'input': make, 'flops': flops, 'bytes': 0, 'check': None,
             'capturable': True}
            for name, function, make, flops in work]


def measure(work, calls, cold, mode):
    result = {'flops': work['flops'], 'bytes': work['bytes']}
    # A call of a second needs fewer repeats than one of microseconds.
    arguments = work['input'](1)
    torch.cuda.synchronize()
    work['function'](*arguments)
    torch.cuda.synchronize()
    began = time.monotonic()
    output = work['function'](*arguments)
    torch.cuda.synchronize()
    spent = time.monotonic() - began
    repeats = max(3, min(calls, int(20 / max(spent, 1e-9))))
    if work['check']:
        result['column_error_eps'] = work['check'](arguments[0], output)
    del output, arguments
    result['eager'] = time_calls(work, work['function'], repeats, cold)
    try:
        torch._dynamo.reset()
        compiled = torch.compile(work['function'], mode=mode)
        result['compiled'] = {'mode': mode} | time_calls(work, compiled, repeats, cold)
    except Exception as trouble:  # what cannot be compiled is said so, and the eager time stands
        result['compiled'] = {'failed': f'{type(trouble).__name__}: {trouble}'[:400]}
    return result


def load(path):
    if os.path.exists(path):
        with open(path, encoding='utf-8') as file:
            return json.load(file)
    return {}


def store(path, results):
    with open(path + '.part', 'w', encoding='utf-8') as file:
        json.dump(results, file, indent=1)
    os.replace(path + '.part', path)


def environment():
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {'device': properties.name, 'uuid': str(getattr(properties, 'uuid', '')), 'torch': torch.__version__,
            'cuda': torch.version.cuda, 'tf32': torch.backends.cuda.matmul.allow_tf32}


def print_line(name, result):
    eager, compiled = result['eager'], result['compiled']
    text = f"{name:<32} eager {eager['median_ns'] / 1e6:10.4f} ms"
    if 'median_ns' in compiled:
        text += f"   compiled {compiled['median_ns'] / 1e6:10.4f} ms"
    if 'column_error_eps' in result:
        text += f"   column error {result['column_error_eps']:.1f} eps"
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', default='torch_baseline.json')
    parser.add_argument('--only', nargs='*', default=[], help='work whose name contains one of these')
    parser.add_argument('--calls', type=int, default=31, help='timed calls a case; fewer where one takes long')
    parser.add_argument('--pieces-s', type=float, default=540, help='start no case after so many seconds')
    parser.add_argument('--mode', default='max-autotune-no-cudagraphs',
                        help='of torch.compile; "default" compiles in seconds')
    parser.add_argument('--device', type=int, default=0)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print('torch_baseline: PyTorch finds no GPU here', file=sys.stderr)
        return 3
    torch.cuda.set_device(options.device)
    # FP32 means FP32: no silent TF32.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    began = time.monotonic()
    results = load(options.out)
    if results.get('environment', environment()) != environment():
        print(f'torch_baseline: {options.out} is of another device or PyTorch: name another --out', file=sys.stderr)
        return 2
    results['environment'] = environment()
    cases = results.setdefault('cases', {})
    cold = ColdCache()
    for work in [qr_work(case) for case in QR_CASES] + other_work():
        name = work['name']
        if options.only and not any(part in name for part in options.only):
            continue
        if name not in cases:
            if time.monotonic() - began > options.pieces_s:
                print('time is up: run the same command again', file=sys.stderr)
                return 4
            cases[name] = measure(work, options.calls, cold, options.mode)
            store(options.out, results)
            torch.cuda.empty_cache()
        print_line(name, cases[name])
    times = [cases[work['name']]['eager']['median_ns'] for work in map(qr_work, QR_CASES) if work['name'] in cases]
    if len(times) == len(QR_CASES):
        mean = math.exp(sum(map(math.log, times)) / len(times))
        print(f'geometric mean of the {len(times)} QR cases: {mean / 1e6:.4f} ms')
    return 0


if __name__ == '__main__':
    sys.exit(main())
