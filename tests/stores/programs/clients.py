"""clients.py CASE ENDPOINT DIRECTORY: one library of object stores, with reads of known sizes."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sys

CASE, ENDPOINT, PLACE = sys.argv[1:4]
SECRETS = {
    "aws_access_key_id": "AKIDNEVERINATRACE",
    "aws_secret_access_key": "SECRETNEVERINATRACE",
    "aws_session_token": "TOKENNEVERINATRACE",
}
CONTENT = bytes(range(256)) * 400
KEY = "train/shard-0.bin"


def client(**more):
    import boto3

    return boto3.client("s3", endpoint_url=ENDPOINT, region_name="us-east-1", **SECRETS, **more)


def check(data, wanted):
    assert bytes(data) == wanted, (len(data), len(wanted))


def case_boto3():
    s3 = client()
    s3.put_object(Bucket="data", Key="up.bin", Body=b"u" * 4321)
    s3.head_object(Bucket="data", Key=KEY)
    check(s3.get_object(Bucket="data", Key=KEY)["Body"].read(), CONTENT)
    check(s3.get_object(Bucket="data", Key=KEY, Range="bytes=100-1123")["Body"].read(),
          CONTENT[100:1124])  # fmt: skip
    body = s3.get_object(Bucket="data", Key=KEY)["Body"]
    check(body.read(1000), CONTENT[:1000])
    body.close()
    chunks = s3.get_object(Bucket="data", Key=KEY)["Body"].iter_chunks(10_000)
    check(b"".join(chunks), CONTENT)
    with s3.get_object(Bucket="data", Key=KEY)["Body"] as raw:
        check(raw.read(), CONTENT)
    assert s3.list_objects_v2(Bucket="data", Prefix="train/")["KeyCount"] == 1
    with contextlib.suppress(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket="data", Key="none")
    s3.delete_object(Bucket="data", Key="up.bin")


def case_transfer():
    from boto3.s3.transfer import TransferConfig

    s3 = client()
    parts = TransferConfig(multipart_threshold=50_000, multipart_chunksize=51_200)
    target = io.BytesIO()
    s3.download_fileobj("data", KEY, target, Config=parts)
    check(target.getvalue(), CONTENT)


def case_dropped():
    """A body that nobody reads, and one that is still open at the end."""
    s3 = client()
    s3.get_object(Bucket="data", Key=KEY)
    kept = s3.get_object(Bucket="data", Key=KEY)["Body"]
    check(kept.read(10), CONTENT[:10])
    sys.kept = kept


def case_presigned():
    """Signatures in addresses, which the program uses with clients of its own."""
    import urllib.request

    s3 = client()
    address = s3.generate_presigned_url("get_object", Params={"Bucket": "data", "Key": KEY})
    assert "Signature=" in address
    print(address)
    with urllib.request.urlopen(address) as answer:
        check(answer.read(), CONTENT)
    import fsspec

    with fsspec.open(address, "rb") as file:
        check(file.read(), CONTENT)


def case_aiobotocore():
    from aiobotocore.session import get_session

    async def one(s3, number):
        asked = f"bytes={number * 100}-{number * 100 + 99}"
        answer = await s3.get_object(Bucket="data", Key=KEY, Range=asked)
        async with answer["Body"] as body:
            check(await body.read(), CONTENT[number * 100 : number * 100 + 100])

    async def main():
        made = get_session().create_client(
            "s3", endpoint_url=ENDPOINT, region_name="us-east-1", **SECRETS
        )
        async with made as s3:
            await asyncio.gather(*(one(s3, number) for number in range(4)))

    asyncio.run(main())


def file_system(**more):
    import s3fs

    return s3fs.S3FileSystem(
        key=SECRETS["aws_access_key_id"],
        secret=SECRETS["aws_secret_access_key"],
        token=SECRETS["aws_session_token"],
        client_kwargs={"endpoint_url": ENDPOINT, "region_name": "us-east-1"},
        **more,
    )


def case_s3fs():
    fs = file_system()
    with fs.open(f"data/{KEY}", "rb", block_size=5000, cache_type="readahead") as file:
        check(file.read(10), CONTENT[:10])
        check(file.read(20), CONTENT[10:30])
        file.seek(50_000)
        check(file.read(100), CONTENT[50_000:50_100])
    check(fs.cat_file(f"data/{KEY}", start=7, end=1007), CONTENT[7:1007])
    fs.pipe_file("data/up.bin", b"u" * 4321)
    assert fs.ls("data/train") == [f"data/{KEY}"]


def case_copies():
    import fsspec

    options = {"key": SECRETS["aws_access_key_id"], "secret": SECRETS["aws_secret_access_key"],
               "client_kwargs": {"endpoint_url": ENDPOINT}}  # fmt: skip
    copies = {"cache_storage": os.path.join(PLACE, "copies")}
    for _ in range(2):
        with fsspec.open(f"simplecache::s3://data/{KEY}", s3=options, simplecache=copies) as file:
            check(file.read(), CONTENT)


def case_smart_open():
    import smart_open

    with smart_open.open(f"s3://data/{KEY}", "rb", transport_params={"client": client()}) as file:
        check(file.read(), CONTENT)


def case_obstore():
    import obstore
    from obstore.store import MemoryStore, S3Store

    store = S3Store(
        "data",
        config={**SECRETS, "endpoint": ENDPOINT, "region": "us-east-1",
                "virtual_hosted_style_request": False},
        client_options={"allow_http": True},
    )  # fmt: skip
    obstore.put(store, "up.bin", b"u" * 4321)
    result = obstore.get(store, KEY)
    assert isinstance(result, result.__class__)
    assert result.meta["size"] == len(CONTENT)
    check(result.bytes(), CONTENT)
    check(store.get_range(KEY, start=100, length=1024), CONTENT[100:1124])
    first, second = obstore.get_ranges(store, KEY, starts=[0, 5000], lengths=[10, 20])
    check(first, CONTENT[:10])
    check(second, CONTENT[5000:5020])
    check(b"".join(bytes(part) for part in store.get(KEY).stream()), CONTENT)
    assert store.head(KEY)["size"] == len(CONTENT)

    async def later():
        return await (await obstore.get_async(store, KEY)).bytes_async()

    check(asyncio.run(later()), CONTENT)
    memory = MemoryStore()
    memory.put("x", b"1")
    assert bytes(memory.get("x").bytes()) == b"1"


def case_pyarrow():
    import pickle

    from pyarrow import fs

    place = ENDPOINT.partition("://")[2]
    s3 = fs.S3FileSystem(
        access_key=SECRETS["aws_access_key_id"],
        secret_key=SECRETS["aws_secret_access_key"],
        endpoint_override=place,
        scheme="http",
        region="us-east-1",
    )
    with s3.open_input_file(f"data/{KEY}") as file:
        check(file.read_at(1024, 100), CONTENT[100:1124])
    assert s3.get_file_info(f"data/{KEY}").size == len(CONTENT)
    assert s3.get_file_info(fs.FileSelector("data/train"))[0].size == len(CONTENT)
    assert pickle.loads(pickle.dumps(s3)) == s3
    assert isinstance(s3, fs.FileSystem)
    assert pickle.loads(pickle.dumps(fs.S3FileSystem)) is fs.S3FileSystem
    other, _ = fs.FileSystem.from_uri(f"s3://data/{KEY}?region=us-east-1")
    assert isinstance(other, fs.S3FileSystem)
    assert not isinstance(fs.LocalFileSystem(), fs.S3FileSystem)


def case_s3torchconnector():
    for name, value in SECRETS.items():
        os.environ[name.upper()] = value
    from s3torchconnector import S3ClientConfig
    from s3torchconnector._s3client import S3Client

    s3 = S3Client("us-east-1", endpoint=ENDPOINT,
                  s3client_config=S3ClientConfig(force_path_style=True))  # fmt: skip
    with s3.put_object("data", "up.bin") as writer:
        writer.write(b"u" * 4000)
        writer.write(b"u" * 321)
    assert s3.head_object("data", KEY).size == len(CONTENT)
    check(s3.get_object("data", KEY).read(), CONTENT)
    s3.delete_object("data", "up.bin")


def case_busy():
    s3 = client(config=__import__("botocore.config").config.Config(
        retries={"max_attempts": 5, "mode": "standard"}))  # fmt: skip
    check(s3.get_object(Bucket="data", Key=KEY)["Body"].read(), CONTENT)


def case_refused():
    """Nobody answers at this address."""
    s3 = client(config=__import__("botocore.config").config.Config(
        retries={"max_attempts": 1, "mode": "standard"}, connect_timeout=2))  # fmt: skip
    try:
        s3.head_object(Bucket="data", Key=KEY)
    except Exception as error:
        print(type(error).__name__)


def case_huggingface():
    os.environ["HF_TOKEN"] = "hf_NEVERINATRACE"
    os.environ["HF_ENDPOINT"] = ENDPOINT
    os.environ["HF_HOME"] = os.path.join(PLACE, "hf")
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    from huggingface_hub import hf_hub_download

    path = hf_hub_download("someone/model", "data.bin", endpoint=ENDPOINT)
    with open(path, "rb") as file:
        check(file.read(), CONTENT)


def case_gcsfs():
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"  # no second protocol
    import gcsfs

    fs = gcsfs.GCSFileSystem(token="anon", endpoint_url=ENDPOINT, project="p")
    check(fs.cat_file("data/a/x"), CONTENT)
    check(fs.cat_file("data/a/x", start=10, end=110), CONTENT[10:110])


def case_http():
    import fsspec

    address = f"{ENDPOINT}/files/x.bin?token=QUERYNEVERINATRACE"
    with fsspec.open(address, "rb", block_size=5000, cache_type="bytes") as file:
        check(file.read(10), CONTENT[:10])
        check(file.read(10), CONTENT[10:20])


globals()[f"case_{CASE}"]()
