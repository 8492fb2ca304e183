"""Passes TCP connections on to a port that can change.

Usage: switch.py PORT_FILE TARGET_FILE. TARGET_FILE has a port of this machine, or `hold`: then nothing is passed on, in
either direction, and no connection ends. Connections end when the port changes.
"""
import asyncio
import sys

port_file, target_file = sys.argv[1:]


def target():
    with open(target_file) as file:
        return file.read().strip()


async def passing(port):
    """Waits while nothing is passed on. Whether the port is still the same one."""
    while (now := target()) == "hold":
        await asyncio.sleep(0.05)
    return now == port


async def copy(reader, writer, port):
    while piece := await reader.read(65536):
        if not await passing(port):
            return
        writer.write(piece)
        await writer.drain()


async def connection(reader, writer):
    while (port := target()) == "hold":
        await asyncio.sleep(0.05)
    upstream = None
    try:
        far_reader, upstream = await asyncio.open_connection("127.0.0.1", int(port))
        copies = [
            asyncio.create_task(copy(reader, upstream, port)),
            asyncio.create_task(copy(far_reader, writer, port)),
        ]
        while not any(each.done() for each in copies) and target() in (port, "hold"):
            await asyncio.wait(copies, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
        for each in copies:
            each.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
    except OSError:
        pass
    finally:
        for each in filter(None, (writer, upstream)):
            each.transport.abort()


async def main():
    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    with open(port_file, "w") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


asyncio.run(main())
