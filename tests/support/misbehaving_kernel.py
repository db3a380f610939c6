# SPDX-License-Identifier: MIT
"""A kernel that breaks the rules as the code it is given says: `{"do": [[action, ...], ...]}`. Runs on Debian's python3 with
its pyzmq (python3-ipykernel brings it). argv: connection file, how it starts."""

import hashlib
import hmac
import json
import os
import signal
import socket as tcp
import sys
import time
import uuid

import zmq

SESSION = uuid.uuid4().hex
interrupts = []


class Kernel:
    def __init__(self, connection, late):
        with open(connection, encoding="utf-8") as file:
            self.info = json.load(file)
        self.context = context = zmq.Context()
        self.shell = self._bind(context, zmq.ROUTER, "shell")
        self.control = self._bind(context, zmq.ROUTER, "control")
        self.bind_stdin = lambda: self._bind(context, zmq.ROUTER, "stdin")
        self.stdin = None if late else self.bind_stdin()
        self.iopub = self._bind(context, zmq.PUB, "iopub")
        self.count = self.lines = 0
        self.who = []
        self.parent = self.before = self.latest = {}

    def _bind(self, context, kind, name):
        socket = context.socket(kind)
        socket.linger = 1000
        socket.sndhwm = 0  # the lost part, other lost parts
        socket.bind(f"tcp://{self.info['ip']}:{self.info[name + '_port']}")
        return socket

    def _sign(self, frames, key=None):
        key = self.info["key"] if key is None else key
        return hmac.new(key.encode(), b"".join(frames), hashlib.sha256).hexdigest().encode()

    def frames(self, kind, content, parent=None, key=None):
        header = {"msg_id": uuid.uuid4().hex, "session": SESSION, "username": "k", "date": "2024-01-01T00:00:00Z",
                  "msg_type": kind, "version": "5.3"}
        parent = self.parent if parent is None else parent
        body = [json.dumps(part).encode() if not isinstance(part, bytes) else part
                for part in (header, parent, {}, content)]
        return [b"<IDS|MSG>", self._sign(body, key)] + body

    def publish(self, kind, content, parent=None, key=None):
        self.iopub.send_multipart([kind.encode()] + self.frames(kind, content, parent, key))

    def reply(self, kind, content):
        self.shell.send_multipart(self.who + self.frames(kind, content))

    # Requests that a cell may make.

    def do_stream(self, text, name="stdout"):
        self.publish("stream", {"name": name, "text": text})

    def do_busy(self):
        self.publish("status", {"execution_state": "busy"})

    def do_idle(self):
        self.publish("status", {"execution_state": "idle"})

    def do_input(self):
        self.publish("execute_input", {"code": "", "execution_count": self.count})

    def do_reply(self, status="ok", **more):
        self.reply("execute_reply", {"status": status, "execution_count": self.count, **more})

    def do_error_reply(self, name, value):
        self.do_reply("error", ename=name, evalue=value, traceback=[f"\x1b[31m{name}\x1b[0m: {value}"])

    def do_result(self, text):
        self.publish("execute_result", {"data": {"text/plain": text}, "metadata": {}, "execution_count": self.count})

    def do_unsigned(self, text):
        self.publish("stream", {"name": "stdout", "text": text}, key="wrong")

    def do_foreign(self, text):
        self.publish("stream", {"name": "stdout", "text": text}, parent={"msg_id": "nobody's"})

    def do_stale(self, text):
        self.publish("stream", {"name": "stdout", "text": text}, parent=self.before)

    def do_orphan(self, text):
        self.publish("stream", {"name": "stdout", "text": text}, parent={})

    def do_unknown(self):
        self.publish("never_heard_of", {"a": [1, 2]})
        self.publish("comm_open", {"comm_id": "c", "target_name": "t", "data": {}})
        self.publish("iopub_welcome", {"subscription": ""}, parent={})

    def do_garbage(self):
        self.iopub.send(b"")
        self.iopub.send_multipart([b"stream", b"<IDS|MSG>"])
        self.iopub.send_multipart([os.urandom(100) for _ in range(100)])
        for content in (b"{", b"[]", b"null", b'{"text": "\xff"}', b"", b'{"a":' * 5000):
            self.publish("stream", content)
        self.publish("stream", {"name": 4, "text": {"no": "text"}})
        self.publish("stream", {})
        self.publish("display_data", {"data": [], "metadata": 1, "transient": "x"})
        self.publish("update_display_data", {"transient": {"display_id": 7}})
        self.publish("clear_output", {"wait": "maybe"})
        self.publish("error", {"ename": None, "traceback": "no list"})
        self.shell.send_multipart(self.who + [b"<IDS|MSG>", b"0" * 64, b"{}", b"{}", b"{}", b"{}"])

    def do_huge(self, megabytes):
        self.do_stream("x" * (int(megabytes) << 20))

    def do_flood(self, count):
        for at in range(count):
            self.do_stream(f"{at:05}\n")

    def do_ask(self):
        self.stdin.send_multipart(self.who + self.frames("input_request", {"prompt": "name?", "password": False}))
        self.stdin.RCVTIMEO = 60000
        frames = self.stdin.recv_multipart()
        content = json.loads(frames[frames.index(b"<IDS|MSG>") + 5])
        self.do_stream("answered " + repr(content["value"]))

    def do_sleep(self, seconds):
        time.sleep(seconds)

    def do_chatter(self, path):
        """Until the file is there."""
        while not os.path.exists(path):
            self.do_stream(".", "stderr")
            time.sleep(0.2)

    def do_go_on(self):
        """Numbered lines, one at least, until the next request is there."""
        self.lines = 0
        while self.lines == 0 or not self.shell.poll(0):
            self.do_stream(f"{self.lines}\n")
            self.lines += 1

    def do_lines(self):
        """How many that were."""
        self.do_stream(f"{self.lines}\n")

    def do_swallow(self):
        while not interrupts:
            time.sleep(0.05)

    def do_exit(self, code):
        for socket in (self.shell, self.control, self.iopub, self.stdin):
            socket.close(linger=60000)
        self.context.term()  # the sent messages are on their way then
        os._exit(code)

    def execute(self, content):
        self.count += 1
        self.before, self.latest = self.latest, self.parent
        for action, *arguments in json.loads(content["code"])["do"]:
            getattr(self, "do_" + action)(*arguments)

    def serve(self):
        poller = zmq.Poller()
        poller.register(self.shell, zmq.POLLIN)
        poller.register(self.control, zmq.POLLIN)
        while True:
            for socket, _ in poller.poll():
                frames = socket.recv_multipart()
                at = frames.index(b"<IDS|MSG>")
                assert frames[at + 1] == self._sign(frames[at + 2:at + 6])
                self.who, self.parent = frames[:at], json.loads(frames[at + 2])
                content = json.loads(frames[at + 5])
                kind = self.parent["msg_type"]
                if kind == "kernel_info_request":
                    self.do_busy()
                    self.reply("kernel_info_reply", {"status": "ok", "protocol_version": "5.3"})
                    self.do_idle()
                    if self.stdin is None:
                        time.sleep(0.4)
                        self.stdin = self.bind_stdin()
                elif kind == "execute_request":
                    self.execute(content)
                elif kind == "shutdown_request":
                    sys.exit(0)


def takes_alone(port):
    """Can a program have the port that, unlike ZeroMQ, shares it with no other socket?"""
    with tcp.socket() as alone:
        try:
            alone.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def main():
    how = sys.argv[2] if len(sys.argv) > 2 else "good"
    if how == "dead":
        sys.stderr.write("no module named nothing\n")
        sys.exit(3)
    if how == "mute":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1)
    if how in ("shares", "alone"):
        with open(sys.argv[1], encoding="utf-8") as file:
            taken = {takes_alone(value) for name, value in json.load(file).items() if name.endswith("_port")}
        if taken != {how == "alone"}:
            sys.exit(4)
    signal.signal(signal.SIGINT, lambda *_: interrupts.append(1))
    Kernel(sys.argv[1], how == "late").serve()


if __name__ == "__main__":
    main()
