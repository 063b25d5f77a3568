"""Partial credit for SQL: how much of the gold's schema and wording a statement shares.

These look at the text only and need the gold statement. They parse hostile text within the guard's caps on
length and depth, but without a deadline of their own: call them in a worker.

"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

from guerdon.verify.queries.statement import Dialect, SyntaxProblem, guard, parse

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

Schema = Mapping[str, Collection[str]]
"""Column names by table name."""

MAX_TOKENS = 10_000


def jaccard(left: Collection[Any], right: Collection[Any]) -> float:
    """``|A & B| / |A | B|`` of two sets, in [0, 1]; two empty sets give 1, one empty set 0.

    >>> jaccard({1, 2}, {2, 3}), jaccard(set(), set()), jaccard({1}, set())
    (0.3333333333333333, 1.0, 0.0)
    """
    first, second = set(left), set(right)
    union = first | second
    return len(first & second) / len(union) if union else 1.0


def ngram_similarity(sql: str, gold: str, *, n: int = 2, tokens: Literal["whitespace", "sql"] = "whitespace") -> float:
    """Jaccard similarity of the sets of token n-grams of two statements, lower-cased; in [0, 1].

    ``|G_n(q) & G_n(q*)| / |G_n(q) | G_n(q*)|``, G_n the set of n-grams. Tokens are separated by whitespace,
    or are those of an SQL tokenizer, for which ``age>30`` and ``age > 30`` are the same. A statement of
    fewer than n tokens has the empty set. Only the first 10,000 tokens count. Source: Reasoning-SQL
    (Pourreza et al., 2025, arXiv:2503.23157); n = 2 and the Jaccard form are inferred.

    >>> round(ngram_similarity("select name from users where age >= 30", "select name from users where age > 30"), 6)
    0.555556
    """
    if n < 1:
        raise ValueError(f"n-grams need n >= 1, got {n}")
    split = _sql_tokens if tokens == "sql" else str.split
    grams = []
    for text in (sql, gold):
        words = split(text.lower())[:MAX_TOKENS]
        grams.append({tuple(words[i : i + n]) for i in range(len(words) - n + 1)})
    return jaccard(*grams)


def _sql_tokens(text: str) -> list[str]:
    import sqlglot

    try:
        return [token.text for token in sqlglot.tokenize(text)]
    except sqlglot.errors.SqlglotError:
        return text.split()


def schema_linking(sql: str, gold: str, *, dialect: Dialect = "sqlite", schema: Schema | None = None) -> float | None:
    """Jaccard similarity of the tables and columns that two statements use; in [0, 1].

    ``|S(q) & S(q*)| / |S(q) | S(q*)|`` with S from `schema_items`. A statement that is refused or does not
    parse scores 0; None if that is the gold. Source: Reasoning-SQL (Pourreza et al., 2025,
    arXiv:2503.23157); the Jaccard form is inferred.

    >>> schema_linking("SELECT name FROM users WHERE age >= 30", "select u.name from users u where u.age > 30")
    1.0
    >>> schema_linking("SELECT name FROM users", "SELECT name FROM users WHERE age > 30")
    0.6666666666666666
    """
    wanted = schema_items(gold, dialect=dialect, schema=schema)
    if wanted is None:
        return None
    used = schema_items(sql, dialect=dialect, schema=schema)
    return 0.0 if used is None else jaccard(used, wanted)


def schema_items(sql: str, *, dialect: Dialect = "sqlite", schema: Schema | None = None) -> frozenset[str] | None:
    """The tables (``users``) and columns (``users.age``) a statement uses, lower-cased; None if it does not
    parse.

    Aliases, subqueries and CTEs are looked through. A column without a table prefix belongs to the table of
    ``schema`` that has it, else to the only table in reach, else it is listed as ``?.age``; ``*`` stands
    for all columns of ``schema``'s table, or is listed as ``users.*``.

    >>> sorted(schema_items("WITH t AS (SELECT id FROM users) SELECT COUNT(*) FROM t WHERE id > 3"))
    ['users', 'users.id']

    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    if guard(sql, dialect).refused:
        return None
    known = {table.lower(): {name.lower() for name in names} for table, names in (schema or {}).items()}
    try:
        tree = parse(sql, dialect)
        items: set[str] = set()
        for scope in traverse_scope(tree):
            items |= {source.name.lower() for source in scope.sources.values() if isinstance(source, exp.Table)}
            items |= _shared_columns(scope, known)
            for column in scope.find_all(exp.Column, exp.Star):
                items |= _column_items(column, scope, known)
    except (SyntaxProblem, SqlglotError, RecursionError):
        return None
    return frozenset(items)


