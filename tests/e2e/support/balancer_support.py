# SPDX-License-Identifier: MIT
"""packaging/compose.yaml as processes: gateways on one MongoDB and one Redis, and haproxy with the file's configuration."""

import re

import httpx
import yaml

from conftest import SOURCE, Gateway, eventually
from keys_support import add, bearer
from servers import free_port, give_back

GATEWAYS = ("gateway-1", "gateway-2", "gateway-3")
# How long the databases may take to answer: they are slow ones, on busy machines.
TIMEOUT = 30
PATIENCE = 120


def compose():
    return yaml.safe_load((SOURCE / "packaging" / "compose.yaml").read_text())


def front_config(ports, sticky):
    """haproxy's configuration of the compose file, with addresses on this machine. Not sticky: any request goes anywhere."""
    text = compose()["configs"]["front"]["content"]
    text = re.sub(r"^resolvers docker\n(?: .*\n)*", "", text, flags=re.M).replace(" resolvers docker init-addr none", "")
    if not sticky:
        text = re.sub(r"^ *stick.*\n", "", text, flags=re.M).replace("balance leastconn", "balance roundrobin")
    for name, port in ports.items():
        text, count = re.subn(rf"server {name} \S+", f"server {name} 127.0.0.1:{port}", text)
        assert count == 1
    return text


class Team:
    """The gateways by name, each on a port of its own, and haproxy in front of them."""

    def __init__(self, folder, servers, plugins="agent_notebook", sticky=True):
        self.folder = folder
        mongo, redis = servers.mongo(), servers.redis()
        self.sets = [f"plugins={plugins}", "auth=on", "documents=mongo", f"mongo.uri={mongo.uri}",
                     f"mongo.timeout={TIMEOUT}s", "journal=redis", f"redis.uri={redis.uri}", f"redis.timeout={TIMEOUT}s",
                     "shutdown_delay=5s", "shutdown_timeout=60s"]
        self.ports = {name: free_port() for name in GATEWAYS}
        self.gateways = {}
        for name in GATEWAYS:
            self.start(name)
        self.front = servers.haproxy(front_config(self.ports, sticky))
        self.key = None

    def start(self, name):
        address = f"127.0.0.1:{self.ports[name]}"
        self.gateways[name] = Gateway(self.folder / name, [*self.sets, f"cluster.advertise=http://{address}"], listen=address)

    def wait_up(self, name):
        ready = self.gateways[name]
        eventually(lambda: ready.client.get("/readyz").status_code == 200, PATIENCE, "readiness")
        eventually(lambda: self.front.states()[name] == "UP", PATIENCE, f"{name} in haproxy")

    def make_key(self, name, *options):
        """Known to every gateway."""
        made = self.gateways["gateway-1"]
        key = add(made.data_dir, name, *options)
        for gateway in self.gateways.values():
            eventually(lambda gateway=gateway: gateway.client.get("/v1/tools", headers=bearer(key)).status_code == 200,
                       PATIENCE, "the key")
        return key

    def client(self, key):
        return httpx.Client(base_url=self.front.url, timeout=PATIENCE, trust_env=False, headers=bearer(key))

    def restart(self, name):
        """As a service manager does it."""
        assert self.gateways[name].stop() == 0, self.gateways[name].errors
        self.start(name)
        self.wait_up(name)

    def close(self):
        for name, gateway in self.gateways.items():
            if gateway.process.poll() is None:
                gateway.process.kill()
                gateway.process.wait()
            gateway.client.close()
            give_back(self.ports[name])
