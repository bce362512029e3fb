"""Which columns of `events` a statement uses, so that the reader produces no others."""

from __future__ import annotations

from typing import Any

from dftracer.trace.stream import COLUMNS

# Parts of a statement that use no column without naming it.
_PLAIN_TABLES = ("BASE_TABLE", "JOIN", "SUBQUERY", "EMPTY", "EXPRESSION_LIST")
_PLAIN_NODES = ("SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE")


def columns_for(sql: str) -> tuple[str, ...] | None:
    """The columns that a statement may use, as DuckDB parses it; None if it may use any."""
    import json

    import duckdb

    try:
        with duckdb.connect() as parser:
            row = parser.execute("select json_serialize_sql(?)", [sql]).fetchone()
        tree = json.loads(row[0]) if row else {}
    except (duckdb.Error, ValueError):
        return None
    if tree.get("error", True):  # not a plain SELECT
        return None
    named: set[str] = set()
    fields: set[str] = set()
    tables: set[str] = set()
    if not _walk(tree["statements"], named, fields, tables):
        return None
    # The name of a table in place of a column means a whole row.
    if named & tables:
        return None
    return tuple(name for name in COLUMNS if name in named | fields) or ("id",)


def _walk(tree: Any, named: set[str], fields: set[str], tables: set[str]) -> bool:
    """Collects the names of columns, of structs with fields, and of tables.

    False if the statement may use any column.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
            continue
        if not isinstance(node, dict):
            continue
        kind, what = node.get("class"), node.get("type")
        if kind in ("STAR", "POSITIONAL_REFERENCE") or node.get("ref_type") == "NATURAL":
            return False
        if kind == "COLUMN_REF":
            # `a.b` is a column of a table, or a field of a column; the table does not matter.
            first, *others = (str(name).lower() for name in node["column_names"])
            named.update(others)
            (fields if others else named).add(first)
            continue
        for key in ("from_table", "left", "right"):
            part = node.get(key)
            if isinstance(part, dict) and "class" not in part:
                if part.get("type") not in (*_PLAIN_TABLES, *_PLAIN_NODES):
                    return False
                if part.get("column_name_alias"):  # columns by position
                    return False
        if what in _PLAIN_TABLES:
            tables.update(str(node.get(key) or "").lower() for key in ("alias", "table_name"))
        named.update(str(name).lower() for name in node.get("using_columns") or ())
        tables.update(
            str(entry.get("key")).lower()
            for entry in (node.get("cte_map") or {}).get("map", ())
            if isinstance(entry, dict)
        )
        for key, value in node.items():
            # `order by all` uses the columns of the result.
            if key == "orders" and isinstance(value, list):
                value = [one for one in value if _star_of(one) is None]
            if isinstance(value, (dict, list)):
                waiting.append(value)
    return True


def _star_of(order: Any) -> Any:
    inner = order.get("expression") if isinstance(order, dict) else None
    return inner if isinstance(inner, dict) and inner.get("class") == "STAR" else None
