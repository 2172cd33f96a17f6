"""The examples of docs/mcp.md and what their answers have to say; run by itself it calls them with our own client, and
official_client.py calls them with the official one. Usage: examples.py KBEAM MCP.md"""
import json
import re
import sys

from stdio_client import Client, check_value, require

TOOLS = {"list_problems", "read_state", "propose", "check", "bench", "profile", "submit", "compare", "steer", "ask"}


def read_examples(page):
    with open(page, encoding="utf-8") as file:
        examples = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", file.read(), re.S)]
    require({example["name"] for example in examples} == TOOLS, "every tool has an example, and nothing else has")
    return examples


def check_said(said):
    """What every tool answered: name -> structured content."""
    require(any(problem["name"] == "softmax" for problem in said["list_problems"]["items"]), "problems are listed")
    require(said["read_state"]["problem"] == "template", "the state is that of the run")
    require(said["profile"]["instructions"]["scalar"] > 0, "the profile counts instructions")
    require(said["check"]["verdict"] == "accepted", "the first candidate is right")
    require({report["case_name"] for report in said["check"]["checks"]} == {"columns256", "odd_sizes"}, "only these cases")
    require(all(report["seed"] == 0 and report["key"] == 0 for report in said["check"]["checks"]), "no seed is told")
    require(said["propose"]["family"] == "double_sum" and said["submit"]["family"] == "by_hand", "both are handed over")
    require(said["propose"]["run_id"] == said["submit"]["run_id"] == said["read_state"]["run_id"], "to the live run")
    require(said["steer"]["action"] == "say" and said["steer"]["text"] == "short rows matter most", "it is told")
    require(said["ask"]["answered"] and said["ask"]["tables"], "the question is answered")
    require(said["bench"]["measurements"] and said["compare"]["measurements"], "there are times")
    require(all(not m["samples"]["candidate_ns"] for m in said["bench"]["measurements"]), "no samples are told")


def main(kbeam, page):
    client = Client(kbeam)
    client.initialize()
    tools = client.tools()
    require(set(tools) == TOOLS, "the tools are those that are promised")
    said = {}
    for example in read_examples(page):
        check_value(example["arguments"], tools[example["name"]]["inputSchema"], example["name"])
        result = client.call(example["name"], example["arguments"])
        require(not result["isError"], f"{example['name']}: {result['content'][0]['text']}")
        said[example["name"]] = result["structuredContent"]
        print(f"{example['name']}: {result['content'][0]['text'][:100]}")
    check_said(said)
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
