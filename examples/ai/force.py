"""Single uses that override the switch of their category."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("force.pfw")

ai.compute.disable()  # no compute event...


@ai.compute.forward(enable=True)  # ...but this one
def forward(x):
    return x


@ai.compute.forward
def ordinary(x):
    return x


forward(1)
ordinary(2)
with ai.compute.backward(enable=True):  # and this one
    pass

ai.compute.enable()  # every compute event...


@ai.compute.step(enable=False)  # ...but this one
def quiet_step():
    pass


quiet_step()
with ai.compute.step:
    pass
