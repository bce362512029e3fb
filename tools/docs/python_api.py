"""reference/python-api.md: every public name of the Python package, with signature and docstring.

Read from the sources and the stub of the extension, without importing them: a signature is shown as
it is written, and the page is the same whether tracing is on or off.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "dftracer"

INTRO = """\
# Python API

Generated from the signatures and docstrings of the package. [Annotating Python](../python.md) and
[the ai vocabulary](../ai.md) are the guides to the annotations, [Reading traces](../trace.md) and
[the report](../report.md) to the analysis.

Importing `dftracer.python` starts nothing. Without `DFTRACER_ENABLE=1` decorators return the
function that they were given, and every method does nothing.
"""

# Entries with members, in reading order: title, module, names.
CHAPTERS = (
    ("Starting a trace", "dftracer.python", ("dftracer",)),
    ("Annotating functions, blocks and loops", "dftracer.python", ("dft_fn",)),
    ("The ai vocabulary", "dftracer.python", ("ai", "DFTracerAI")),
    (
        "PyTorch: compiled models",
        "dftracer.python",
        ("Dynamo", "dynamo", "create_backend", "dftracer_dynamo_backend"),
    ),
    (
        "PyTorch: torch.profiler",
        "dftracer.python.torch",
        ("trace_handler", "TraceHandler", "profile"),
    ),
    ("PyTorch: trainers", "dftracer.python.torch.lightning", ("DFTracerCallback",)),
    ("PyTorch: trainers", "dftracer.python.torch.hf", ("DFTracerCallback",)),
    ("Argument types", "dftracer.python", ("TagValue", "TagDType", "TagType")),
    ("Reading traces", "dftracer.trace", ()),
    ("Reports", "dftracer.reports", ()),
    ("The native module's functions", "dftracer.dftracer", ()),
    ("Errors", "dftracer.errors", ("DFTracerError",)),
)

# What has no docstring of its own: data, and methods of the extension, of which there is a stub.
SENTENCES = {
    "AI": "The type of `ai`, the root of the vocabulary.",
    "IO": "The type of `ai.data.io`, `ai.checkpoint.io` and `ai.other.io`.",
    "Checkpoint": "The type of `ai.checkpoint`: `capture`, `restart`, `io`.",
    "Communication": "The type of `ai.comm`: point-to-point and collective operations.",
    "Compute": "The type of `ai.compute`: `forward`, `backward`, `step`.",
    "Data": "The type of `ai.data`: `preprocess`, `item`, `io`.",
    "DataLoader": "The type of `ai.dataloader`: `fetch`.",
    "Device": "The type of `ai.device`: `transfer`.",
    "Other": "The type of `ai.other`: `io` and `log`.",
    "Pipeline": "The type of `ai.pipeline`: `epoch`, `train`, `evaluate`, `test`.",
    "ai": "The root of the vocabulary: `ai.compute.forward`, `ai.dataloader.fetch` and so on.",
    "checkpoint": "The same object as `ai.checkpoint`.",
    "comm": "The same object as `ai.comm`.",
    "compute": "The same object as `ai.compute`.",
    "data": "The same object as `ai.data`.",
    "dataloader": "The same object as `ai.dataloader`.",
    "device": "The same object as `ai.device`.",
    "pipeline": "The same object as `ai.pipeline`.",
    "dynamo": "A ready-made `Dynamo`: `@dynamo.compile`.",
    "dftracer_dynamo_backend": "A ready-made backend: `torch.compile(model, backend=...)`; also "
    "registered under the name `dftracer`.",
    "trace_handler": "A ready-made `TraceHandler`, for the `on_trace_ready` of torch.profiler.",
    "COLUMNS": "The names of the columns of `read()`, in their order.",
    "BLOCK_NAME": "`block`, the last part of the name of a loop body's event.",
    "CTX_SEPARATOR": "`.`, between the parts of an event's name.",
    "INIT_NAME": "`init`, the last part of the name of an initialization event.",
    "ITER_COUNT_NAME": "`count`, the argument that numbers the items of a loop.",
    "ITER_NAME": "`iter`, the last part of the name of the event that waits for an item.",
    "ROOT_CAT": "`ai_root`, the category of `ai` itself.",
    "ROOT_NAME": "`ai_root`, the name of `ai` itself.",
    "START_METADATA_NAME": "`start`, the last part of the name of a start mark.",
    "STOP_METADATA_NAME": "`end`, the last part of the name of a stop mark.",
    "DFTRACER_ENABLE": "Whether tracing was switched on when the package was imported.",
    "DFTRACER_ENABLE_ENV": "The name of the variable `DFTRACER_ENABLE`.",
    "DFTRACER_INIT_ENV": "The name of the variable `DFTRACER_INIT`.",
    "DFTRACER_INIT_PRELOAD": "Whether `DFTRACER_INIT` is unset or `PRELOAD`.",
    "DFTRACER_LOG_LEVEL": "The value of `DFTRACER_LOG_LEVEL`.",
    "DFTRACER_LOG_LEVEL_ENV": "The name of the variable `DFTRACER_LOG_LEVEL`.",
    "DFTRACER_TIME_METRIC_ENV": "The name of the variable `DFTRACER_TIME_METRIC`.",
    "P": "A `ParamSpec` that other releases export.",
    "R": "A `TypeVar` that other releases export.",
    "T": "A `TypeVar` that other releases export.",
    "TagValueTuple": "What `TagValue.value()` returns: tag type and value.",
    "profiler": "The logger of this process, under the name that other releases give it.",
    "Node.name": "The name of the events.",
    "Node.cat": "The category of the events.",
    "Node.enabled": "Whether events are recorded.",
    "dft_fn.__call__": "`@x` on a function is the same as `@x.log`.",
    "TraceHandler.__call__": "Write the events of a profiler into the trace.",
    "Node.__enter__": "Begin an event: `with node:` records one event per entry.",
    "Node.start": "Begin an event by hand. With `metadata=True`, write the time at once as a `CM` "
    "record and begin no event.",
    "Node.stop": "End the latest `start()` of this node on this thread and task. With "
    "`metadata=True`, write the time at once.",
    "Node.flush": "Record the event from the last `reset()`, or from the creation of the object, "
    "to now.",
    "Node.reset": "Restart the clock of `flush()`.",
    "Node.update": "Set arguments of later events, the open one included; `args` takes any keys.",
    "dft_fn.enable": "Record events of this object and of the functions that it decorated.",
    "dft_fn.disable": "Record no events of this object, nor of the functions that it decorated.",
    "dft_fn.uses": "Accepted for other releases; nothing is recorded.",
    "dft_fn.generates": "Accepted for other releases; nothing is recorded.",
    "dft_fn.relate": "Accepted for other releases; nothing is recorded.",
    "dft_fn.relate_entity": "Accepted for other releases; nothing is recorded.",
    "dftracer.set_app_metadata_int": "Record a key and an integer that hold for the whole process.",
    "dftracer.set_app_metadata_string": "Record a key and a text that hold for the whole process.",
    "dftracer.declare_entity": "Accepted for other releases; nothing is recorded.",
    "dftracer.declare_entity_type": "Accepted for other releases; nothing is recorded.",
    "dftracer.relate_entities": "Accepted for other releases; nothing is recorded.",
    "lightning.DFTracerCallback": "A Lightning callback: `Trainer(callbacks=[DFTracerCallback()])` "
    "records the training loop and the trainer's phases.",
    "hf.DFTracerCallback": "A callback of Hugging Face's `Trainer` that records the training loop "
    "and the trainer's phases.",
    "ProfileCategory": "The categories of the vocabulary:",
    "CheckpointEvent": "The event names of `ai.checkpoint`:",
    "CommunicationEvent": "The event names of `ai.comm`:",
    "ComputeEvent": "The event names of `ai.compute`:",
    "DataEvent": "The event names of `ai.data`:",
    "DataLoaderEvent": "The event names of `ai.dataloader`:",
    "DeviceEvent": "The event names of `ai.device`:",
    "IOEvent": "The event names of `ai.data.io`, `ai.checkpoint.io` and `ai.other.io`:",
    "OtherEvent": "The event names of `ai.other`:",
    "PipelineEvent": "The event names of `ai.pipeline`:",
    "EntityID": "The type of an entity's number.",
    "is_trace": "Whether a path is named like a trace file.",
    "Damage.of": "The damage that one read of the extension reports.",
    "Damage.add": "Add one problem of a file.",
    "Report.table": "A table by its name.",
    "Report.dicts": "All tables, each as a list of dictionaries.",
    "Table.name": "The name of the table.",
    "Table.columns": "The names of its columns.",
    "Table.dicts": "The rows as dictionaries.",
    "Table.column": "The values of one column.",
}
NODES = ("dft_fn", "DFTracerAI")  # what they have from the extension is shown with them
# Their methods are hooks that a framework calls, or repeat those of `dftracer`.
WITHOUT_MEMBERS = ("DFTracerCallback", "NoOpProfiler", "ProfilerProtocol")


@dataclass
class Entry:
    name: str
    signature: str = ""
    text: str = ""
    members: list[Entry] = field(default_factory=list)


def module_file(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    raise SystemExit(f"docs: no module {module}")


def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def everything(tree: ast.AST) -> list[ast.stmt]:
    """Statements of a module, those below `if TYPE_CHECKING` included."""
    found: list[ast.stmt] = []
    for statement in getattr(tree, "body", []):
        found.append(statement)
        if isinstance(statement, ast.If):
            found += everything(statement)
    return found


def public_names(tree: ast.Module) -> list[str]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(statement.value)]
    return []


def defined_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [ast.unparse(target) for target in statement.targets]
    return [ast.unparse(statement.target)] if isinstance(statement, ast.AnnAssign) else []


def locate(module: str, name: str) -> tuple[str, ast.stmt]:
    """Where a name is defined; imports are followed."""
    tree = parse(module_file(module))
    last: ast.stmt | None = None
    for statement in everything(tree):
        if name in defined_names(statement):
            last = statement
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("dft"):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return locate(str(statement.module), alias.name)
    if last is None:
        raise SystemExit(f"docs: {module} has no {name}")
    return module, last


def docstring(node: ast.stmt) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return inspect.cleandoc(ast.get_docstring(node) or "")
    return ""


def signature(name: str, node: ast.FunctionDef, *, method: bool) -> str:
    arguments = node.args
    static = any(ast.unparse(d) in ("staticmethod",) for d in node.decorator_list)
    positional = [*arguments.posonlyargs, *arguments.args]
    if method and not static:
        positional = positional[1:]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    parts = []
    for argument, default in zip(positional, defaults[-len(positional) :] if positional else []):
        parts.append(parameter(argument, default))
    if arguments.vararg:
        parts.append(f"*{parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        parts.append(parameter(argument, default))
    if arguments.kwarg:
        parts.append(f"**{parameter(arguments.kwarg, None)}")
    result = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    short = f"{name}({', '.join(parts)}){result}"
    if len(short) <= 90:
        return short
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{inner}){result}"


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg
    if argument.annotation is not None:
        text += f": {ast.unparse(argument.annotation)}"
    if default is not None:
        text += f" = {ast.unparse(default)}" if argument.annotation else f"={ast.unparse(default)}"
    return text


def methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Public methods by name; of overloads the last, which is the implementation."""
    return {
        statement.name: statement
        for statement in node.body
        if isinstance(statement, ast.FunctionDef)
        and (not statement.name.startswith("_") or statement.name in ("__enter__", "__call__"))
    }


