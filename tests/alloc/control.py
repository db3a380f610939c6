# SPDX-License-Identifier: MIT
"""Settings and results of the preloaded failing_alloc.c: one page that both have mapped."""
import mmap
import os
import pathlib
import re
import struct
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
FRAMES = 40
ARMED, LEFT, BURST, SEEN, FAILED, DEPTH, FIRST_FRAME = range(7)
SHOWN_FRAMES = 9


def build(folder):
    """The library to preload."""
    made = pathlib.Path(folder) / "failing_alloc.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", made, HERE / "failing_alloc.c", "-ldl"], check=True)
    return made


class Control:
    def __init__(self, folder, library):
        self.path = pathlib.Path(folder) / "failing_alloc"
        self.path.write_bytes(bytes(mmap.PAGESIZE))
        self.library = library
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def environment(self):
        """For the process under test. A sanitizer wants to be the first library; here it need not be."""
        options = [os.environ.get("ASAN_OPTIONS", ""), "verify_asan_link_order=0", "exitcode=66"]
        return {"LD_PRELOAD": str(self.library), "FAILING_ALLOC": str(self.path),
                "ASAN_OPTIONS": ":".join(option for option in options if option)}

    def get(self, index):
        return struct.unpack_from("<q", self.page, 8 * index)[0]

    def put(self, index, value):
        struct.pack_into("<q", self.page, 8 * index, value)

    def arm(self, number, burst=1):
        """The `number`th own allocation from now on fails, and the `burst` - 1 after it."""
        for index, value in ((LEFT, number), (BURST, burst), (SEEN, 0), (FAILED, 0), (DEPTH, 0), (ARMED, 1)):
            self.put(index, value)

    def disarm(self):
        """How many failed."""
        self.put(ARMED, 0)
        return self.get(FAILED)

    def maps(self):
        """Of the process whose allocation failed last; it may be gone."""
        return Maps(f"{self.path}.maps")

    def frames(self):
        """Addresses of the code whose allocation failed, innermost first."""
        return [self.get(FIRST_FRAME + i) & (1 << 64) - 1 for i in range(min(self.get(DEPTH), FRAMES))]


class Maps:
    """Which file's which place an address of a process is."""

    def __init__(self, source):
        """source: a file as /proc/PID/maps."""
        self.parts = []
        with open(source) as file:
            for line in file:
                words = line.split()
                if len(words) >= 6 and words[5].startswith("/"):
                    start, end = (int(word, 16) for word in words[0].split("-"))
                    self.parts.append((start, end, int(words[2], 16), words[5]))

    def find(self, address):
        for start, end, offset, path in self.parts:
            if start <= address < end:
                return path, address - start + offset
        return None, address

    def names(self, addresses):
        """The functions there, callees first, without those of libraries."""
        by_file = {}
        for address in addresses:
            path, offset = self.find(address)
            if path and (path.endswith("/bin/notegate") or "/modules/" in path):
                by_file.setdefault(path, []).append((address, offset))
        found = {}
        for path, places in by_file.items():
            # The address is that of the return: the call is before it.
            told = subprocess.run(["addr2line", "-f", "-s", "-e", path, *(hex(offset - 1) for _, offset in places)],
                                  capture_output=True, text=True, check=False).stdout.split("\n")
            for i, (address, _) in enumerate(places):
                line = re.sub(r" \(.*", "", told[2 * i + 1]) if len(told) > 2 * i + 1 else "?"
                found[address] = f"{told[2 * i]} {line}"
        return [found[address] for address in addresses if address in found][:SHOWN_FRAMES]
