# SPDX-License-Identifier: MIT
"""Groups of Redis servers: a primary with replicas and Sentinels, and a cluster. Made by servers.py."""

import contextlib
import time

from servers import START_SECONDS, RedisError, RedisServer, free_port, give_back

# Long enough for a busy machine, short enough that a test may wait for some failovers.
DOWN_MS = 3000
# Keys moved by one MIGRATE.
MIGRATE_KEYS = 10


def wait_for(true, what):
    end = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(OSError, RedisError):
            if true():
                return
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not come within {START_SECONDS} s")
        time.sleep(0.02)


def info(server, section, name):
    """A value of INFO."""
    lines = server.execute("INFO", section).splitlines()
    return next((line.split(":", 1)[1] for line in lines if line.startswith(name + ":")), None)


class Sentinel(RedisServer):
    """One Sentinel that watches a primary under the name mymaster."""

    def __init__(self, primary, quorum, lines=(), args=()):
        super().__init__(debian=True, args=args)
        self.primary, self.quorum, self.lines = primary, quorum, lines
        self.config, self.configured = self.data / "sentinel.conf", None

    def command(self):
        # It keeps in this file what it learns.
        if self.configured != self.port:
            self.configured = self.port
            self.config.write_text("\n".join([
                "bind 127.0.0.1", f"port {self.port}", f"dir {self.data}",
                f"sentinel monitor mymaster 127.0.0.1 {self.primary.port} {self.quorum}",
                f"sentinel down-after-milliseconds mymaster {DOWN_MS}",
                "sentinel failover-timeout mymaster 4000", "sentinel parallel-syncs mymaster 5", *self.lines, ""]))
        return [self.program, str(self.config), "--sentinel", *self.args]

    def answers(self):
        try:
            return f"process_id:{self.process.pid}\r" in self.execute("INFO", "server")
        except RedisError as error:
            return str(error).startswith("NOAUTH")


class Group:
    """Servers that start and end together."""

    def __init__(self):
        self.stack = contextlib.ExitStack()

    def add(self, server):
        self.stack.callback(server.close)
        return server.start()

    def start(self):
        raise NotImplementedError

    def close(self):
        self.stack.close()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()


