# SPDX-License-Identifier: MIT
"""Rows of the audit log: what its entries cost writes and reads."""
from curves import tool
from curves_load import WRITE
from entries import Group, Row

PLUGINS = "plugins=notebook"
LEVELS = {"none": ["audit=off"], "changes": ["audit=on"], "reads": ["audit=on", "audit.reads=true"]}


class Audit(Group):
    name = "audit log"

    def begin(self):
        self.servers = {level: self.gateway(PLUGINS, *sets) for level, sets in LEVELS.items()}
        self.write = self.file("write", lambda: tool("notebook", WRITE))
        self.read = self.file("read", lambda: tool("notebook", {"mode": "read", "name": "read"}))
        for server in self.servers.values():
            self.call(server, "notebook", {"mode": "create", "name": "read", "newStr": "a line of notes\n" * 4})

    def rows(self):
        return [Row("notebook write with the audit log, throughput to one without", lambda: self.ratio(self.write, "changes"),
                    (">=", 0.95, "times")),
                Row("notebook read with audit.reads, throughput to one without", lambda: self.ratio(self.read, "reads"),
                    (">=", 0.75, "times"))]

    def ratio(self, file, level):
        ours, base = self.beside(self.warmed(self.servers[level], file), self.warmed(self.servers["none"], file))
        return ours["rate"] / base["rate"], (f"{ours['rate']:.0f}/s to {base['rate']:.0f}/s; "
                                             f"{ours['cpu_us']:.1f} us to {base['cpu_us']:.1f} us CPU")


GROUPS = (Audit,)
