"""A proxy that hands on every byte, but late: `python delaying_proxy.py HOST PORT TO_PORT SECONDS`."""

import asyncio
import sys


async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    loop = asyncio.get_running_loop()
    while data := await reader.read(65536):
        # Bytes keep their order and their pace; all of them come later.
        loop.call_later(delay, writer.write, data)
    loop.call_later(delay, writer.close)


async def main(host: str, port: int, to_port: int, delay: float) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, to_port)
        await asyncio.gather(
            hand_on(reader, there_writer, delay), hand_on(there_reader, writer, delay), return_exceptions=True
        )

    server = await asyncio.start_server(serve, host, port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
