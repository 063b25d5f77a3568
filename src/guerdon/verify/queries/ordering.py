"""Which rows of an ordered gold result are tied: a second query that adds the rank of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from guerdon.verify.queries.compare import Expected, Row
from guerdon.verify.queries.statement import Dialect, guard, parse

if TYPE_CHECKING:
    from sqlglot import exp

_RANK = "guerdon_rank"


@dataclass(frozen=True)
class Ranking:
    """How to learn the ties of an ordered query.

    ``queries()`` are tried in turn: each gives the rows of the query without LIMIT, with the dense rank of
    the row under the query's ORDER BY as a last column. ``offset`` and ``limit`` say which of them the
    query returns; limit None: all.

    """

    queries: Callable[[], Iterator[str]]
    offset: int = 0
    limit: int | None = None

    @property
    def until(self) -> int | None:
        """How many rows of the ranked query matter, before the end of the last tie."""
        return None if self.limit is None else self.offset + self.limit


def ranking(sql: str, dialect: Dialect, columns: int) -> Ranking | None:
    """The ranked form of a query with a top-level ORDER BY; None if the query has none.

    ``columns`` is the number of columns of its result. A LIMIT that is not a whole number leaves
    ``queries()`` empty: the query is ordered, and its ties can't be known.

    >>> ranking("SELECT name FROM users", "sqlite", 1) is None
    True
    >>> ranking("SELECT name FROM users ORDER BY age LIMIT 3", "sqlite", 1).limit
    3

    """
    from sqlglot import exp

    if "order" not in sql.lower() or guard(sql, dialect).refused:
        return None
    tree = parse(sql, dialect)
    if isinstance(tree, exp.Subquery) and not tree.args.get("order"):
        tree = tree.unnest()
    order = tree.args.get("order")
    if order is None:
        return None
    limit, offset = _whole(tree.args.get("limit")), _whole(tree.args.get("offset"))
    if limit == "unknown" or offset == "unknown":
        return Ranking(lambda: iter(()))
    return Ranking(
        partial(_queries, tree, dialect, columns),
        int(offset or 0),
        None if limit is None or int(limit) < 0 else int(limit),
    )


def _queries(tree: exp.Expr, dialect: Dialect, columns: int) -> Iterator[str]:
    """The ranked forms of a query, made as they are asked for: with the rank added, and wrapped."""
    from sqlglot import exp

    bare = tree.copy()
    for part in ("order", "limit", "offset"):
        bare.set(part, None)
    if isinstance(tree, exp.Select) and not tree.args.get("distinct"):
        added = _added(bare, tree)
        if added is not None:
            yield added.sql(dialect=dialect)
    wrapped = _wrapped(bare, tree, columns)
    if wrapped is not None:
        yield wrapped.sql(dialect=dialect)


def expected_result(plain: tuple[Row, ...], columns: int, ranked: tuple[Row, ...], plan: Ranking) -> Expected | None:
    """The gold result as ordered blocks of tied rows; None if the ranked rows don't fit the plain result."""
    blocks: list[tuple[int, tuple[Row, ...]]] = []
    at, stop = 0, plan.offset + len(plain)
    for _, group in groupby(ranked, key=lambda row: row[-1]):
        pool = tuple(row[:-1] for row in group)
        take = min(at + len(pool), stop) - max(at, plan.offset)
        if take > 0:
            blocks.append((take, pool))
        at += len(pool)
    found = Expected(tuple(blocks), columns, ordered=True)
    return found if found.rows == len(plain) else None


def _whole(node: exp.Expr | None) -> int | str | None:
    """The number in a LIMIT or OFFSET clause: None if absent, "unknown" if it is not a literal whole
    number."""
    from sqlglot import exp

    if node is None:
        return None
    value = node.args.get("expression") or node.args.get("count")
    sign = 1
    if isinstance(value, exp.Neg):
        sign, value = -1, value.this
    if isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
        return sign * int(value.name)
    return "unknown"