def _column_items(column: exp.Expr, scope: Scope, known: Mapping[str, Collection[str]]) -> set[str]:
    from sqlglot import exp

    if isinstance(column, exp.Star):
        if not isinstance(column.parent, exp.Select):  # COUNT(*), or the star of a column that is seen by itself
            return set()
        return {item for table in _tables(scope).values() for item in _all_columns(table, known)}
    name, prefix = (
        column.name.lower(),
        str(column.args["table"].name if column.args.get("table") else "").lower(),
    )
    if isinstance(column.this, exp.Star):
        table = _tables(scope).get(prefix)
        return set(_all_columns(table, known)) if table else set()
    if not prefix:
        return _unqualified(name, scope, known)
    level: Scope | None = scope
    while level is not None:
        source = {alias.lower(): source for alias, source in level.sources.items()}.get(prefix)
        if isinstance(source, exp.Table):
            return {f"{source.name.lower()}.{name}"}
        if source is not None:  # a subquery or CTE: what it reads is seen in its own scope
            return set()
        level = level.parent
    return {f"?.{name}"}


def _unqualified(name: str, scope: Scope, known: Mapping[str, Collection[str]]) -> set[str]:
    from sqlglot import exp

    level: Scope | None = scope
    while level is not None:
        tables = sorted(set(_tables(level).values()))
        owners = [table for table in tables if name in known.get(table, ())]
        if owners:
            return {f"{owners[0]}.{name}"}
        level = level.parent
    if any(
        name in _outputs(source.expression) for source in scope.sources.values() if not isinstance(source, exp.Table)
    ):
        return set()
    if isinstance(scope.expression, exp.Select) and name in _aliases(scope.expression):
        return set()
    tables = sorted(set(_tables(scope).values()))
    return {f"{tables[0]}.{name}" if len(tables) == 1 else f"?.{name}"}


def _outputs(query: exp.Expr) -> set[str]:
    """Names of the columns that a subquery or CTE gives."""
    from sqlglot import exp

    named = query.named_selects if isinstance(query, exp.Query) else []
    renamed = query.parent.alias_column_names if isinstance(query.parent, (exp.CTE, exp.Subquery)) else []
    return {name.lower() for name in (*named, *renamed)}


def _shared_columns(scope: Scope, known: Mapping[str, Collection[str]]) -> set[str]:
    """The columns of JOIN … USING, in the joined table and in the one it joins."""
    from sqlglot import exp

    tables = _tables(scope)
    items: set[str] = set()
    before: list[str] = []
    for alias, table in tables.items():
        joins = [join for join in scope.expression.args.get("joins") or [] if join.alias_or_name.lower() == alias]
        names = [part.name.lower() for join in joins for part in join.args.get("using") or []]
        for name in names:
            owners = [other for other in before if name in known.get(other, ())] or before[-1:]
            items |= {f"{owner}.{name}" for owner in (table, *owners)}
        before.append(table)
    return items if isinstance(scope.expression, exp.Select) else set()


def _aliases(select: exp.Select) -> set[str]:
    """Names a SELECT gives to expressions: an ORDER BY or HAVING that uses one refers to what was already
    seen."""
    from sqlglot import exp

    return {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}


def _tables(scope: Scope) -> dict[str, str]:
    from sqlglot import exp

    return {
        alias.lower(): source.name.lower() for alias, source in scope.sources.items() if isinstance(source, exp.Table)
    }


def _all_columns(table: str, known: Mapping[str, Collection[str]]) -> list[str]:
    return [f"{table}.{name}" for name in known[table]] if table in known else [f"{table}.*"]
