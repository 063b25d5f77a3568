"""Take the SQL out of a completion, and let through one read-only statement and nothing else."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from guerdon.core.errors import MissingExtraError

if TYPE_CHECKING:
    from sqlglot import exp

Dialect = Literal["sqlite", "duckdb", "postgres"]

MAX_COMPLETION = 200_000
MAX_STATEMENT = 20_000
MAX_DEPTH = 60

_FENCE = re.compile(r"```[ \t]{0,4}([A-Za-z0-9_+-]{0,20})[^\n]{0,80}\n(.*?)(?:```|\Z)", re.DOTALL)
_SQL_FENCES = frozenset({"sql", "sqlite", "postgresql", "postgres", "duckdb", "mysql"})
_ELEMENTS = ("answer", "sql")
_QUERY = r"(?:select\b|values\s{0,9}\(|with\s{1,9}(?:recursive\s{1,9})?[\w\"`\[]{1,80}\s{0,9}(?:\(|as\b))"
_QUERY_START = re.compile(_QUERY, re.I)
_QUERY_LINE = re.compile(r"^[ \t]{0,40}" + _QUERY, re.I | re.M)
_OTHER_START = re.compile(
    r"(?:with|from|table|explain|insert|update|delete|merge|replace|create|drop|alter|attach|detach|pragma|copy|install|load|"
    r"set|reset|use|begin|commit|rollback|vacuum|analyze|truncate|grant|revoke|call|do|show|describe|export|import)\b",
    re.I,
)


@dataclass(frozen=True)
class Extraction:
    """The SQL found in a completion: the text (None if there is none), how it was found, how many
    candidates."""

    sql: str | None
    how: str
    candidates: int


def extract_sql(completion: str) -> Extraction:
    """Find the SQL statement a chat completion gives as its answer.

    Text up to the last ``</think>`` is left out. Then the first of these that is there: the last fence
    tagged as SQL, the last ``<answer>`` or ``<sql>`` element (a fence inside it counts), the last other
    fence that starts like a query, the whole text if it starts like a query, the first line that starts
    like one (up to a blank line), the whole text if it starts like any other statement. Only the last
    200,000 characters count.

    >>> extract_sql("It is this:\\n```sql\\nSELECT 1;\\n```")
    Extraction(sql='SELECT 1;', how='fence', candidates=1)
    >>> extract_sql("I do not know").sql is None
    True

    """
    text = completion[-MAX_COMPLETION:].rpartition("</think>")[2]
    fences = [(tag.lower(), body.strip()) for tag, body in _FENCE.findall(text)]
    tagged = [body for tag, body in fences if tag in _SQL_FENCES]
    if tagged:
        return Extraction(tagged[-1] or None, "fence", len(tagged))
    element = _last_element(text)
    if element is not None:
        body, count = element
        inner = [fenced.strip() for _, fenced in _FENCE.findall(body)]
        return Extraction((inner[-1] if inner else body) or None, "tag", count)
    other = [body for _, body in fences if _QUERY_START.match(body, _first_token(body))]
    if other:
        return Extraction(other[-1], "untagged fence", len(other))
    return _bare(text)


def _bare(text: str) -> Extraction:
    start = _first_token(text)
    if _QUERY_START.match(text, start):
        return Extraction(text.strip(), "bare", 1)
    line = _QUERY_LINE.search(text)
    if line is not None:
        tail = text[line.start() :].strip()
        return Extraction(re.split(r"\n\s*\n", tail, maxsplit=1)[0].strip(), "line", 1)
    if _OTHER_START.match(text, start):
        return Extraction(text.strip(), "bare", 1)
    return Extraction(None, "none", 0)


def _last_element(text: str) -> tuple[str, int] | None:
    """The body of the last answer element and how many there are; a cut-off completion may leave it open."""
    opened = [(text.rfind(f"<{name}>"), name) for name in _ELEMENTS]
    at, name = max(opened)
    if at < 0:
        return None
    body = text[at + len(name) + 2 :].partition(f"</{name}>")[0]
    return body.strip(), sum(text.count(f"<{name}>") for name in _ELEMENTS)


def _first_token(sql: str) -> int:
    """Where the first token after spaces, comments and opening brackets begins."""
    at = 0
    while at < len(sql):
        if sql.startswith("--", at):
            at = sql.find("\n", at)
        elif sql.startswith("/*", at):
            closed = sql.find("*/", at + 2)
            at = closed + 2 if closed >= 0 else -1
        elif sql[at].isspace() or sql[at] == "(":
            at += 1
        else:
            return at
        if at < 0:
            break
    return len(sql)


def _first_word(sql: str) -> str:
    words = sql[_first_token(sql) :].split(maxsplit=1)
    return words[0][:20].upper() if words else "nothing"


@dataclass(frozen=True)
class Guarded:
    """What the guard says about one statement.

    ``refused`` is the reason it may not run (None: it may). ``syntax`` tells a parse failure, which on
    SQLite is left to SQLite's own parser, from a refusal. ``reads`` says whether any table is read.

    """

    sql: str
    refused: str | None = None
    syntax: bool = False
    reads: bool = True


@lru_cache(maxsize=4096)
def guard(sql: str, dialect: Dialect = "sqlite") -> Guarded:
    """Check that ``sql`` is exactly one read-only statement of the dialect.

    Checked on the text first (length, NUL bytes, bracket depth, nested comments), so that the parser meets
    nothing it could choke on, then on the whole syntax tree: the root is a SELECT, a set operation or
    VALUES, and no node anywhere writes, defines, configures, locks or calls out. Run it where a deadline
    holds: parse time is bounded by the length cap only.

    >>> guard("WITH t AS (DELETE FROM users RETURNING *) SELECT * FROM t", "postgres").refused
    'refused: DELETE is not read-only'
    >>> guard("SELECT 1; DROP TABLE users").refused
    'refused: 2 statements, exactly one is allowed'
    >>> guard("SELECT name FROM users;").refused is None
    True

    """
    reason = _lexical_refusal(sql)
    if reason:
        return Guarded(sql, "refused: " + reason)
    try:
        tree = parse(sql, dialect)
    except SyntaxProblem as problem:
        if problem.syntax and not _QUERY_START.match(sql, _first_token(sql)):
            return Guarded(sql, f"refused: {_first_word(sql)} is not a SELECT statement")
        return Guarded(sql, str(problem), syntax=problem.syntax)
    nodes = list(tree.walk())
    refused = _tree_refusal(nodes, dialect) or _root_refusal(tree, sql)
    if refused:
        return Guarded(sql, "refused: " + refused)
    return Guarded(sql.strip().rstrip(";").rstrip(), reads=_reads_table(nodes))


class SyntaxProblem(ValueError):
    """A statement that could not be parsed (``syntax``), or that is not one statement."""

    def __init__(self, message: str, *, syntax: bool) -> None:
        super().__init__(message)
        self.syntax = syntax


@lru_cache(maxsize=128)
def parse(sql: str, dialect: Dialect) -> exp.Expr:
    """Parse exactly one statement with sqlglot; SyntaxProblem says what was wrong. Copy the tree to change it."""
    sqlglot = _sqlglot()
    try:
        trees = [tree for tree in sqlglot.parse(sql, read=dialect) if tree is not None]
    except RecursionError as error:
        raise SyntaxProblem("refused: nested too deeply to parse", syntax=False) from error
    except sqlglot.errors.SqlglotError as error:
        first = re.sub(r"\x1b\[\d+m", "", str(error)).splitlines()[0][:200]
        raise SyntaxProblem(f"syntax error: {first}", syntax=True) from error
    trees = [tree for tree in trees if not isinstance(tree, sqlglot.exp.Semicolon)]
    if len(trees) != 1:
        count = "no statement" if not trees else f"{len(trees)} statements"
        raise SyntaxProblem(f"refused: {count}, exactly one is allowed", syntax=False)
    tree: exp.Expr = trees[0]
    return tree


@lru_cache(maxsize=1)
def _sqlglot() -> ModuleType:
    try:
        import sqlglot
    except ImportError as error:
        raise MissingExtraError("sqlglot, which SQL rewards need,", "sql") from error
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns on stderr about each unusual statement
    return sqlglot


def _lexical_refusal(sql: str) -> str | None:
    if len(sql) > MAX_STATEMENT:
        return f"statement of {len(sql)} characters, at most {MAX_STATEMENT} are allowed"
    if "\0" in sql:
        return "NUL character in the statement"
    deepest = _deepest(sql) if sql.count("(") + sql.count("[") > MAX_DEPTH else 0
    if deepest > MAX_DEPTH:
        return f"brackets nested {deepest} deep, at most {MAX_DEPTH} are allowed"
    if re.search(r"/\*(?:(?!\*/).)*?/\*", sql, re.S):  # dialects differ on whether comments nest
        return "comment opened inside a comment"
    return None


def _deepest(sql: str) -> int:
    depth = deepest = 0
    for char in sql:
        if char in "([":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]":
            depth -= 1
    return deepest


# Node classes of the parser, those that this version of it has.
_WRITE_NODES = """
    Insert Update Delete Merge Create Drop Alter TruncateTable Attach Detach Pragma Command Copy Set Use
    Transaction Commit Rollback Install Into Lock Show Describe Kill Cache Uncache Refresh Analyze
    Export LoadData Grant Revoke Comment Declare Execute Summarize
