# SPDX-License-Identifier: MIT
"""The budgets of the design, each figure beside a baseline of the same run."""
import http.client
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

from rig import (Bare, Gateway, SdkServer, Streams, body_of, least_of, load, median, memory_mib, node_modules, request)

STREAMS = 1000
READ = {"mode": "read", "name": "notes"}
ACCEPT = "Accept: application/json, text/event-stream"
# The protocol versions of MCP, newest first: version, name in the table, path at the SDK's server.
ERAS = {"mcp": ("2026-07-28", "MCP tools/call", "/v2"), "mcp session": ("2025-11-25", "MCP tools/call, 2025-11-25", "/v1")}


def stateless_call(path):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "notebook", "arguments": READ, "_meta": meta}}
    return request(path, call, [ACCEPT, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call",
                                "Mcp-Name: notebook", "X-Notegate-Agent: bench"])


def session_call(path, port):
    """Opens a session and gives a call in it."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Content-Type": "application/json", "X-Notegate-Agent": "bench", **dict([ACCEPT.split(": ")])}

    def send(message):
        connection.request("POST", path, json.dumps({"jsonrpc": "2.0", **message}), headers)
        response = connection.getresponse()
        response.read()
        return response.getheader("Mcp-Session-Id")

    session = send({"id": 1, "method": "initialize", "params": client})
    headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    send({"method": "notifications/initialized"})
    connection.close()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "notebook", "arguments": READ}}
    return request(path, call, [ACCEPT, "MCP-Protocol-Version: 2025-11-25", f"Mcp-Session-Id: {session}",
                                "X-Notegate-Agent: bench"])


def read_rows(args, out, gateway):
    """Reads over REST and MCP, each against bare libmicrohttpd with the same request and as long an answer."""
    files = {"rest": request("/v1/tools/notebook", READ, ["X-Notegate-Agent: bench"]),
             "mcp": stateless_call("/mcp"), "mcp session": session_call("/mcp", gateway.port)}
    bares = {key: Bare(out, len(body_of(gateway.port, file))) for key, file in files.items()}
    rows = {before + key: [] for key in files for before in ("bare ", "")}
    for _ in range(args.rounds):
        for key, bare in bares.items():
            rows["bare " + key].append(load(out, bare.port, 32, args.seconds, files[key], bare.pid))
            rows[key].append(load(out, gateway.port, 32, args.seconds, files[key], gateway.pid))
    for bare in bares.values():
        bare.stop()
    peak = median(rows["rest"], "rate")
    paced = [load(out, gateway.port, 32, args.seconds, files["rest"], gateway.pid, peak / 2)
             for _ in range(args.rounds)]
    return rows, paced, files


def sdk_rows(args, out, gateway, files):
    """The same calls at the official TypeScript SDK's servers, whose one tool does nothing but answer. None: no Node."""
    folder = node_modules(out)
    if folder is None:
        return None
    server = SdkServer(folder, gateway.call("notebook", READ)["result"])
    theirs = {"mcp": stateless_call(ERAS["mcp"][2]), "mcp session": session_call(ERAS["mcp session"][2], server.port)}
    rows = {before + key: [] for key in theirs for before in ("sdk ", "")}
    for _ in range(args.rounds):
        for key, file in theirs.items():
            rows["sdk " + key].append(load(out, server.port, 32, args.seconds, file, server.pid))
            rows[key].append(load(out, gateway.port, 32, args.seconds, files[key], gateway.pid))
    server.stop()
    for file in theirs.values():
        os.unlink(file)
    return rows


def key_rows(args, out, binary):
    """The same read with keys on, with a key, beside one with keys off."""
    gateways = {"off": Gateway(binary), "on": Gateway(binary)}
    rows = {"off": [], "on": []}
    made = subprocess.run([binary, "key", "add", "bench", "--data-dir", gateways["on"].data, "--json"], check=True,
                          capture_output=True, text=True)
    bearer = "Bearer " + json.loads(made.stdout)["key"]
    files = {"off": request("/v1/tools/notebook", READ, ["X-Notegate-Agent: bench"]),
             "on": request("/v1/tools/notebook", READ, [f"Authorization: {bearer}"])}
    headers = {"off": {"X-Notegate-Agent": "bench"}, "on": {"Authorization": bearer}}
    for key, gateway in gateways.items():
        gateway.call("notebook", {**READ, "mode": "create", "newStr": "a line of notes\n" * 4}, headers=headers[key])
    for _ in range(args.rounds):
        for key, gateway in gateways.items():
            rows[key].append(load(out, gateway.port, 32, args.seconds, files[key], gateway.pid))
    for key, gateway in gateways.items():
        gateway.stop()
        os.unlink(files[key])
    return rows


def stream_memory(binary):
    """PSS in MiB with that many open event streams."""
    gateway = Gateway(binary)
    streams = Streams(gateway.port, STREAMS)
    used = memory_mib(gateway.pid)
    streams.close()
    gateway.stop()
    return used


def write_rows(args, out, gateway):
    for i in range(32):
        gateway.call("notebook", {"mode": "create", "name": f"agent-{i:04d}", "newStr": "0" * 199 + "x"})
    # Head and tail change with every write, so that no revision is cheap to keep.
    body = {"mode": "create", "name": "agent-@@@@", "newStr": "########" + "y" * 184 + "########"}
    file = request("/v1/tools/notebook", body, ["X-Notegate-Agent: bench"])
    rows, plain = [], []
    for _ in range(args.rounds):
        folder = tempfile.mkdtemp(prefix="notegate-bench-")
        result = subprocess.run([os.path.join(out, "plain_writer"), os.path.join(folder, "plain.db"),
                                 str(args.seconds), "200"], check=True, capture_output=True, text=True)
        plain.append(json.loads(result.stdout))
        shutil.rmtree(folder)
        rows.append(load(out, gateway.port, 32, args.seconds, file, gateway.pid))
    os.unlink(file)
    return rows, plain


