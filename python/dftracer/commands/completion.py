"""`dftracer completion bash|zsh|fish`: a script generated from the verbs' parsers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from dftracer.errors import DFTracerError

EXAMPLES = """\
  eval "$(dftracer completion bash)"      in ~/.bashrc
  eval "$(dftracer completion zsh)"       in ~/.zshrc, after compinit
  dftracer completion fish > ~/.config/fish/completions/dftracer.fish
"""

SHELLS = ("bash", "zsh", "fish")


class Option(NamedTuple):
    flags: tuple[str, ...]
    help: str
    takes: str  # name of its value; empty without one
    choices: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    if args.shell not in SHELLS:
        raise DFTracerError(f"no completion for {args.shell}")
    options = {verb: list(_options(verb)) for verb in _verbs()}
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](options))
    return 0


def _verbs() -> dict[str, str]:
    from dftracer.commands._cli.main import SUMMARIES

    return SUMMARIES


def _options(verb: str) -> Iterator[Option]:
    from dftracer.commands._cli.main import load_verb, make_parser

    # argparse has no public way to list its actions; _actions has always been there.
    for action in make_parser(verb, load_verb(verb))._actions:
        choices = tuple(map(str, action.choices or ()))
        takes = "" if action.nargs == 0 else str(action.metavar or action.dest)
        text = " ".join((action.help or "").split())
        if action.option_strings or choices:
            yield Option(tuple(action.option_strings), text, takes, choices)


def _positional(options: list[Option]) -> tuple[str, ...]:
    return tuple(word for option in options if not option.flags for word in option.choices)


def _bash(options: dict[str, list[Option]]) -> str:
    flags, values, choices = [], [], []
    for verb, known in options.items():
        words = [flag for option in known for flag in option.flags]
        flags.append(f"    {verb}) flags={shlex.quote(' '.join(words))} ;;")
        if _positional(known):
            choices.append(f"    {verb}) words={shlex.quote(' '.join(_positional(known)))} ;;")
        for option in known:
            if option.takes and option.flags:
                pattern = "|".join(f"{verb}:{flag}" for flag in option.flags)
                given = shlex.quote(" ".join(option.choices))
                values.append(f"    {pattern}) takes=1; words={given} ;;")
    return f"""\
# bash completion of dftracer
_dftracer() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb=${{COMP_WORDS[1]}}
  local flags= words= takes= i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{" ".join(options)} --help --version' -- "$cur"))
    return
  fi
  case $verb:$prev in
{chr(10).join(values)}
  esac
  if [[ -z $takes ]]; then
    case $verb in
{chr(10).join(flags)}
    esac
    case $verb in
{chr(10).join(choices)}
    esac
  fi
  if [[ $verb == run && -z $takes ]]; then
    # Arguments of the program are completed as without dftracer run.
    for ((i = 2; i < COMP_CWORD; i++)); do
      case run:${{COMP_WORDS[i]}} in
        run:--) ((i++)); break ;;
        {"|".join(f"run:{flag}" for flag in _valued(options["run"]))}) ((i++)) ;;
        run:-*) ;;
        *) break ;;
      esac
    done
    if ((i < COMP_CWORD)); then
      if declare -F _command_offset >/dev/null; then _command_offset "$i"; fi
      return
    elif [[ $cur != -* || ${{COMP_WORDS[COMP_CWORD-1]}} == -- ]]; then
      COMPREPLY=($(compgen -c -- "$cur"))
      return
    fi
  fi
  if [[ $cur == -* && -n $flags ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}}
complete -o default -o bashdefault -F _dftracer dftracer"""


def _valued(options: list[Option]) -> list[str]:
    """The options that take a value."""
    return [flag for option in options if option.takes for flag in option.flags]


def _zsh_text(text: str) -> str:
    return "".join("\\" + char if char in "[]:\\" else char for char in text)


def _zsh(options: dict[str, list[Option]]) -> str:
    verbs = _verbs()
    listed = " ".join(shlex.quote(f"{verb}:{_zsh_text(text)}") for verb, text in verbs.items())
    cases = []
    for verb, known in options.items():
        specs = []
        for option in known:
            value = f"({' '.join(option.choices)})" if option.choices else "_files"
            if not option.flags:
                specs.append(shlex.quote(f"1:{_zsh_text(option.takes)}:{value}"))
                continue
            suffix = f":{_zsh_text(option.takes)}:{value}" if option.takes else ""
            for flag in option.flags:
                specs.append(shlex.quote(f"*{flag}[{_zsh_text(option.help)}]{suffix}"))
        if verb != "run" and not _positional(known):
            specs.append("'*:trace:_files'")
        joined = " \\\n        ".join(specs)
        before = "_dftracer_program || " if verb == "run" else ""
        cases.append(f"    {verb}) {before}_arguments -S \\\n        {joined} ;;")
    return f"""\
#compdef dftracer
# Arguments of the program are completed as without dftracer run.
_dftracer_program() {{
  local -i i=2
  while ((i < CURRENT)); do
    case $words[i] in
      --) ((i++)); break ;;
      {"|".join(_valued(options["run"]))}) ((i += 2)) ;;
      -*) ((i++)) ;;
      *) break ;;
    esac
  done
  if ((i > CURRENT)); then return 1; fi
  if ((i == CURRENT)) && [[ $words[i-1] != -- && $words[i] == -* ]]; then return 1; fi
  words=("${{(@)words[i,-1]}}")
  ((CURRENT -= i - 1))
  _normal
}}
_dftracer() {{
  local -a verbs
  verbs=({listed})
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
{chr(10).join(cases)}
  esac
}}
compdef _dftracer dftracer"""


FISH = """\
# fish completion of dftracer
function __dftracer_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end
# Arguments of the program are completed as without dftracer run.
function __dftracer_program
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l ended 0
    set -l i 3
    while test $i -le (count $words)
        switch $words[$i]
            case --
                set i (math $i + 1)
                set ended 1
                break
            case VALUED
                set i (math $i + 2)
            case '-*'
                set i (math $i + 1)
            case '*'
                break
        end
    end
    if test $i -le (count $words)
        complete -C (string join ' ' -- (string escape -- $words[$i..-1]) "$current")
    else if test $i -eq (math (count $words) + 1)
        if test $ended = 1; or not string match -q -- '-*' "$current"
            complete -C "$current"
        end
    end
end"""


def _fish(options: dict[str, list[Option]]) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = [FISH.replace("VALUED", " ".join(_valued(options["run"])))]
    for verb, text in _verbs().items():
        start = "complete -c dftracer -n __fish_use_subcommand"
        lines.append(f"{start} -f -a {verb} -d {quoted(text)}")
    for verb, known in options.items():
        start = f"complete -c dftracer -n '__dftracer_verb {verb}'"
        for option in known:
            words = [start]
            for flag in option.flags:
                words.append(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}")
            if option.takes and option.flags:
                words.append("-r")
            if option.choices:
                words.append(f"-f -a {quoted(' '.join(option.choices))}")
            words.append(f"-d {quoted(option.help)}")
            lines.append(" ".join(words))
    lines.append("complete -c dftracer -n '__dftracer_verb run' -f -a '(__dftracer_program)'")
    return "\n".join(lines)
