# SPDX-License-Identifier: MIT
"""Calls of history_undo in tests, and a gateway that is killed meanwhile."""

import concurrent.futures
import contextlib
import os
import time

PLUGINS = "plugins=notebook,file_editor,opennotes,cells,history"
# Gateways that are killed, each at another moment.
KILLS = int(os.environ.get("NOTEGATE_UNDO_KILLS", "4"))


def ask(gateway, tool, arguments, by="lead", run=None, status=200):
    headers = getattr(gateway, "keys", {}).get(by, {"X-Notegate-Agent": by}) | ({"X-Notegate-Run": run} if run else {})
    answer = gateway.call(tool, arguments, headers)
    assert answer.status_code == status, (arguments, answer.text)
    return answer.json().get("result", answer.json())


def edit(gateway, path, run="night", by="robot", **arguments):
    return ask(gateway, "fileEditor", {"path": str(path)} | arguments, by, run)


def replace(gateway, path, old, new, **more):
    return edit(gateway, path, command="str_replace", old_str=old, new_str=new, **more)


def undo(gateway, **arguments):
    return ask(gateway, "history_undo", {"dry_run": False} | arguments)


def results(answer):
    return {os.path.basename(item["id"]): (item["result"], item.get("conflict", {}).get("reason")) for item in answer["items"]}


def tree(root):
    return {str(path.relative_to(root)): path.read_text() if path.is_file() else None for path in root.rglob("*")}


def cut_off(gateway, run, delay):
    """Kills the gateway while it takes the run back. Has it answered?"""
    def go():
        with contextlib.suppress(Exception):
            return undo(gateway, run=run)
        return None

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(go)
        time.sleep(delay)
        gateway.process.kill()
        gateway.process.wait()
    gateway.client.close()
    return answer.result()
