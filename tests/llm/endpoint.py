"""What the scripted endpoints of these tests share: requests are counted by step and answered by the script's deed for that
turn, every one is logged with the tokens that were reported, and TLS is spoken where a certificate is given."""
import http.server
import json
import os
import ssl
import threading

KEY = os.environ['EXPECTED_KEY']
lock = threading.Lock()
asked = {}  # step -> how often


class ScriptedHandler(http.server.BaseHTTPRequestHandler):
    """Of a subclass: SCRIPTS (step -> deeds, the last of which is repeated), step_of(body), and a do_... for every deed,
    which notes in self.entry what it reports."""
    protocol_version = 'HTTP/1.1'
    log_file = ''

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        step = self.step_of(body)
        with lock:
            turn = asked.get(step, 0)
            asked[step] = turn + 1
        deed = self.SCRIPTS[step][min(turn, len(self.SCRIPTS[step]) - 1)]
        self.entry = {'step': step, 'deed': deed, 'tokens_in': 0, 'tokens_out': 0}
        try:
            getattr(self, 'do_' + deed.replace(' ', '_'))()
        except (BrokenPipeError, ConnectionResetError):
            self.entry['hung_up'] = True  # the client had enough
        self.close_connection = True
        with lock, open(self.log_file, 'a', encoding='utf-8') as log:
            log.write(json.dumps(self.entry) + '\n')

    def status(self, code, text, *headers):
        data = text.encode()
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Connection', 'close')
        self.end_headers()


def block(text):
    return f'Here is the file.\n\n```cpp\n{text}```\n'


def serve(handler, port_file, log_file, certificate=None):
    """For ever; writes the port to `port_file` once it listens. `certificate`: a PEM file with its key."""
    handler.log_file = log_file
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with open(port_file + '.part', 'w', encoding='utf-8') as file:
        file.write(str(server.server_port))
    os.rename(port_file + '.part', port_file)
    server.serve_forever()
