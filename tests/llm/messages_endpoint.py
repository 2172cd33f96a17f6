#!/usr/bin/env python3
"""An endpoint of the Anthropic Messages API on loopback, over TLS, that follows a script: it is busy in all three ways,
breaks a stream off, reaches a limit, and words the answers of `kbeam ask`. Needs nothing but Python.

Usage: messages_endpoint.py CANDIDATE CERTIFICATE PORT_FILE LOG_FILE
"""
import json
import re
import sys

from endpoint import KEY, ScriptedHandler, block, serve

CANDIDATE, CERTIFICATE, PORT_FILE, LOG_FILE = sys.argv[1:5]
with open(CANDIDATE, encoding='utf-8') as file:
    # Without knobs there is nothing to tune, so that the campaign ends by itself once every source is judged.
    GOOD = re.sub(r'KBEAM_KNOB\((\w+), (\w+), (\w+),.*?\);', r'constexpr \1 \2 = \3;', file.read())

IDEAS = {'ideas': [
    {'family': 'whole rows', 'category': 'memory', 'expected_gain': '1.1 x', 'risk': 'none',
     'hypothesis': 'Read every row once, from its beginning to its end.'},
    {'family': 'no sums', 'category': 'algorithm', 'expected_gain': '9 x', 'risk': 'none',
     'hypothesis': 'Do not compute the sums, because nobody looks at them.'},
]}

BUSY = {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}


class Handler(ScriptedHandler):
    SCRIPTS = {
        'ideas': ['slow down', 'overloaded', 'overloaded in the stream', 'ideas', 'overloaded on the way', 'no ideas'],
        'whole_rows': ['breaks off', 'good'],
        'no_sums': ['at the limit', 'refusal'],
        'answer': ['answer', 'invention', 'refusal'],
    }

    def step_of(self, body):
        assert self.path == '/v1/messages', self.path
        assert self.headers['x-api-key'] == KEY and self.headers['anthropic-version'] == '2023-06-01', 'the headers'
        assert body['stream'] and body['max_tokens'] > 0 and body['system'], 'what the protocol wants'
        roles = [turn['role'] for turn in body['messages']]
        assert roles == (['user', 'assistant'] * len(roles))[:len(roles)] and roles[-1] == 'user', 'they take turns'
        prompt = body['messages'][0]['content']
        if body['system'].startswith('You put tables'):
            self.facts = prompt
            return 'answer'
        return 'ideas' if 'in words only' in prompt else re.search(r'^family: (\w+)$', prompt, re.MULTILINE)[1]

    def event(self, json_object):
        self.wfile.write(f'event: {json_object["type"]}\ndata: {json.dumps(json_object)}\n\n'.encode())
        self.wfile.flush()

    def begin_message(self, tokens_in):
        """The count of what goes out is a placeholder here, as it is in reality."""
        self.begin_stream()
        self.entry['tokens_in'] = tokens_in
        cached = tokens_in // 3
        self.event({'type': 'message_start', 'message': {'role': 'assistant', 'content': [], 'usage': {
            'input_tokens': tokens_in - cached, 'cache_read_input_tokens': cached, 'output_tokens': 2}}})
        self.event({'type': 'content_block_start', 'index': 0, 'content_block': {'type': 'text', 'text': ''}})
        self.event({'type': 'ping'})

    def words(self, text):
        for start in range(0, len(text), 500):
            self.event({'type': 'content_block_delta', 'index': 0,
                        'delta': {'type': 'text_delta', 'text': text[start:start + 500]}})

    def end_message(self, reason, tokens_out):
        self.entry['tokens_out'] = tokens_out
        self.event({'type': 'content_block_stop', 'index': 0})
        self.event({'type': 'message_delta', 'delta': {'stop_reason': reason}, 'usage': {'output_tokens': tokens_out}})
        self.event({'type': 'message_stop'})

    def say(self, text):
        self.begin_message(1000 + len(text) % 97)
        self.words(text)
        self.end_message('end_turn', 100 + len(text) % 89)

    def do_slow_down(self):
        self.status(429, json.dumps({'type': 'error', 'error': {'type': 'rate_limit_error', 'message': 'slow down'}}),
                    ('retry-after', '2'))

    def do_overloaded(self):
        self.status(529, json.dumps(BUSY))

    def do_overloaded_in_the_stream(self):
        self.begin_stream()
        self.event(BUSY)

    def do_overloaded_on_the_way(self):
        self.begin_message(900)
        self.words('{"ideas": [')
        self.entry['said'] = len('{"ideas": [')
        self.event(BUSY)

    def do_ideas(self):
        self.say(json.dumps(IDEAS))

    def do_no_ideas(self):
        self.say('{"ideas": []}')

    def do_breaks_off(self):
        self.begin_message(1234)
        self.words(block(GOOD)[:1000])
        self.entry['said'] = len(block(GOOD)[:1000])

    def do_at_the_limit(self):
        self.begin_message(1111)
        self.words(block(GOOD)[:800])
        self.end_message('max_tokens', 77)

    def do_good(self):
        self.say(block(GOOD))

    def do_refusal(self):
        self.begin_message(555)
        self.end_message('refusal', 3)

    def do_answer(self):
        evaluation = re.search(r'\be\d{5}\b', self.facts)[0]
        self.say(f'One candidate was judged, in {evaluation}. \x1b[31m{KEY}')

    def do_invention(self):
        self.say('It was decided in e77777.')


serve(Handler, PORT_FILE, LOG_FILE, CERTIFICATE)
