# SPDX-License-Identifier: MIT
"""A real browser for tests: Chromium's headless shell, spoken to over its debugging pipe."""

import json
import os
import select
import shutil
import subprocess

import pytest

PROGRAM = "chromium-headless-shell"
WAIT_SECONDS = 60
# Resolves once the expression is true, with its value.
UNTIL = """new Promise((done) => {{
  const look = () => {{ const value = ({}); if (value) done(value); else setTimeout(look, 20); }};
  look();
}})"""
KEYS = {"Tab": 9, "Enter": 13}


class Browser:
    """One page. What it asked for, and what it complained of, is in `requests` and `faults`."""

    def __init__(self, folder):
        if not shutil.which(PROGRAM):
            pytest.skip(f"there is no {PROGRAM}: packaging/test long installs it")
        theirs_in, self.out = os.pipe()
        self.fd, theirs_out = os.pipe()
        # It reads from 3 and writes to 4. It shows our own pages only, so it needs no sandbox, which root cannot have.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}', PROGRAM, "--remote-debugging-pipe",
             "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.unread, self.number, self.session = b"", 0, None
        self.requests, self.faults = [], []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.unread:
            assert select.select([self.fd], [], [], WAIT_SECONDS)[0], "the browser does not answer"
            more = os.read(self.fd, 1 << 20)
            assert more, "the browser has ended"
            self.unread += more
        text, self.unread = self.unread.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        about = {"sessionId": self.session} if self.session else {}
        text = json.dumps({"id": self.number, "method": method, "params": params, **about})
        os.write(self.out, text.encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            event, about = message.get("method"), message.get("params")
            if event == "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
            elif event == "Log.entryAdded" and about["entry"]["source"] == "network":
                pass  # an answer that is an error
            elif event in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.faults.append(about)

    def run(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression):
        return self.run(UNTIL.format(expression))

    def open(self, url, width=1200, scheme="light"):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Page.navigate", url=url)
        self.until(f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'")

    def press(self, key):
        about = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text):
        """Into what has the focus."""
        self.ask("Input.insertText", text=text)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)
        os.close(self.out)
