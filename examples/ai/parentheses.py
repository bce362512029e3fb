"""@node follows later switches of the tree; @node() keeps the state it was created with."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("parentheses.pfw")


class Follows:
    @ai.checkpoint.init
    def __init__(self):
        pass


class DoesNotFollow:
    @ai.checkpoint.init()
    def __init__(self):
        pass


ai.checkpoint.disable()  # prints a hint: there is a function that this does not reach
Follows()
DoesNotFollow()
