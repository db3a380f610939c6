# SPDX-License-Identifier: MIT
"""The same gateway on MongoDB and Redis. Reads its writes back when no allocation fails any more."""
import pathlib
import sys

from wire import Wire
from world import World, told

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import servers  # noqa: E402

# Documents of their own, which mark how far events were read.
MARKS = {"X-Notegate-Space": "marks"}


class SharedWorld(World):
    """Raises servers.Missing where they are not installed."""

    def __init__(self, binary, library, folder):
        self.mongo, self.redis = servers.MongoServer(), servers.RedisServer()
        try:
            self.mongo.start()
            self.redis.start()
        except BaseException:
            self.end_servers()
            raise
        super().__init__(binary, library, folder)
        self.reader = None
        self.marks = 0

    def end_servers(self):
        self.mongo.close()
        self.redis.close()

    def flags(self):
        sets = ("documents=mongo", f"mongo.uri={self.mongo.uri}", "mongo.database=notegate_alloc", "journal=redis",
                f"redis.uri={self.redis.uri}", "redis.prefix=notegate_alloc:")
        return super().flags() + [word for each in sets for word in ("--set", each)]

    def open_database(self):
        self.reader = Wire(self.port, self.key)

    def close_database(self):
        self.reader.close()

    def written(self, since):
        """As of World: all events until one that comes now."""
        self.marks += 1
        mark = f"mark{self.marks}"
        self.must(self.reader.tool("notebook", {"mode": "create", "name": mark}, MARKS))
        rows = []
        for event in self.reader.events(f"/v1/events?since={since}"):
            since = event["seq"]
            if event["space"] != "marks":
                rows.append((event["collection"], event["tool"], event["action"]))
            elif event["id"] == mark:
                return since, told(rows)
        raise AssertionError(f"the events ended before {mark}")


__all__ = ["SharedWorld", "servers"]
