"""Hides secrets in command lines: passwords, tokens and keys become `***`.

The recording side masks before a command line reaches a file; this module masks again what commands
show, for traces of other releases. Both follow the tables below and read the same test vectors,
tests/data/secrets.json. Every decision is about ASCII characters, so bytes and text agree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

MASK = "***"

# Names whose value is a secret, in lower case with `-` for `_` and `.`. A name is secret if it is
# one of these or ends with `-` and one of these: `DB_PASSWORD`, `--hub_token`, `x-api-key`. Short
# options (-p), `pass`, `pwd`, `key` and `auth` mean too many other things.
NAMES = (
    "password",
    "passwd",
    "passphrase",
    "passin",
    "passout",
    "mysql-pwd",
    "db-pass",
    "db-pwd",
    "secret",
    "secret-key",
    "secretkey",
    "clientsecret",
    "token",
    "accesstoken",
    "authtoken",
    "api-key",
    "apikey",
    "access-key",
    "accesskey",
    "secret-access-key",
    "account-key",
    "accountkey",
    "shared-access-key",
    "sharedaccesskey",
    "encryption-key",
    "wandb-key",
    "bearer",
    "jwt",
)
# Secret only as parameters of a URL, after `?` or `&`.
QUERY_NAMES = ("sig", "signature", "credential")
# A `token` after one of these is a part of text or a count: --eos-token, --max-token.
ORDINARY_BEFORE_TOKEN = (
    "bos",
    "cls",
    "eos",
    "image",
    "mask",
    "max",
    "min",
    "num",
    "pad",
    "per",
    "sep",
    "special",
    "start",
    "stop",
    "unk",
)
# HTTP headers. After these the word that names the scheme stays, and the next word is hidden ...
AUTHORIZATION = ("authorization", "proxy-authorization")
SCHEMES = ("apikey", "basic", "bearer", "digest", "negotiate", "token")
# ... and after these everything up to the end of the quotation or the argument.
COOKIES = ("cookie", "set-cookie")


class Shape(NamedTuple):
    """A word that is a secret wherever it stands; its prefix stays visible."""

    prefix: str
    least: int  # characters behind the prefix
    most: int  # 0: no limit
    alphabet: str  # A: upper case, a: lower case, 0: digits; others are themselves
    mixed: bool = False  # needs an upper-case letter and a digit, which ordinary words lack


SHAPES = (
    Shape("AKIA", 16, 16, "A0"),
    Shape("ASIA", 16, 16, "A0"),
    Shape("AIza", 35, 35, "Aa0_-"),
    Shape("eyJ", 30, 0, "Aa0_-."),
    Shape("ghp_", 16, 0, "Aa0"),
    Shape("gho_", 16, 0, "Aa0"),
    Shape("ghu_", 16, 0, "Aa0"),
    Shape("ghs_", 16, 0, "Aa0"),
    Shape("ghr_", 16, 0, "Aa0"),
    Shape("github_pat_", 20, 0, "Aa0_"),
    Shape("glpat-", 20, 0, "Aa0_-"),
    Shape("hf_", 30, 0, "Aa0"),
    Shape("npm_", 36, 36, "Aa0"),
    Shape("nvapi-", 40, 0, "Aa0_-"),
    Shape("pypi-", 50, 0, "Aa0_-"),
    Shape("sk-", 20, 0, "Aa0_-", mixed=True),
    Shape("sk_live_", 16, 0, "Aa0"),
    Shape("sk_test_", 16, 0, "Aa0"),
    Shape("rk_live_", 16, 0, "Aa0"),
    Shape("xoxb-", 10, 0, "Aa0-"),
    Shape("xoxp-", 10, 0, "Aa0-"),
)

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER = _UPPER.lower()
_DIGITS = "0123456789"
_NAME = frozenset(_UPPER + _LOWER + _DIGITS + "_.-")
_RUN = re.compile(r"[A-Za-z0-9_.-]+|://")
_BLANKS = frozenset(" \t\n\r")
_PREFIXES = tuple(shape.prefix for shape in SHAPES)
_ENDINGS = (*NAMES, *QUERY_NAMES, *AUTHORIZATION, *COOKIES)
_QUOTES = frozenset("'\"")
_URL_ENDS = frozenset("/?#;\0") | _QUOTES


def shown(text: str, environment: Mapping[str, str] | None = None) -> str:
    """What a command shows: masked, unless DFTRACER_MASK_SECRETS is 0."""
    given = (os.environ if environment is None else environment).get("DFTRACER_MASK_SECRETS", "1")
    return text if given.strip().lower() in ("", "0", "false", "no", "off") else mask(text)


def mask(text: str) -> str:
    """Hides what the tables call secret. Masking twice is the same as masking once.

    Arguments are separated by NUL; in a text without one by `;`, as traces have them, unless a
    blank follows; inside an argument, and in a text without either, by blanks.
    """
    return _Scan(text).masked()


class _Scan:
    """One pass from left to right over the runs of characters that names are made of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = len(text)
        self.nul = "\0" in text
        self.hidden: list[tuple[int, int]] = []  # apart from each other
        self.password = (0, 0)  # the range of the last URL's

    def masked(self) -> str:
        found = _RUN.search(self.text)
        while found is not None:
            begin, at = found.span()
            if self.password[0] <= begin < self.password[1]:
                at = self.password[1]
            elif found.group() == "://":
                self._find_userinfo(at)
            else:
                at = self._run(begin, at)
            found = _RUN.search(self.text, at)
        parts, last = [], 0
        for begin, end in sorted(self.hidden):
            parts += [self.text[last:begin], MASK]
            last = end
        return "".join([*parts, self.text[last:]])

    def _run(self, begin: int, end: int) -> int:
        """Looks at characters of names that stand together; where to go on."""
        word = begin
        while word < end and self.text[word] == "-":
            word += 1
        for shape in SHAPES if self.text.startswith(_PREFIXES, word) else ():
            secret = _match(shape, self.text, word, end)
            if secret:
                self.hidden.append((word + len(shape.prefix), secret))
                return secret
        name = self.text[word:end].lower().replace("_", "-").replace(".", "-")
        if not name.endswith(_ENDINGS):  # most of them, so that long texts take little time
            return end
        value = self._value_of(name, begin, word, end)
        if value is not None and value[0] < value[1]:
            # The name of a user may be a name of ours: password:secret@host.
            if self.password[0] < value[1] and value[0] < self.password[1]:
                return end
            self.hidden.append(value)
            return value[1]
        return end

    def _value_of(self, name: str, begin: int, word: int, end: int) -> tuple[int, int] | None:
        """The range of the secret that a name announces, if it does."""
        before = self.text[begin - 1] if begin > 0 else ""
        after = self.text[end] if end < self.end else ""
        query = before == "?" or before == "&"
        if after == "=":
            if not is_secret_name(name, query=query):
                return None
            whole = begin > 0 and self._separates(begin - 1)
            return self._value(end + 1, query=query, whole=whole)
        at = self._past_colon(end)
        if at:
            if name in AUTHORIZATION:
                return self._authorization(at)
            if name in COOKIES:
                return self._rest(at)
            return self._value(at) if is_secret_name(name) else None
        if word > begin and is_secret_name(name):
            whole = after != "" and self._separates(end)
            at = end
            while at < self.end and (self.text[at] in _BLANKS or (whole and at == end)):
                at += 1
            # An option after it, or nothing: the name was a switch.
            if at == end or at == self.end or self.text[at] == "-":
                return None
            return self._value(at, whole=whole)
        return None

    def _past_colon(self, at: int) -> int:
        """After `name: `, `"name": ` and `"name":"`; 0 if that is not what follows."""
        at = self._past_quote(at)
        if at >= self.end or self.text[at] != ":":
            return 0
        value = at + 1
        while value < self.end and self.text[value] in _BLANKS:
            value += 1
        return value if value > at + 1 or self._past_quote(value) > value else 0

    def _past_quote(self, at: int) -> int:
        quote = at + 1 if self.text.startswith("\\", at) else at
        return quote + 1 if quote < self.end and self.text[quote] in _QUOTES else at

    def _separates(self, at: int) -> bool:
        """Whether this character ends an argument."""
        if self.nul:
            return self.text[at] == "\0"
        follows = self.text[at + 1] if at + 1 < self.end else ""
        return self.text[at] == ";" and follows not in _BLANKS

    def _value(self, at: int, *, query: bool = False, whole: bool = False) -> tuple[int, int]:
        """whole: the value is all of its argument, blanks included."""
        inside = self._past_quote(at)
        if inside > at and not whole:
            close = self.text.find(self.text[at:inside], inside)
            if close >= 0:
                return inside, close
        end = at
        while end < self.end and not self._ends_value(end, query, whole):
            end += 1
        while end > at and not whole and self.text[end - 1] in _QUOTES:
            end -= 1
        return at, end

    def _ends_value(self, at: int, query: bool, whole: bool) -> bool:
        if whole:
            return self._separates(at)
        char = self.text[at]
        return char in _BLANKS or char in ";\0" or (query and char in "&#'\"")

    def _authorization(self, at: int) -> tuple[int, int]:
        at = self._past_quote(at)
        end = at
        while end < self.end and self.text[end] in _NAME:
            end += 1
        value = end
        while value < self.end and self.text[value] in _BLANKS:
            value += 1
        if value > end and self.text[at:end].lower() in SCHEMES:
            at = value
        return self._value(at)

    def _rest(self, at: int) -> tuple[int, int]:
        at = self._past_quote(at)
        end = at
        while end < self.end and not self._separates(end) and self.text[end] not in _QUOTES:
            end += 1
        return at, end

    def _find_userinfo(self, at: int) -> None:
        """scheme://user:password@host"""
        end = at
        while end < self.end and self.text[end] not in _BLANKS | _URL_ENDS:
            end += 1
        host = self.text.rfind("@", at, end)
        colon = self.text.find(":", at, max(host, at))
        if colon >= 0 and colon + 1 < host:
            self.password = (colon + 1, host)
            self.hidden.append(self.password)


def is_secret_name(name: str, *, query: bool = False) -> bool:
    """name: in lower case, with `-` between its parts and not before them."""
    for known in NAMES + QUERY_NAMES if query else NAMES:
        if name == known:
            return True
        if name.endswith("-" + known):
            before = name[: -len(known) - 1].rpartition("-")[2]
            return known != "token" or before not in ORDINARY_BEFORE_TOKEN
    return False


def _match(shape: Shape, text: str, begin: int, end: int) -> int:
    """Where the secret that begins here ends; 0 if there is none."""
    if not text.startswith(shape.prefix, begin, end):
        return 0
    first = begin + len(shape.prefix)
    classes = {"A": _UPPER, "a": _LOWER, "0": _DIGITS}
    alphabet = frozenset("".join(classes.get(char, char) for char in shape.alphabet))
    last = first
    while last < end and text[last] in alphabet:
        last += 1
    size = last - first
    if size < shape.least or (shape.most and size > shape.most):
        return 0
    if last < end and text[last] in _UPPER + _LOWER + _DIGITS:
        return 0
    secret = text[first:last]
    if shape.mixed and not (set(secret) & set(_UPPER) and set(secret) & set(_DIGITS)):
        return 0
    return last
