"""reference/c-api.md: functions, types and macros of the public headers, with their comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "dftracer"

INTRO = """\
# C and C++ API

Generated from `dftracer/dftracer.h` (C99) and `dftracer/dftracer.hpp` (C++11 and later; included by
the former). [C and C++ programs](../howto/c-cpp.md) shows how to compile and link.

Nothing is recorded unless `DFTRACER_ENABLE=1` is set when the program runs. With `DFTRACER_DISABLE`
defined before the header is included, every macro compiles to nothing. All functions may be called
from any thread, at any time, with null or empty arguments; none of them ever fails the program.
"""

# Macros have no prototype that says what they do; one line each.
MACROS = {
    "INIT": "Start recording into `log_file` and follow the I/O calls of the process.",
    "INIT_NO_BIND": "Start recording without following I/O calls.",
    "FINI": "Complete the trace. Optional: the end of the process does the same.",
    "FUNCTION_START": "Begin a region named after the enclosing function, in category `C_APP`. "
    "With GCC and Clang it also ends at an early return.",
    "FUNCTION_END": "End the region of the function.",
    "FUNCTION": "A region named after the enclosing function, in category `CPP_APP`, that ends "
    "with the scope.",
    "FUNCTION_UPDATE": "Attach an argument (number, bool or text) to the region of the function.",
    "FUNCTION_UPDATE_INT": "Attach an integer argument to the region of the function.",
    "FUNCTION_UPDATE_FLOAT": "Attach a floating-point argument to the region of the function.",
    "FUNCTION_UPDATE_STR": "Attach a text argument to the region of the function.",
    "FUNCTION_UPDATE_INT_TYPE": "The same; `type` is accepted for other releases and not used.",
    "FUNCTION_UPDATE_STR_TYPE": "The same; `type` is accepted for other releases and not used.",
    "FUNCTION_UPDATE_TYPE": "The same; `type` is accepted for other releases and not used.",
    "REGION": "A region called `name`, in category `CPP_APP`, that ends with the scope.",
    "REGION_START": "Begin a region called `name`.",
    "REGION_END": "End the region called `name`.",
    "REGION_UPDATE": "Attach an argument (number, bool or text) to the region `name`.",
    "REGION_DYN_UPDATE": "Attach an argument to a region that `DFTRACER_CPP_REGION_START` began.",
    "REGION_UPDATE_INT": "Attach an integer argument to the region `name`.",
    "REGION_UPDATE_FLOAT": "Attach a floating-point argument to the region `name`.",
    "REGION_UPDATE_STR": "Attach a text argument to the region `name`.",
    "REGION_UPDATE_INT_TYPE": "The same; `type` is accepted for other releases and not used.",
    "REGION_UPDATE_STR_TYPE": "The same; `type` is accepted for other releases and not used.",
    "REGION_UPDATE_TYPE": "The same; `type` is accepted for other releases and not used.",
    "REGION_DYN_UPDATE_TYPE": "The same; `type` is accepted for other releases and not used.",
    "METADATA": "Record a key and a text value for the whole process; `name` is not used.",
    "INSTANT": "Record an event without a duration.",
    "COUNTER": "Record the value of a counter at this moment.",
    "APP_METADATA_INT": "Record a key and an integer value for the whole process.",
    "APP_METADATA_STR": "Record a key and a text value for the whole process.",
    "MARK_USED": "Record that a part of the program was used.",
}


@dataclass
class Declaration:
    name: str
    code: str
    comment: str


def plain_comment(text: str) -> str:
    lines = [re.sub(r"^\s*(/\*+|\*/|\*|//)\s?", "", line) for line in text.splitlines()]
    joined = " ".join(line.rstrip(" */").strip() for line in lines).strip()
    return re.sub(r"\s+", " ", joined)


def declarations(text: str) -> list[Declaration]:
    """Structs, enums and function prototypes, in order. A comment holds until a blank line."""
    text = text.split("/* ---- Macros")[0]
    found: list[Declaration] = []
    comment = ""
    pattern = re.compile(
        r"(?P<blank>\n[ \t]*\n)|(?P<comment>/\*.*?\*/)"
        r"|(?P<type>^typedef .*?^}\s*\w+;|^typedef [^;{]*;)"
        r"|(?P<function>^[a-z][\w \*]*?\b(dftracer_\w+)\([^;{]*\);)",
        re.DOTALL | re.MULTILINE,
    )
    for match in pattern.finditer(text):
        if match["blank"]:
            comment = ""
        elif match["comment"]:
            comment = plain_comment(match["comment"])
        elif match["type"]:
            name = re.findall(r"(\w+);$", match["type"])[0]
            found.append(Declaration(name, match["type"], comment))
        else:
            name = re.findall(r"\b(dftracer_\w+)\(", match["function"])[0]
            found.append(Declaration(name, match["function"], comment))
    return found


def macros(text: str) -> list[tuple[str, str]]:
    """Public macros with their parameters; names that end in an underscore are internal."""
    found = re.findall(r"^#define (DFTRACER_C(?:PP)?_\w*[A-Z])\(([^)]*)\)", text, re.MULTILINE)
    return list(dict.fromkeys(found))


def macro_text(name: str) -> str:
    short = re.sub(r"^DFTRACER_C(PP)?_", "", name)
    if short not in MACROS:
        raise SystemExit(f"docs: say in tools/docs/c_api.py what {name} does")
    return MACROS[short]


def make_page() -> str:
    c = (HEADERS / "dftracer.h").read_text(encoding="utf-8")
    cpp = (HEADERS / "dftracer.hpp").read_text(encoding="utf-8")
    parts = [INTRO]
    for title, text in (("C macros", c), ("C++ macros", cpp)):
        parts.append(f"## {title}\n")
        rows = [f"| `{n}({p})` | {macro_text(n)} |" for n, p in macros(text)]
        parts.append("\n".join(["| macro | meaning |", "| --- | --- |", *rows]) + "\n")
    parts.append("## Functions and types\n")
    previous = ""
    for one in declarations(c):
        parts.append(f"### `{one.name}`\n\n```c\n{one.code}\n```\n")
        comment = one.comment or previous
        previous = comment
        if comment:
            parts.append(comment.rstrip(".") + ".\n")
    kept = re.search(r"^(?://[^\n]*\n)+class DFTracer .*?^};", cpp, re.DOTALL | re.MULTILINE)
    if kept is None:
        raise SystemExit("docs: class DFTracer is not in dftracer.hpp")
    public = re.sub(r"\n private:.*?\n};", "\n};", kept[0], flags=re.DOTALL)
    code = public[public.index("class DFTracer") :]
    about = plain_comment(public[: public.index("class DFTracer")])
    parts.append(f"### class `DFTracer`\n\n{about}\n\n```cpp\n{code}\n```\n")
    constants = re.findall(r"^#define (D\w*F\w*_(?:EVENT|KEY|VALUE|IGNORE)) (\d)", c, re.MULTILINE)
    rows = [f"| `{name}` | {value} |" for name, value in constants]
    parts.append("## Constants\n")
    parts.append("\n".join(["| name | value |", "| --- | --- |", *rows]) + "\n")
    parts.append(
        "The functions of older releases (`initialize_main`, `initialize_region`, "
        "`update_metadata_int` and others) are declared as well, unless `DFTRACER_NO_OLD_NAMES` "
        "is defined.\n"
    )
    return "\n".join(parts)
