#!/usr/bin/env python3
"""Tests what of cliffs.py needs no GPU: shapes, references, each rule kept and broken, a sweep that was cut off."""
import argparse
import math
import pathlib
import tempfile
import unittest

import cliffs

EDGES = [32, 352, 1024, 8192]
SHAPES = cliffs.make_shapes(EDGES)


def smooth(shape):
    """A card without cliffs: latency or throughput, and a little for every element."""
    b, m, n = shape
    return max(1e-3 * n, cliffs.flops(b, m, n) / 1e10) + 1e-12 * b * m * n


class Cliffs(unittest.TestCase):
    def verdicts(self, times):
        return {name: rule['verdict'] for name, rule in cliffs.judge(times, EDGES, SHAPES).items()}

    def test_shapes_are_those_of_the_issue(self):
        for b in cliffs.BATCHES:
            self.assertTrue(all((b, n, n) in SHAPES for n in range(1, 65)))
            self.assertTrue(all((b, n, n) in SHAPES for n in (350, 351, 352, 353, 354, 1022, 1026)))
        self.assertEqual(len(set(cliffs.random_shapes())), 200)
        self.assertTrue(set(cliffs.random_shapes()) <= set(SHAPES))
        self.assertTrue(all(max(m, n) <= 8192 for _, m, n in SHAPES))

    def test_padding(self):
        self.assertEqual(cliffs.pad((3, 33, 32), EDGES), (3, 352, 32))
        self.assertEqual(cliffs.pad((3, 8192, 1), EDGES), (3, 8192, 32))

    def test_interpolation_is_straight_in_logarithms(self):
        self.assertAlmostEqual(cliffs.interpolate({2: 4.0, 8: 64.0}, 4), 16.0)
        self.assertEqual(cliffs.interpolate({2: 4.0, 8: 64.0}, 8), 64.0)
        self.assertIsNone(cliffs.interpolate({2: 4.0, 8: 64.0}, 9))
        self.assertIsNone(cliffs.interpolate({}, 9))

    def test_smooth_times_break_no_rule(self):
        rules = cliffs.judge({shape: smooth(shape) for shape in SHAPES}, EDGES, SHAPES)
        self.assertEqual({name: rule['verdict'] for name, rule in rules.items()},
                         {'cliff': 'kept', 'padding': 'kept', 'large': 'kept', 'families': 'unknown'})
        self.assertGreater(rules['padding']['too_large'], 0)

    def test_a_cliff_is_found_at_batch_1_too(self):
        times = {shape: smooth(shape) for shape in SHAPES}
        times[1, 33, 33] *= 1.6
        rule = cliffs.judge(times, EDGES, SHAPES)['cliff']
        self.assertEqual([(e['batch'], e['m'], e['n']) for e in rule['broken']], [(1, 33, 33)])

    def test_slower_than_padded_is_found(self):
        times = {shape: smooth(shape) for shape in SHAPES}
        times[8, 351, 351] = 1.01 * times[8, 352, 352]
        rule = cliffs.judge(times, EDGES, SHAPES)['padding']
        self.assertEqual([(e['batch'], e['m'], e['n']) for e in rule['broken']], [(8, 351, 351)])

    def test_slow_above_4096_is_found(self):
        times = {shape: smooth(shape) for shape in SHAPES}
        times[1, 7168, 7168] = 2 * cliffs.flops(1, 7168, 7168) / cliffs.flops(1, 4096, 4096) * times[1, 4096, 4096]
        self.assertEqual(self.verdicts(times)['large'], 'broken')

    def test_what_was_not_timed_is_unknown(self):
        self.assertEqual(set(self.verdicts({}).values()), {'unknown'})
        times = {shape: smooth(shape) for shape in SHAPES}
        times[8, 33, 33] = None
        self.assertEqual(self.verdicts(times)['cliff'], 'unknown')

    def test_sweep_goes_on_where_it_was_cut_off(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            bench = folder / 'bench'
            bench.write_text('#!/bin/sh\nprintf "batch\\tm\\tn\\n"\nfor s in "$@"; do echo "$s" >> "$(dirname "$0")/asked"\n'
                             'printf "%s\\t0.5\\t0.4\\t1\\t3\\trow\\n" "$(echo "$s" | tr x "\\t")"; done\n')
            bench.chmod(0o755)
            (folder / 'samples.tsv').write_text('1\t2\t2\t0.7\t0.6\t1\t3\trow\n1\t4\t4\t0.')
            arguments = argparse.Namespace(bench=str(bench), out=folder, seconds=60)
            self.assertEqual(cliffs.sweep(arguments, [(1, 2, 2), (1, 4, 4), (8, 3, 3)]), 0)
            self.assertEqual((folder / 'asked').read_text().split(), ['1x4x4', '8x3x3'])
            found = {shape: ms for shape, (ms, _) in cliffs.read_samples(folder / 'samples.tsv').items()}
            self.assertEqual(found, {(1, 2, 2): 0.7, (1, 4, 4): 0.5, (8, 3, 3): 0.5})

    def test_a_shape_that_ends_the_bench_does_not_stop_its_neighbours(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            bench = folder / 'bench'
            bench.write_text('#!/bin/sh\nfor s in "$@"; do [ "$s" = 1x4x4 ] && exit 3\n'
                             'printf "%s\\t0.5\\t0.4\\t1\\t3\\trow\\n" "$(echo "$s" | tr x "\\t")"; done\n')
            bench.chmod(0o755)
            arguments = argparse.Namespace(bench=str(bench), out=folder, seconds=60)
            self.assertEqual(cliffs.sweep(arguments, [(1, 2, 2), (1, 4, 4), (8, 3, 3)]), 1)
            self.assertEqual(set(cliffs.read_samples(folder / 'samples.tsv')), {(1, 2, 2), (8, 3, 3)})

    def test_picture(self):
        self.assertIn('polyline', cliffs.draw({1: {1: 0.1, 64: math.pi}}, 'ms'))
        self.assertIsNone(cliffs.draw({1: {}}, 'ms'))


if __name__ == '__main__':
    unittest.main()
