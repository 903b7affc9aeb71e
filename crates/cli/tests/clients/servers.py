"""The servers of the clients' world, then a command in it.

servers.py DIR ADDRESS COMMAND ARGS...: on ADDRESS, https on 443 and http on 80 serve DIR/www,
5432 speaks as much PostgreSQL as one query needs, 22 is sshd when DIR has its configuration, and
2222 begins as one does.
"""

import functools
import http.server
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time

directory, address, command = sys.argv[1], sys.argv[2], sys.argv[3:]


class Web(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512

    def handle_error(self, *_):
        pass


def web(port, context=None):
    handler = functools.partial(Web, directory=directory + "/www")
    server = Server((address, port), handler)
    if context:
        # The handshake is the handler thread's, or one silent client would stop all others.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    threading.Thread(target=server.serve_forever, daemon=True).start()


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


class Postgres(socketserver.StreamRequestHandler):
    def packet(self):
        (length,) = struct.unpack("!I", self.rfile.read(4))
        return self.rfile.read(length - 4)

    def handle(self):
        start = self.packet()
        if start[:4] == struct.pack("!I", 80877103):  # SSLRequest
            self.wfile.write(b"N")
            start = self.packet()
        ready = message(b"Z", b"I")
        self.wfile.write(message(b"R", struct.pack("!I", 0)) + ready)
        while (kind := self.rfile.read(1)) == b"Q":
            self.packet()
            column = b"x\0" + struct.pack("!IHIHIH", 0, 0, 25, 0xFFFF, 0xFFFFFFFF, 0)
            text = b"hello by postgres"
            self.wfile.write(
                message(b"T", struct.pack("!H", 1) + column)
                + message(b"D", struct.pack("!HI", 1, len(text)) + text)
                + message(b"C", b"SELECT 1\0")
                + ready
            )


class Greeting(socketserver.StreamRequestHandler):
    """Speaks first, and then waits for the client's own line."""

    def handle(self):
        self.wfile.write(b"SSH-2.0-hello_by_a_stand-in\r\n")
        self.rfile.readline()


class Threads(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, *_):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(directory + "/cert.pem", directory + "/key.pem")
web(443, context)
web(80)
threading.Thread(target=Threads((address, 5432), Postgres).serve_forever, daemon=True).start()
threading.Thread(target=Threads((address, 2222), Greeting).serve_forever, daemon=True).start()
sshd = None
if os.path.exists(directory + "/sshd_config"):
    # By its full path: it starts itself again for each connection.
    words = [open(directory + "/sshd_path").read(), "-D", "-e", "-f", directory + "/sshd_config"]
    log = open(directory + "/sshd.log", "ab")
    sshd = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    while sshd.poll() is None:
        try:
            socket.create_connection((address, 22)).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
code = subprocess.run(command).returncode
if sshd:
    sshd.terminate()
    sshd.wait()
sys.stdout.flush()
os._exit(code if code >= 0 else 128 - code)
