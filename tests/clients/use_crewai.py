# SPDX-License-Identifier: MIT
"""crewai-tools: its adapter sends null for every optional argument that it was not given."""

import json
import sys

from crewai_tools import MCPServerAdapter

url, key = sys.argv[1:]
server = {"url": url, "transport": "streamable-http", "headers": {"Authorization": f"Bearer {key}"}}
with MCPServerAdapter(server) as tools:
    notebook = next(tool for tool in tools if tool.name == "notebook")
    notebook.run(mode="write", newStr="written by a framework")
    answer = str(notebook.run(mode="read"))
    try:
        failure = str(notebook.run(mode="read", name="not-there"))
    except Exception as error:
        failure = str(error)
    print(json.dumps({"tools": [tool.name for tool in tools], "answer": answer, "failure": failure}))
