"""Rules about connections. Their shares are of the time of the processes that do the work."""

from __future__ import annotations

from dftracer._format import counted, duration, size
from dftracer.reports.findings.facts import IO_FLOOR, Case, Facts, Rule, shown_path, sum_of

FEW = 20  # connections: fewer are not a pattern
# Calls that send, per connection, of one that was made for a single request: its head, its body,
# and what TLS exchanges before.
SENDS = 4
LOOKUPS = ("getaddrinfo", "gethostbyname", "gethostbyaddr", "getnameinfo")


def _case(facts: Facts, title: str, evidence: str, taken: int) -> Case:
    """Summed durations are scaled to wall-clock time: many calls may be open at once."""
    layers = [row for row in facts.tables["layers"] if row["cat"] in ("NET", "NET local")]
    union, every = sum_of(layers, "union_ns"), sum_of(layers, "total_ns")
    scaled = every > union
    concerns = taken * union // every if scaled else taken
    whole = facts.lifetime(lambda process: process["role"] != "helper")
    base = f"of the {duration(whole)} that processes took"
    return Case(title, evidence, min(concerns, whole), whole, base=base, estimated=scaled)


def reconnects(facts: Facts) -> Case | None:
    """Connections that were each made for a request."""
    rows = [
        row
        for row in facts.tables["connections"]
        if row["peer"].startswith("tcp://")
        and row["connections"] >= FEW
        and 0 < row["sends"] < SENDS * row["connections"]
    ]
    if not rows or not facts.exposed:
        return None
    most = max(rows, key=lambda row: row["connect_ns"])
    taken, count = sum_of(rows, "connect_ns"), sum_of(rows, "connections")
    return _case(
        facts,
        f"{counted(count, 'connection')} were made for about one request each",
        f"connecting took {duration(taken)}; most to {shown_path(most['peer'])}: "
        f"{counted(most['connections'], 'connection')}, {duration(most['connect_ns'])}, for "
        f"{size(most['sent_bytes'])} sent and {size(most['received_bytes'])} received",
        taken,
    )


def host_lookups(facts: Facts) -> Case | None:
    rows = [
        row
        for row in facts.tables["calls"]
        if row["cat"] == "NET" and row["name"].startswith(LOOKUPS)
    ]
    taken = sum_of(rows, "total_ns")
    if not taken or not facts.exposed:
        return None
    count, longest = sum_of(rows, "count"), max(row["max_ns"] for row in rows)
    return _case(
        facts,
        f"Looking up the addresses of hosts took {duration(taken)}",
        f"{counted(count, 'look-up')}, {duration(taken / count)} each on average, the longest "
        f"{duration(longest)}",
        taken,
    )


RULES = (
    Rule(
        "reconnects",
        reconnects,
        (0.03, 0.10, 0.25),
        "keep connections open and use them again: a session or a pool of the client library "
        "(requests.Session, urllib3.PoolManager, one client object instead of one per request)",
        IO_FLOOR,
    ),
    Rule(
        "host-lookups",
        host_lookups,
        (0.03, 0.10, 0.25),
        "look up an address once and keep it or the connection, or run a cache of names on the "
        "host (nscd, systemd-resolved)",
        IO_FLOOR,
    ),
)
