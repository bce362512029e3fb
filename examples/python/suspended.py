"""Generators and coroutines: one event for each, over its lifetime."""

import asyncio

from dftracer.python import ai, dft_fn, dftracer

dftracer.initialize_log("suspended.pfw")
net = dft_fn("net")


@ai.dataloader.fetch
def batches(count):
    for number in range(count):
        yield [number] * 4


for batch in batches(3):
    sum(batch)


@net.log
async def download(step):
    await asyncio.sleep(0.01)
    return step


async def main():
    await asyncio.gather(download(step=1), download(step=2))


asyncio.run(main())
