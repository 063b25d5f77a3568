"""Schema linking and n-gram similarity, with worked examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guerdon.verify.queries.partial import jaccard, ngram_similarity, schema_items, schema_linking

GOLD = "select name from users where age > 30"
ALMOST = "select name from users where age >= 30"


def test_the_worked_example_of_reasoning_sql():
    # 7 bigrams each; "age >", "> 30" against "age >=", ">= 30" differ: 5 shared of 9
    assert ngram_similarity(ALMOST, GOLD) == pytest.approx(5 / 9)
    assert schema_linking(ALMOST, GOLD) == 1.0


def test_n_grams_of_other_sizes():
    assert ngram_similarity(ALMOST, GOLD, n=1) == pytest.approx(7 / 9)
    assert ngram_similarity(ALMOST, GOLD, n=3) == pytest.approx(4 / 8)
    assert ngram_similarity("a", "b", n=2) == 1.0
    assert ngram_similarity("a b", "b", n=2) == 0.0
    with pytest.raises(ValueError, match="n >= 1"):
        ngram_similarity("a", "b", n=0)


def test_sql_tokens_do_not_depend_on_spacing():
    assert ngram_similarity("SELECT a FROM t WHERE b>3", "select a from t where b > 3") < 1.0
    assert ngram_similarity("SELECT a FROM t WHERE b>3", "select a from t where b > 3", tokens="sql") == 1.0


ITEMS = [
    ("SELECT name FROM users", {"users", "users.name"}),
    ("SELECT U.Name FROM Users AS U", {"users", "users.name"}),
    ("SELECT COUNT(*) FROM users", {"users"}),
    ("SELECT * FROM users", {"users", "users.*"}),
    ("SELECT u.* FROM users u, pets", {"users", "users.*", "pets"}),
    ("SELECT MAX(x) FROM (SELECT age AS x FROM users)", {"users", "users.age"}),
    ("WITH t AS (SELECT id FROM users) SELECT COUNT(*) FROM t WHERE id > 3", {"users", "users.id"}),
    ("WITH t(k) AS (SELECT id FROM users) SELECT k FROM t", {"users", "users.id"}),
    ("SELECT a FROM t UNION SELECT b FROM u", {"t", "t.a", "u", "u.b"}),
    ("SELECT n.a FROM t AS n WHERE EXISTS (SELECT 1 FROM u WHERE u.k = n.k)", {"t", "t.a", "t.k", "u", "u.k"}),
    ("SELECT a FROM t JOIN u USING (k)", {"t", "u", "t.k", "u.k", "?.a"}),
    ("SELECT age AS x FROM users ORDER BY x", {"users", "users.age"}),
    ("SELECT `Free Meal (K-12)` FROM frpm", {"frpm", "frpm.free meal (k-12)"}),
    ("VALUES (1)", set()),
]


@pytest.mark.parametrize(("sql", "items"), ITEMS)
def test_the_tables_and_columns_a_statement_uses(sql, items):
    assert schema_items(sql) == items


def test_a_schema_settles_whose_column_it_is():
    schema = {"Users": ["name", "age"], "pets": ["kind"]}
    assert schema_items("SELECT name, kind FROM users, pets", schema=schema) == {
        *("users", "pets", "users.name", "pets.kind")
    }
    assert schema_items("SELECT * FROM users", schema=schema) == {"users", "users.name", "users.age"}


LINKING = [
    (GOLD, GOLD, 1.0),
    ("SELECT name FROM users", GOLD, 2 / 3),
    ("SELECT kind FROM pets", GOLD, 0.0),
    ("SELECT name FROM", GOLD, 0.0),
    ("DROP TABLE users", GOLD, 0.0),
    (GOLD, "DROP TABLE users", None),
    (GOLD, "SELECT FROM WHERE", None),
    ("SELECT 1", "SELECT 2", 1.0),
    (GOLD, "SELECT 2", 0.0),
]


@pytest.mark.parametrize(("sql", "gold", "score"), LINKING)
def test_schema_linking_scores(sql, gold, score):
    assert schema_linking(sql, gold) == (None if score is None else pytest.approx(score))


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_jaccard_is_symmetric_bounded_and_one_only_for_equal_sets(left, right):
    score = jaccard(left, right)
    assert score == jaccard(right, left)
    assert 0.0 <= score <= 1.0
    assert (score == 1.0) == (left == right)