def stuck_rows(args, out, gateway, files):
    """p99 of paced reads, alone and while another agent's calls are stuck for 5 seconds."""
    seconds = 0.2 if args.smoke else 4
    usual = load(out, gateway.port, 8, seconds, files["rest"], gateway.pid, 2000)
    stuck = {"ms": int(seconds * 1000) + 1000}
    threads = [threading.Thread(target=gateway.call, args=("stuck", stuck, "stuck")) for _ in range(64)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    beside = load(out, gateway.port, 8, seconds, files["rest"], gateway.pid, 2000)
    for thread in threads:
        thread.join()
    return usual, beside


def start_ms(binary, rounds):
    times = []
    gateway = Gateway(binary)
    gateway.call("notebook", {"mode": "create", "name": "notes", "newStr": "text"})
    for _ in range(rounds):
        gateway.stop(keep=True)
        gateway.start()
        gateway.call("notebook", {"mode": "read", "name": "notes"})
        times.append((time.perf_counter() - gateway.began) * 1000)
    idle = memory_mib(gateway.pid), memory_mib(gateway.pid, "Rss")
    gateway.stop()
    return statistics.median(times), *idle


def verdict(good):
    return "met" if good else "MISSED"


def measure(args, out, binary):
    """(the table, the rows behind it). args: rounds, seconds, and whether the SDK's servers may be installed."""
    table = []

    def row(name, value, budget, good, detail):
        table.append({"what": name, "measured": value, "budget": budget, "verdict": verdict(good), "detail": detail})

    def compare(name, ours, theirs):
        """Two rows that no budget is on."""
        for what, key, unit in (("throughput", "rate", "/s"), ("CPU per call", "cpu_us", " us")):
            usual = least_of if key == "cpu_us" else median
            one, other = usual(ours, key), usual(theirs, key)
            table.append({"what": f"{name}: {what}", "measured": round(one / other, 3), "budget": "", "verdict": "",
                          "detail": f"{one:.1f}{unit} to {other:.1f}{unit}, 32 connections"})

    gateway = Gateway(binary, "--set", "plugins=+" + os.path.join(out, "stuck.so"))
    gateway.call("notebook", {"mode": "create", "name": "notes", "newStr": "a line of notes\n" * 4})
    reads, paced, files = read_rows(args, out, gateway)
    budgets = [("rest", "read over REST", 0.6, 2.0)] + [(key, "read over " + era[1], 0.5, 2.5) for key, era in ERAS.items()]
    for key, name, least, most in budgets:
        rate, cpu = median(reads[key], "rate"), least_of(reads[key], "cpu_us")
        bare_rate, bare_cpu = median(reads["bare " + key], "rate"), least_of(reads["bare " + key], "cpu_us")
        row(name + ", throughput to bare libmicrohttpd", round(rate / bare_rate, 3), f">= {least}",
            rate / bare_rate >= least, f"{rate:.0f}/s to {bare_rate:.0f}/s, 32 connections")
        row(name + ", CPU per call to bare libmicrohttpd", round(cpu / bare_cpu, 3), f"<= {most}",
            cpu / bare_cpu <= most, f"{cpu:.2f} us to {bare_cpu:.2f} us")
    p99 = median(paced, "p99_ms")
    row("p99 of reads at half the peak rate", round(p99, 3), "<= 5 ms", p99 <= 5, f"p50 {median(paced, 'p50_ms'):.3f} ms")
    writes, plain = write_rows(args, out, gateway)
    rate, plain_rate = median(writes, "rate"), median(plain, "rate")
    row("durable writes, 32 agents, to a plain sqlite writer", round(rate / plain_rate, 2), ">= 3, or 15,000/s",
        rate / plain_rate >= 3 or rate >= 15000,
        f"{rate:.0f}/s ({least_of(writes, 'cpu_us'):.1f} us CPU) to {plain_rate:.0f}/s ({least_of(plain, 'cpu_us'):.1f} us CPU)")
    compared = None if args.smoke else sdk_rows(args, out, gateway, files)
    usual, beside = stuck_rows(args, out, gateway, files)
    good = beside["p99_ms"] <= max(3 * usual["p99_ms"], 5)
    row("p99 of reads while another agent's calls are stuck", round(beside["p99_ms"], 3), "<= 3 times, or 5 ms", good,
        f"alone {usual['p99_ms']:.3f} ms")
    gateway.stop()
    for key, (version, _, _) in ERAS.items() if compared else ():
        compare(f"MCP tools/call {version} to the TypeScript SDK's server", compared[key], compared["sdk " + key])
    keys = key_rows(args, out, binary)
    compare("read over REST, keys on to keys off", keys["on"], keys["off"])
    started, idle, resident = start_ms(binary, max(5, args.rounds))
    row("start to first answer after a clean stop", round(started, 1), "<= 50 ms", started <= 50,
        "all plugins loaded; includes the client's connection")
    row("idle memory", round(idle, 1), "<= 20 MB", idle <= 20,
        f"PSS in MiB, all plugins loaded; RSS {resident:.1f}")
    used = stream_memory(binary)
    row(f"memory with {STREAMS} open event streams", round(used, 1), "<= 64 MB", used <= 64, "PSS in MiB")
    for name in files.values():
        os.unlink(name)
    return table, {"reads": reads, "paced": paced, "writes": writes, "plain": plain, "sdk": compared, "keys": keys}
