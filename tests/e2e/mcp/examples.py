"""Runs every example of docs/mcp.md. Usage: examples.py KBEAM MCP.md"""
import json
import re
import sys

from stdio_client import Client, check_value, require

kbeam, page = sys.argv[1:]
examples = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", open(page).read(), re.S)]
client = Client(kbeam)
client.initialize()
tools = client.tools()
require({example["name"] for example in examples} == set(tools), "every tool has an example")
require(set(tools) == {"list_problems", "read_state", "propose", "check", "bench", "profile", "submit", "compare",
                       "steer", "ask"}, "the tools are those that are promised")
said = {}
for example in examples:
    check_value(example["arguments"], tools[example["name"]]["inputSchema"], example["name"])
    result = client.call(example["name"], example["arguments"])
    require(not result["isError"], f"{example['name']}: {result['content'][0]['text']}")
    said[example["name"]] = result["structuredContent"]
    print(f"{example['name']}: {result['content'][0]['text'][:100]}")
require(any(problem["name"] == "softmax" for problem in said["list_problems"]["items"]), "problems are listed")
require(said["read_state"]["problem"] == "template", "the state is that of the run")
require(said["check"]["verdict"] == "accepted", "the first candidate is right")
require({report["case_name"] for report in said["check"]["checks"]} <= {"columns256", "odd_sizes"}, "only these cases")
require(all(report["seed"] == 0 and report["key"] == 0 for report in said["check"]["checks"]), "no seed is told")
require(said["bench"]["measurements"] and said["compare"]["measurements"], "there are times")
require(all(not m["samples"]["candidate_ns"] for m in said["bench"]["measurements"]), "no samples are told")
require(said["ask"]["answered"] and said["ask"]["tables"], "the question is answered")
client.close()
