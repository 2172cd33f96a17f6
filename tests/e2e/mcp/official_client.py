"""`kbeam mcp` as the official client library sees it. Usage: official_client.py KBEAM"""
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def is_error(result):
    return result.is_error if hasattr(result, "is_error") else result.isError


async def main(kbeam):
    async with stdio_client(StdioServerParameters(command=kbeam, args=["mcp"])) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert len(tools) == 10, tools
            state = await session.call_tool("read_state", {})
            assert not is_error(state), state
            profile = await session.call_tool("profile", {"file": "candidate.cpp"})
            assert not is_error(profile), profile
            answer = await session.call_tool("ask", {"question": "which families are there?"})
            assert not is_error(answer) and "double_sum" in answer.content[0].text, answer
            mistake = await session.call_tool("check", {"problem": "template"})
            assert is_error(mistake), mistake
    print("the official client library: initialize, list, calls and a mistake as it expects them")


asyncio.run(main(sys.argv[1]))
