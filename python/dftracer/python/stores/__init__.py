"""Object stores in the trace: the requests of the libraries that programs read them with.

`dftracer run` records them without a change of the program. A program that starts its trace itself
sets DFTRACER_STORES=1, or calls `install()`. `request()` records the requests of any other client.
docs/howto/object-stores.md lists the libraries and what is recorded of each.
"""

from __future__ import annotations

from dftracer.python._switch import ON

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from dftracer.python.stores._request import Nothing, Request

__all__ = ["install", "remove", "request"]


def install() -> bool:
    """Record the requests of every known library from now on; False if nothing can be recorded."""
    if not ON:
        return False
    from dftracer import _stores

    _stores.watch()
    return True


def remove() -> None:
    """Restore the functions of the libraries."""
    if not ON:
        return
    from dftracer import _stores
    from dftracer.python.stores import _libraries

    _stores.forget()
    _libraries.restore()


def request(
    operation: str,
    store: str,
    bucket: str | None = None,
    key: str | None = None,
    *,
    host: str | None = None,
    offset: int | None = None,
    size: int | None = None,
) -> Request | Nothing:
    """One request, as a context manager: `with request("GetObject", "s3", bucket, key) as it:`.

    Tell it what happens: `it.first_byte()`, `it.delivered(count)`, `it.status = 200`,
    `it.retries = 1`. Query strings are cut off from keys and hosts.
    """
    from dftracer.python.stores._request import begin, host_of, without_query

    return begin(
        operation,
        store,
        bucket=bucket,
        key=without_query(key) if key is not None else None,
        host=host_of(f"x://{host}") if host is not None else None,
        offset=offset,
        size=size,
    )