"""
_RANDOM_NAMES = """
    random rand randomblob uuid gen_random_uuid uuidv4 uuidv7 gen_random_bytes setseed random_normal
    nextval currval lastval txid_current
"""
_CLOCK_NAMES = """
    now current_timestamp current_date current_time localtime localtimestamp current_datetime today
    timeofday get_current_timestamp get_current_time transaction_timestamp statement_timestamp
    clock_timestamp
"""
_SERVER_NAMES = """
    set_config current_setting table_to_xml cursor_to_xml dblink getenv version glob getvariable query query_table
"""
_WRITES = frozenset(_WRITE_NODES.split())
_NONDETERMINISTIC = frozenset(_RANDOM_NAMES.split())
_CLOCK = frozenset(_CLOCK_NAMES.split())
_SERVER = frozenset(_SERVER_NAMES.split())
_SERVER_PREFIXES = (
    *("pg_", "lo_", "dblink", "read_", "duckdb_", "pragma_", "sniff_"),
    *("has_", "inet_", "query_to_", "schema_to_", "database_to_", "parquet_", "which_"),
)
_SERVER_ALLOWED = frozenset({"pg_typeof"})
_CATALOGUES = ("information_schema.", "pg_catalog.", "system.")
_CATALOGUE_TABLES = ("pg_", "sqlite_", "duckdb_", "pragma_")


def _tree_refusal(nodes: list[exp.Expr], dialect: Dialect) -> str | None:
    for node in nodes:
        kind = type(node).__name__
        if kind in _WRITES:
            name = node.name if kind == "Command" else node.key
            return f"{name.upper()[:20]} is not read-only"
        reason = None if dialect == "sqlite" else _server_refusal(node)
        if reason:
            return reason
    return None


def _root_refusal(tree: exp.Expr, sql: str) -> str | None:
    exp = _sqlglot().exp
    root = tree.unnest() if isinstance(tree, exp.Subquery) else tree
    if not isinstance(root, (exp.Select, exp.SetOperation, exp.Values)):
        return f"{_first_word(sql)} is not a SELECT statement"
    empty = isinstance(root, exp.Select) and not root.expressions
    if empty and not root.args.get("from_", root.args.get("from")):
        return "SELECT without anything to select"
    return None


def _server_refusal(node: exp.Expr) -> str | None:
    """Why a node may not be used on DuckDB or PostgreSQL; SQLite's authorizer does this by allow-lists."""
    exp = _sqlglot().exp
    if isinstance(node, exp.Table):
        place = f"{node.db}.{node.name}".lower()
        hidden = place.startswith(_CATALOGUES) or node.name.lower().startswith(_CATALOGUE_TABLES)
        return f"table {node.name} is not readable" if hidden else None
    if not isinstance(node, exp.Func):
        return None
    lowered = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
    if lowered in _NONDETERMINISTIC:
        return f"{lowered}() is not deterministic"
    if lowered in _CLOCK:
        return f"{lowered}() reads the clock"
    if lowered in _SERVER or (lowered.startswith(_SERVER_PREFIXES) and lowered not in _SERVER_ALLOWED):
        return f"{lowered}() reaches the server or the host"
    return None


def _reads_table(nodes: list[exp.Expr]) -> bool:
    exp = _sqlglot().exp
    tables = {node.name.lower() for node in nodes if isinstance(node, exp.Table)}
    return bool(tables - {node.alias_or_name.lower() for node in nodes if isinstance(node, exp.CTE)})
