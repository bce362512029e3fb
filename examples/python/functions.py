"""dft_fn: events of a category of your own, named after the decorated functions."""

from dftracer.python import dft_fn, dftracer

log = dftracer.initialize_log("functions.pfw")
reader = dft_fn("reader")


@reader.log
def parse(text):
    return text.split()


@reader.log(name="tidy")  # a name of its own
def _clean_up_whitespace(text):
    return " ".join(text.split())


class Shard:
    @reader.log_init
    def __init__(self, path, epoch=0):
        self.path = path
        self.epoch = epoch  # an attribute of this name goes along with every method
        self.step = 0

    @reader.log
    def read(self, image_idx):  # so does a parameter
        self.step += 1
        return f"{self.path}:{image_idx}"

    @reader.log_static
    @staticmethod
    def checksum(data):
        return len(data)


shard = Shard("shard-7", epoch=3)
for image in range(2):
    parse(_clean_up_whitespace(shard.read(image)))
Shard.checksum("abc")

# A block. What is said inside it is on its event.
with dft_fn("reader", name="warm up") as block:
    block.update(step=1, args={"source": "cache", "bytes": 4096})

# A loop: the wait for each item, and the body.
for _ in reader.iter(range(2), name="shards", iter_name="shard"):
    pass

# From reset() to flush(), where there is no block.
phase = dft_fn("reader", name="phase")
phase.reset()
phase.flush()

# A fact about the whole process.
reader.log_metadata("format", "tfrecord")

log.finalize()
