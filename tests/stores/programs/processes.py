"""processes.py HOW ENDPOINT: workers that read, and ways to import a library."""

from __future__ import annotations

import importlib.util
import multiprocessing
import subprocess
import sys
import threading

HOW, ENDPOINT = sys.argv[1:3]
KEY = "train/shard-0.bin"


def read(number, client=None):
    import boto3

    s3 = client or boto3.client("s3", endpoint_url=ENDPOINT, region_name="us-east-1",
                                aws_access_key_id="a", aws_secret_access_key="b")  # fmt: skip
    asked = f"bytes={number * 10}-{number * 10 + 9}"
    assert len(s3.get_object(Bucket="data", Key=KEY, Range=asked)["Body"].read()) == 10


def workers(how):
    context = multiprocessing.get_context(how)
    started = [context.Process(target=read, args=(number,)) for number in range(3)]
    for process in started:
        process.start()
    for process in started:
        process.join()
        assert process.exitcode == 0


if __name__ == "__main__":
    if HOW in ("fork", "spawn"):
        read(9)
        workers(HOW)
    elif HOW == "program":
        subprocess.run([sys.executable, __file__, "once", ENDPOINT], check=True)
    elif HOW == "once":
        read(0)
    elif HOW == "thread":
        threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif HOW == "looked_for":
        assert importlib.util.find_spec("botocore.client") is not None
        read(0)
    elif HOW == "initialize":
        import boto3  # noqa: F401 (before the trace begins)

        from dftracer.python import dftracer

        log = dftracer.initialize_log()
        read(0)
        log.finalize()
        read(1)
