"""The name of a program, from its command line."""

from __future__ import annotations

import re

INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|node|Rscript|lua|julia|bash|dash|zsh|sh)[\d.]*")
WRAPPERS = ("env", "nice", "nohup", "stdbuf", "timeout", "time", "taskset", "numactl", "setsid")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
OPTION = re.compile(r"[-\d]")  # an option of a wrapper, or its value: nice -n 10
WITH_VALUE = ("-W", "-X")  # options of interpreters with a value


def program_name(command: str) -> str:
    """For `/usr/bin/python3 -u train.py --token x`: train.py."""
    words = command.split()
    wrapped = False
    while words:
        if words[0].rsplit("/", 1)[-1] in WRAPPERS:
            wrapped = True
        elif not ASSIGNMENT.match(words[0]) and not (wrapped and OPTION.match(words[0])):
            break
        words = words[1:]
    if not words:
        return ""
    name = words[0].rsplit("/", 1)[-1].lstrip("-")  # -bash is a login shell
    if not INTERPRETERS.fullmatch(name):
        return name
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m" and at + 1 < len(words):
            return words[at + 1]
        if words[at] in ("-c", "-e"):  # the program is an argument
            return name
        at += 2 if words[at] in WITH_VALUE else 1
    return words[at].rsplit("/", 1)[-1] if at < len(words) else name