class RedisSentinels(Group):
    """A primary, replicas and Sentinels. args: options of the servers; lines: of the Sentinels' configuration."""

    def __init__(self, replicas=2, sentinels=3, args=(), lines=()):
        super().__init__()
        self.counts, self.args, self.lines = (replicas, sentinels), list(args), list(lines)
        self.servers, self.sentinels = [], []

    def start(self):
        replicas, sentinels = self.counts
        options = ["--repl-diskless-sync-delay", "0", *self.args]
        primary = self.add(RedisServer(debian=True, args=options))
        self.servers.append(primary)
        for _ in range(replicas):
            self.servers.append(self.add(RedisServer(
                debian=True, args=[*options, "--replicaof", f"127.0.0.1 {primary.port}"])))
        wait_for(lambda: info(primary, "replication", "connected_slaves") == str(replicas), "the replicas")
        for _ in range(sentinels):
            self.sentinels.append(self.add(Sentinel(primary, sentinels // 2 + 1, self.lines)))
        wait_for(lambda: all(self._complete(sentinel) for sentinel in self.sentinels), "the Sentinels' agreement")
        return self

    def _complete(self, sentinel):
        told = sentinel.execute("SENTINEL", "MASTER", "mymaster")
        told = dict(zip(told[::2], told[1::2]))
        return (int(told["num-slaves"]), int(told["num-other-sentinels"])) == (self.counts[0], self.counts[1] - 1)

    @property
    def uri(self):
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/mymaster/0"

    def primary(self):
        """The server that the first Sentinel that answers names."""
        for sentinel in self.sentinels:
            with contextlib.suppress(OSError, RedisError):
                port = int(sentinel.execute("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")[1])
                return next(server for server in self.servers if server.port == port)
        raise RuntimeError("no Sentinel answers")

    def replaced(self, former):
        """The next primary, when it is one."""
        wait_for(lambda: self.primary() is not former
                 and info(self.primary(), "replication", "role") == "master", "a failover")
        return self.primary()


class ClusterNode(RedisServer):
    """A node of a cluster, with a bus port of its own."""

    def __init__(self, args=()):
        super().__init__(debian=True, args=args)
        self.bus = free_port()

    def command(self):
        return [*super().command(), "--cluster-enabled", "yes", "--cluster-config-file", str(self.data / "nodes.conf"),
                "--cluster-port", str(self.bus), "--cluster-node-timeout", str(DOWN_MS),
                "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"]

    def close(self):
        super().close()
        give_back(self.bus)

    def node_id(self):
        return self.execute("CLUSTER", "MYID")


class RedisCluster(Group):
    """A cluster of masters, each with so many replicas."""

    def __init__(self, masters=3, replicas=0, args=()):
        super().__init__()
        self.counts, self.args = (masters, replicas), list(args)
        self.nodes = []

    def start(self):
        masters, replicas = self.counts
        self.nodes = [self.add(ClusterNode(self.args)) for _ in range(masters * (1 + replicas))]
        ends = [16384 * i // masters for i in range(masters + 1)]
        for number, node in enumerate(self.nodes):
            node.execute("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < masters:
                node.execute("CLUSTER", "ADDSLOTSRANGE", ends[number], ends[number + 1] - 1)
            else:
                node.execute("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, self.nodes[0].bus)
        for node in self.nodes[1:masters]:
            node.execute("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, self.nodes[0].bus)
        wait_for(lambda: all(self._ready(node) for node in self.nodes), "the cluster")
        for number, node in enumerate(self.nodes[masters:]):
            name = self.nodes[number % masters].node_id()
            wait_for(lambda: node.execute("CLUSTER", "REPLICATE", name) == "OK", "a replica of the cluster")
        for node in self.nodes[:masters]:
            wait_for(lambda: info(node, "replication", "connected_slaves") == str(replicas), "the replicas")
        wait_for(lambda: all(self._ready(node) for node in self.nodes), "the cluster")
        return self

    def _ready(self, node):
        told = node.execute("CLUSTER", "INFO")
        return "cluster_state:ok" in told and f"cluster_known_nodes:{len(self.nodes)}\r" in told

    @property
    def uri(self):
        return "redis://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def owner(self, key, but=None):
        """The node that serves the key; but: the one that is not asked, as it is frozen."""
        for node in self.nodes:
            if node is but:
                continue
            with contextlib.suppress(OSError, RedisError):
                node.execute("EXISTS", key)
                return node
        raise RuntimeError("no node serves it")

    def replaced(self, former, key):
        """The next owner of the key after the former one ended."""
        found = []

        def another():
            with contextlib.suppress(RuntimeError):
                found.append(self.owner(key, former))
            return found

        wait_for(another, "a failover")
        return found[-1]

    def move(self, key, target, between=lambda: None):
        """Moves the slot of the key, a few keys at a time; between: called before the first, between them and after the last,
        while the slot belongs to both."""
        source, slot = self.owner(key), self.nodes[0].execute("CLUSTER", "KEYSLOT", key)
        target.execute("CLUSTER", "SETSLOT", slot, "IMPORTING", source.node_id())
        source.execute("CLUSTER", "SETSLOT", slot, "MIGRATING", target.node_id())
        between()
        while keys := source.execute("CLUSTER", "GETKEYSINSLOT", slot, MIGRATE_KEYS):
            source.execute("MIGRATE", "127.0.0.1", target.port, "", 0, 10000, "KEYS", *keys)
            between()
        for node in (target, source):
            node.execute("CLUSTER", "SETSLOT", slot, "NODE", target.node_id())


class OneNodeCluster(ClusterNode):
    """A cluster that is one node with all slots."""

    def start(self):
        super().start()
        if "cluster_slots_assigned:0\r" in self.execute("CLUSTER", "INFO"):
            self.execute("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_for(lambda: "cluster_state:ok" in self.execute("CLUSTER", "INFO"), "the cluster")
        return self