def member_entries(name: str, node: ast.ClassDef) -> list[Entry]:
    found = {key: (f"{name}.{key}", method) for key, method in methods(node).items()}
    if name in NODES:
        stub = next(
            s
            for s in parse(PACKAGE / "_core.pyi").body
            if isinstance(s, ast.ClassDef) and s.name == "Node"
        )
        for key, method in methods(stub).items():
            found.setdefault(key, (f"Node.{key}", method))
    entries = []
    for key, (full, method) in found.items():
        decorators = [ast.unparse(d) for d in method.decorator_list]
        if key == "__enter__":
            shown = f"with {name}(...):" if name == "dft_fn" else "with node:"
        elif key == "__call__":
            shown = signature("node" if name in NODES else "handler", method, method=True)
        elif "property" in decorators:
            result = f": {ast.unparse(method.returns)}" if method.returns is not None else ""
            shown = f"{key}{result}"
        else:
            shown = signature(key, method, method=True)
        entries.append(Entry(key, shown, docstring(method) or SENTENCES.get(full, "")))
    return entries


def class_signature(name: str, node: ast.ClassDef) -> str:
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            plain = signature(name, statement, method=True)
            return f"class {plain.removesuffix(' -> None')}"
    fields = [
        f"{ast.unparse(s.target)}: {ast.unparse(s.annotation)}"
        for s in node.body
        if isinstance(s, ast.AnnAssign) and not ast.unparse(s.target).startswith("_")
    ]
    if any("dataclass" in ast.unparse(d) for d in node.decorator_list) and fields:
        return f"class {name}:\n" + "".join(f"    {field}\n" for field in fields).rstrip()
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    return f"class {name}({bases})" if bases else f"class {name}"


