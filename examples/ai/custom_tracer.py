"""A node of a category that is not in the vocabulary."""

from dftracer.python import DFTracerAI, dftracer

dftracer.initialize_log("custom.pfw")

custom_tracer = DFTracerAI(
    cat="custom_category",
    name="my_operation",
    epoch=1,
    step=100,
    enable=True,
)


@custom_tracer
def operation():
    return 42


operation()
with custom_tracer:
    pass

# Without a name it has that of its category.
with DFTracerAI(cat="simulation"):
    pass
