#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lines that break: one process that stands between clients and gateways, and between gateways and databases.

    proxy.py FOLDER SEED NAME...

For each NAME it listens on a port, written to FOLDER/port-NAME, and connects to the port that FOLDER/to-NAME names at that
moment. While FOLDER/cut-NAME has a number, each piece of an answer breaks the line with that probability: part of it or nothing has
gone through by then; a request may be cut as well. While FOLDER/delay-NAME has a number, each piece waits up to so many seconds.
"""
import asyncio
import contextlib
import os
import random
import socket
import struct
import sys
import time

PIECE = 65536
# A file of a line is read again after so long.
LOOK_SECONDS = 0.02


class Line:
    """One name: where it listens, where it leads, how often it breaks."""

    def __init__(self, folder, name, seed):
        self.folder, self.name = folder, name
        self.rng = random.Random(f"{seed}-{name}")
        self.known = {}    # what a file said, and when it was read

    def says(self, what):
        now = time.monotonic()
        value, read = self.known.get(what, (0, -LOOK_SECONDS))
        if now - read >= LOOK_SECONDS:
            value = self.read(what)
            self.known[what] = value, now
        return value

    def read(self, what):
        try:
            with open(os.path.join(self.folder, f"{what}-{self.name}")) as file:
                return float(file.read() or 0)
        except FileNotFoundError:
            return 0

    async def listen(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = os.path.join(self.folder, f"port-{self.name}")
        with open(port + ".new", "w") as file:
            file.write(f"0 {server.sockets[0].getsockname()[1]}")
        os.replace(port + ".new", port)
        await server.serve_forever()

    async def serve(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", int(self.read("to")))
        except OSError:
            self.reset(writer)
            return
        for each in (writer, far_writer):
            each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there = asyncio.ensure_future(self.pass_on(reader, far_writer, 0.2))
        back = asyncio.ensure_future(self.pass_on(far_reader, writer, 1))
        await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        for each in (writer, far_writer):
            self.reset(each)

    async def pass_on(self, reader, writer, share):
        while True:
            try:
                piece = await reader.read(PIECE)
                if not piece:
                    return
                cut = self.rng.random() < self.says("cut") * share
                if self.says("delay"):
                    await asyncio.sleep(self.rng.uniform(0, self.says("delay")))
                writer.write(piece[:self.rng.randrange(len(piece))] if cut else piece)
                await writer.drain()
            except OSError:
                return
            if cut:
                return

    def reset(self, writer):
        """Half of the lines end politely, half with a reset."""
        if self.rng.random() < 0.5:
            plain = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()


async def main():
    folder, seed, *names = sys.argv[1:]
    await asyncio.gather(*(Line(folder, name, seed).listen() for name in names))


if __name__ == "__main__":
    asyncio.run(main())
