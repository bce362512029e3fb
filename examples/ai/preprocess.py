"""Events of your own below one of the vocabulary: preprocess.collate, preprocess.augment.

What is derived follows its parent: updates and switches of `ai.data.preprocess` reach it.
"""

from dftracer.python import ai, dftracer

dftracer.initialize_log("preprocess.pfw")


class Dataset:
    def __getitem__(self, idx: int):
        data = [idx] * 4
        with ai.data.preprocess:
            data = [value + 1 for value in data]
        return data


# Named "preprocess.collate", in the category "data".
@ai.data.preprocess.derive(name="collate")
def collate(batch):
    return sorted(batch)


@ai.data.preprocess.derive(name="augment")
def augment(batch):
    return batch[::-1]


# The same event, as an object; asking twice for one name gives one node.
profiler_collate = ai.data.preprocess.derive(name="collate")


def collate_fn(batch):
    with profiler_collate:
        return collate(batch)


dataset = Dataset()
augment(collate_fn(dataset[0]))

# Only the derived node...
profiler_collate.update(epoch=1)
augment(collate_fn(dataset[1]))

# ...or the whole family.
ai.data.preprocess.update(epoch=2)
augment(collate_fn(dataset[2]))
