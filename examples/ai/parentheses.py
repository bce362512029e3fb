"""@node follows the switches of the tree; @node() was cut off from them when it was written."""

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
