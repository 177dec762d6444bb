"""The protocol's own client (PyPI: mcp) with optiml-mcp."""
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def plain(result):
    """As it goes over the wire: versions of the package name members differently."""
    return result.model_dump(by_alias=True)


async def main(server, root, workspaces):
    parameters = StdioServerParameters(command=server, args=["--root=" + root, "--workspaces=" + workspaces,
                                                             "--backend=cpu", "--answer-within=0.5"])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        about = plain(await session.initialize())
        print("server", about["serverInfo"]["name"], "revision", about["protocolVersion"])
        print("tools", len((await session.list_tools()).tools))
        print("resources", len((await session.list_resources()).resources))
        heard = []

        async def progress(done, total, message):
            heard.append(message)

        async def do(tool, **arguments):
            result = plain(await session.call_tool(tool, arguments, progress_callback=progress))
            while (result["structuredContent"] or {}).get("status") == "running":
                result = plain(await session.call_tool("wait", {"handle": result["structuredContent"]["handle"]},
                                                       progress_callback=progress))
            return result

        for source in ("softmax.cu", "sgemm.cu"):
            opened = await do("open", source=source)
            assert not opened["isError"], opened
            for tool, arguments in (("program", {}), ("list_actions", {}), ("history", {}), ("profile", {}),
                                    ("show", {}), ("explain", {"action": "unroll[x]"}), ("tune", {"evaluations": 3})):
                result = await do(tool, **arguments)
                assert not result["isError"], (tool, result)
            best = result["structuredContent"]["best"]["recipe"]
            if best:
                for tool in ("try_recipe", "submit"):
                    result = await do(tool, recipe=best)
                    assert not result["isError"], (tool, result)
            print(source, "submitted" if best else "kept")
        assert "running the program" in heard, heard
        result = await do("try_kernel", kernel="sgemm", body="asm(\"trap;\");")
        print("refused", result["isError"])
        stopped = plain(await session.call_tool("tune", {"evaluations": 150}))
        await session.call_tool("cancel", {"handle": stopped["structuredContent"]["handle"]})
        print("cancelled")


asyncio.run(main(*sys.argv[1:4]))