def enum_values(node: ast.ClassDef) -> list[str]:
    return [
        ast.unparse(s.targets[0])
        for s in node.body
        if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]).isupper()
    ]


def entry(module: str, name: str) -> Entry:
    _, node = locate(module, name)
    qualified = f"{module.rsplit('.', 1)[1]}.{name}"
    text = docstring(node) or SENTENCES.get(qualified, "") or SENTENCES.get(name, "")
    if isinstance(node, ast.FunctionDef):
        return Entry(name, signature(name, node, method=False), text)
    if isinstance(node, ast.ClassDef):
        values = enum_values(node)
        if values:
            text = " ".join(part for part in (text, ", ".join(f"`{v}`" for v in values)) if part)
            return Entry(name, class_signature(name, node), f"{text}.".replace("..", "."))
        members = [] if name in WITHOUT_MEMBERS else member_entries(name, node)
        return Entry(name, class_signature(name, node), text, members)
    if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("_log."):
        _, logger = locate("dftracer.python", "dftracer")
        assert isinstance(logger, ast.ClassDef)
        return next(e for e in member_entries("dftracer", logger) if e.name == name)
    return Entry(name, name, text)


def chapters() -> list[tuple[str, str, list[Entry]]]:
    made = []
    shown = set()
    for title, module, names in CHAPTERS:
        listed = names or tuple(public_names(parse(module_file(module))))
        made.append((title, module, [entry(module, name) for name in listed]))
        shown |= {(module, name) for name in listed}
    rest = [
        name
        for name in public_names(parse(module_file("dftracer.python")))
        if ("dftracer.python", name) not in shown
    ]
    made.append(("Further names", "dftracer.python", [entry("dftracer.python", n) for n in rest]))
    return made


