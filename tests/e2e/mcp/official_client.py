"""`kbeam mcp` held to the protocol by its official client library: handshakes, schemas, mistakes, calls side by side, a
cancelled call, every example of docs/mcp.md. Usage: official_client.py KBEAM MCP.md"""
import asyncio
import json
import os
import sys
import warnings

from jsonschema.validators import Draft202012Validator
from mcp import Client, MCPError, StdioServerParameters

from examples import TOOLS, check_said, read_examples
from stdio_client import require

warnings.filterwarnings("ignore", message="ping is removed")  # in a later revision than any that kbeam speaks
kbeam, page = sys.argv[1:]
EXAMPLES = read_examples(page)
not_understood = []  # what the library could not read of the server's messages


async def keep_exceptions(message):
    if isinstance(message, Exception):
        not_understood.append(message)


def connect(mode="auto"):
    return Client(StdioServerParameters(command=kbeam, args=["mcp"]), mode=mode, message_handler=keep_exceptions,
                  read_timeout_seconds=900)


async def expect_error(code, call):
    try:
        answer = await call
    except MCPError as error:
        require(error.error.code == code, f"error {error.error.code} is {code}")
        return
    raise AssertionError(f"there was no error {code} but {answer}")


async def test_handshakes():
    """`auto` first asks for what only later revisions have, and must be refused in a way that it understands."""
    for mode in ("auto", "legacy"):
        async with connect(mode) as client:
            require(client.protocol_version == "2025-11-25", f"{mode}: the latest revision with a handshake")
            require(client.server_info.name == "kbeam" and client.server_info.version, f"{mode}: the server has a name")
            offered = client.server_capabilities.model_dump(exclude_none=True)
            require(set(offered) == {"tools"}, f"{mode}: tools and nothing else are offered, not {offered}")
            require("check" in client.instructions, f"{mode}: there are instructions")
            await client.send_ping()


async def test_schemas():
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    require(set(tools) == TOOLS, f"the tools are those that are promised: {set(tools)}")
    for tool in tools.values():
        Draft202012Validator.check_schema(tool.input_schema)
        require(tool.input_schema["type"] == "object" and tool.description, f"{tool.name} is described")
        require(all(one["description"] for one in tool.input_schema["properties"].values()), f"{tool.name}'s arguments are")
    for example in EXAMPLES:
        Draft202012Validator(tools[example["name"]].input_schema).validate(example["arguments"])


def spoilt_calls(tools):
    """Arguments that a tool's own schema refuses, and the word that has to be in the answer."""
    for example in EXAMPLES:
        name, good, schema = example["name"], example["arguments"], tools[example["name"]].input_schema
        yield name, good | {"no_such_argument": "x"}, "no_such_argument"
        for one in schema["properties"]:
            yield name, good | {one: 7}, one
        for one in schema.get("required", []):
            yield name, {key: value for key, value in good.items() if key != one}, one


async def test_mistakes():
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, arguments, word in spoilt_calls(tools):
            schema = Draft202012Validator(tools[name].input_schema)
            require(not schema.is_valid(arguments), f"the schema of {name} refuses {arguments}")
            result = await client.call_tool(name, arguments)
            require(result.is_error and word in result.content[0].text, f"{name} {arguments} is refused: {result}")
        await expect_error(-32602, client.call_tool("no_such_tool", {}))
        await expect_error(-32601, client.list_resources())
        await expect_error(-32601, client.list_prompts())


async def test_side_by_side():
    async with connect() as client:
        asked = [("list_problems", {}), ("read_state", {}), ("ask", {"question": "which families are there?"}),
                 ("profile", {"file": "candidate.cpp"})]
        for result in await asyncio.gather(*(client.call_tool(*one) for one in asked)):
            require(not result.is_error, f"calls side by side are answered: {result}")


def benches_here():
    """Processes of `kbeam bench` that were begun in this folder."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if b"bench" in words[:2] and os.readlink(f"/proc/{process}/cwd") == os.getcwd():
                found.append(process)
        except OSError:
            pass  # it has ended
    return found


async def until(condition, what):
    for _ in range(600):
        if condition():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"a minute passed until {what}")


async def test_cancelled():
    async with connect() as client:
        call = asyncio.create_task(client.call_tool("bench", {"problem": "template", "file": "candidate.cpp"}))
        await until(benches_here, "the call has begun")
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        require(call.cancelled(), "the call is given up")
        await until(lambda: not benches_here(), "what it started has ended")
        await client.send_ping()


async def test_examples():
    said = {}
    async with connect() as client:
        for example in EXAMPLES:
            result = await client.call_tool(example["name"], example["arguments"])
            text = result.content[0].text
            require(len(result.content) == 1 and not result.is_error, f"{example['name']}: {text}")
            parsed = json.loads(text)
            require(result.structured_content == (parsed if isinstance(parsed, dict) else {"items": parsed}),
                    f"{example['name']}: the structured content is the text's")
            said[example["name"]] = result.structured_content
            print(f"{example['name']}: {text[:100]}")
    check_said(said)


async def main():
    for test in (test_handshakes, test_schemas, test_mistakes, test_side_by_side, test_cancelled, test_examples):
        await test()
        require(not not_understood, f"the library understands every message, but not {not_understood}")
        print(f"{test.__name__}: as the official client library expects it", flush=True)


asyncio.run(main())
