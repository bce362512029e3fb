"""start() and stop(), where a framework calls hooks and there is no block to enter."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("hook.pfw")


class Session:
    """Stands for a framework that runs its steps itself and calls hooks around them."""

    def __init__(self, hook, steps):
        hook.begin()
        for self.step in range(steps):
            hook.before_run(self)
            hook.after_run(self, None)
        hook.end(self)

    def global_step(self):
        return self.step


class ProfilingHook:
    def begin(self):
        ai.pipeline.epoch.start()

    def end(self, session):
        ai.pipeline.epoch.stop()

    def before_run(self, run_context):
        ai.update(step=run_context.global_step())
        ai.compute.start()

    def after_run(self, run_context, run_values):
        ai.compute.stop()


Session(ProfilingHook(), steps=2)