def flat(one: Entry) -> str:
    """A signature in one line, for a table."""
    text = " ".join(one.signature.split()).replace("( ", "(").replace(", )", ")")
    return text.replace("|", "\\|")


def first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


HEADINGS = {"__enter__": "with", "__call__": "call"}


def section(one: Entry, level: str) -> list[str]:
    lines = [f"{level} `{one.name}`", "", "```python", one.signature, "```", "", one.text, ""]
    for member in one.members:
        heading = HEADINGS.get(member.name, f"{one.name}.{member.name}")
        lines += [f"{level}# `{heading}`", "", "```python", member.signature, "```", ""]
        lines += [member.text, ""]
    return lines


def make_page() -> str:
    lines = [INTRO]
    before = ""
    for title, module, entries in chapters():
        if title != before:
            lines += [f"## {title}", ""]
        before = title
        if title == "Further names":
            lines += [
                "Names of the vocabulary's types and parts, and names that other releases export.",
                "",
                "| name | meaning |",
                "| --- | --- |",
            ]
            lines += [f"| `{flat(e)}` | {first_paragraph(e.text)} |" for e in entries]
            continue
        lines += [f"`from {module} import {', '.join(e.name for e in entries)}`", ""]
        for one in entries:
            lines += section(one, "###")
    return "\n".join(lines) + "\n"