def _added(bare: exp.Expr, tree: exp.Select) -> exp.Expr | None:
    """The query itself with the rank as one more column: its keys may be anything its ORDER BY may be."""
    keys = [_resolved(key, tree) for key in tree.args["order"].expressions]
    if any(key is None for key in keys):
        return None
    query = bare.copy()
    query.append("expressions", _rank([key for key in keys if key is not None]))
    return _by_rank(query)


def _resolved(key: exp.Expr, tree: exp.Select) -> exp.Expr | None:
    """A sort key without references to output columns, which a window's ORDER BY does not know."""
    from sqlglot import exp

    named = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
    copied = key.copy()
    inner = copied.this if isinstance(copied, exp.Ordered) else copied
    if isinstance(inner, exp.Literal) and not inner.is_string:
        chosen = _projection(tree, inner.name)
        if chosen is None:
            return None
        inner.replace(chosen.copy())
        return copied

    def expand(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in named:
            return exp.paren(named[node.name.lower()].copy())
        return node

    return copied.transform(expand)


def _projection(tree: exp.Select, ordinal: str) -> exp.Expr | None:
    from sqlglot import exp

    position = int(ordinal) - 1 if ordinal.isdigit() else -1
    items = tree.expressions
    if not 0 <= position < len(items) or any(item.is_star for item in items[: position + 1]):
        return None
    item = items[position]
    chosen: exp.Expr = item.this if isinstance(item, exp.Alias) else item
    return chosen


def _wrapped(bare: exp.Expr, tree: exp.Expr, columns: int) -> exp.Expr | None:
    """The query as a subquery whose columns are c0, c1, …: for DISTINCT and set operations."""
    from sqlglot import exp

    names = _output_names(tree)
    keys = []
    for key in tree.args["order"].expressions:
        inner = key.this if isinstance(key, exp.Ordered) else key
        moved = _moved(inner, names, columns)
        if moved is None:
            return None
        copied = key.copy()
        (copied.this if isinstance(copied, exp.Ordered) else copied).replace(moved)
        keys.append(copied)
    outer = [exp.column(f"c{position}") for position in range(columns)]
    alias = exp.TableAlias(this=exp.to_identifier("g"), columns=[exp.to_identifier(f"c{i}") for i in range(columns)])
    query = exp.select(*outer, _rank(keys)).from_("g")
    query.set("with_", exp.With(expressions=[exp.CTE(this=bare.copy(), alias=alias)]))
    return _by_rank(query)


def _output_names(tree: exp.Expr) -> list[str]:
    """Names of the output columns (the text of unnamed ones), from the leftmost SELECT; empty if a star
    hides them."""
    from sqlglot import exp

    while isinstance(tree, exp.SetOperation):
        tree = tree.this
    if isinstance(tree, exp.Subquery):
        tree = tree.unnest()
    items = tree.expressions if isinstance(tree, exp.Select) else []
    if any(item.is_star for item in items):
        return []
    return [(item.alias_or_name or item.sql()).lower() for item in items]


def _moved(key: exp.Expr, names: list[str], columns: int) -> exp.Expr | None:
    """A sort key said in terms of the columns c0, c1, …; None if it uses anything else."""
    from sqlglot import exp

    if isinstance(key, exp.Literal) and not key.is_string:
        ordinal = int(key.name) - 1 if key.name.isdigit() else -1
        return exp.column(f"c{ordinal}") if 0 <= ordinal < columns else None
    if key.sql().lower() in names:
        return exp.column(f"c{names.index(key.sql().lower())}")
    if any(column.name.lower() not in names for column in key.find_all(exp.Column)):
        return None

    def rename(node: exp.Expr) -> exp.Expr:
        return exp.column(f"c{names.index(node.name.lower())}") if isinstance(node, exp.Column) else node

    return key.copy().transform(rename)


def _rank(keys: list[exp.Expr]) -> exp.Expr:
    from sqlglot import exp

    window = exp.Window(this=exp.Anonymous(this="DENSE_RANK"), order=exp.Order(expressions=[k.copy() for k in keys]))
    return exp.alias_(window, _RANK)


def _by_rank(query: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    query.set("order", exp.Order(expressions=[exp.Ordered(this=exp.column(_RANK))]))
    return query
