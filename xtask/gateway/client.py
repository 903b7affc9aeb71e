"""The Python SDK, v1 or v2: python client.py URL"""
import asyncio
import sys
from importlib.metadata import version

URL = sys.argv[1]


async def check(session):
    answer = await session.call_tool("echo", {"message": "aä\u2028\n"})
    assert answer.content[0].text == "aä\u2028\n", answer
    many = await asyncio.gather(*(session.call_tool("echo", {"message": f"m{at}"}) for at in range(20)))
    assert [one.content[0].text for one in many] == [f"m{at}" for at in range(20)]
    assert len((await session.call_tool("large", {"bytes": 1 << 19})).content[0].text) == 1 << 19
    assert len((await session.list_tools()).tools) > 3


async def v1():
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(URL) as (read, write, session_id):
        async with ClientSession(read, write) as session:
            await session.initialize()
            assert session_id()
            await check(session)


async def v2():
    from mcp import Client

    for mode in ["legacy", "2026-07-28", "auto"]:
        async with Client(URL, mode=mode) as client:
            await check(client)
        print(f"the Python SDK v2, {mode}")


asyncio.run(v2() if version("mcp").startswith("2.") else v1())
print(f"the Python SDK {version('mcp')}")
