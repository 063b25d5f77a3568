"""No solution is graded as right without being right, whichever way the verdict comes about."""

from __future__ import annotations

import json
import statistics

import pytest

from guerdon.backends.sandbox import describe_isolation
from guerdon.verify.programs import check_code, check_code_many
from guerdon.verify.programs.attacks import CHANNELS, Fake, fakes, run_fake_suite, run_trials, trial_tasks, trials

pytestmark = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)


def _misjudged(corpus, channels=None):
    return {
        (one.name, one.channel): (one.passed, one.reason)
        for one in run_fake_suite(corpus, channels, seconds=2.0)
        if not one.held
    }


@pytest.mark.parametrize("channel", sorted(CHANNELS))
def test_every_fake_fails_and_every_honest_solution_passes(channel):
    assert len([fake for fake in fakes() if not fake.should_pass]) >= 55
    assert _misjudged(fakes(), {channel: CHANNELS[channel]}) == {}


def test_every_trial_is_judged_rightly_and_no_honest_one_is_accused():
    honest = [trial for trial in trials() if trial.should_pass]
    assert len(honest) >= 125
    assert len(trials()) - len(honest) >= 170
    misjudged = {
        (one.channel, one.name): (one.passed, one.reason, one.tampering)
        for one in run_trials(seconds=4.0)
        if not one.held
    }
    assert misjudged == {}


def test_after_each_fake_an_honest_program_passes_at_once():
    tasks, honest = trial_tasks(), ("def add(a, b): return a + b", CHANNELS["cases"])
    pairs = [
        pair for trial in trials() if not trial.should_pass for pair in ((trial.program, tasks[trial.task]), honest)
    ]
    after = check_code_many(pairs, seconds=1.0)[1::2]
    assert {verdict.passed for verdict in after} == {True}
    assert statistics.median(verdict.cpu_seconds for verdict in after) < 0.1


def test_the_published_fakes_fail_on_every_channel(shared_data):
    rows = map(json.loads, (shared_data / "sandbox" / "programs.jsonl").read_text().splitlines())
    corpus = [Fake(row["name"], row["program"], row["should_pass"]) for row in rows if row["kind"] == "fake"]
    assert len(corpus) == 10
    assert _misjudged(corpus) == {}


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        ("import os; os._exit(0)", "ended the process (exit code 0) with 4 calls unanswered"),
        (
            "import sys\ndef add(a, b):\n    return sys._getframe(1).f_locals.get('expected')",
            "looked at stack frames (sys._getframe)",
        ),
        (
            "import gc\ndef add(a, b):\n    return len(gc.get_objects())",
            "walked the interpreter's objects (gc.get_objects)",
        ),
        ("import math\nmath.isclose = lambda *a, **k: True\ndef add(a, b): return 0", "replaced math.isclose"),
        (
            "class E:\n    def __eq__(self, other): return True\ndef add(a, b): return E()",
            "defines __eq__ as always true",
        ),
        (
            "def add(a, b):\n    try: return int(open('/root/answers.txt').read())\n    except OSError: return 0",
            "opened /root/answers.txt",
        ),
        (
            "import os\nos.write(4, b'PASS\\n')\ndef add(a, b): return 0",
            "wrote something of its own to the reply channel",
        ),
        (
            "import subprocess\ntry: subprocess.run(['id'])\nexcept OSError: pass\ndef add(a, b): return 0",
            "tried to start a program",
        ),
        (
            "def add(a, b):\n    if (a, b) == (10, -4): return 6\n    if (a, b) == (7, 8): return 15\n"
            "    if (a, b) == (2, 3): return 5",
            "special-cases 3 of 3 visible tests",
        ),
    ],
)
def test_tampering_is_reported_as_evidence(program, seen):
    assert seen in check_code(program, CHANNELS["cases"], seconds=2.0).tampering


def test_honest_code_is_not_accused():
    honest = "from collections import namedtuple\nPair = namedtuple('Pair', 'a b')\n"
    honest += "def add(a, b):\n    p = Pair(a, b)\n    return p.a + p.b"
    verdict = check_code(honest, CHANNELS["cases"])
    assert verdict.passed is True
    assert verdict.tampering == []


FORGED = [
    '{"id":0,"value":[{"exception":["a\\u0000b"]}]}',
    '{"id":0,"value":[{"exception":"x"}]}',
    '{"id":0,"value":["value"]}\n{"id":1,"raised":{"types":["ValueError"],"text":"x"}}',
    '{"id":0,"value":["value"]}\n{"id":1,"value":7}',
    '{"id":0,"value":["async"]}',
    '{"id":0,"value":[["function"]]}',
    '{"id":0,"value":[]}',
    '{"id":0,"value":{"a":1,"b":2}}',
    '{"id":0,"raised":{"types":["SystemExit"],"text":1}}',
    '{"id":0,"raised":7}',
    '{"id":0}',
    '{"id":true,"value":["function"]}',
    '{"load":[]}',
    "null",
    '{"id":0,"value":["function"]}\n{"id":1,"value":5,"changed":{"9":1}}',
    '{"id":0,"value":["function"]}\n{"id":1,"value":5,"changed":{"0":1}}',
    '{"id":0,"value":["function"]}\n{"id":1,"value":{"Decimal":"1e99999999"}}',
    '{"id":0,"value":["function"]}\n{"id":1,"value":{"range":[0,1000000000000000000,1]}}',
    '{"id":0,"value":["function"]}\n{"id":1,"raised":{"types":["UnicodeDecodeError"],"text":"x"}}',
    '{"id":0,"value":["function"]}\n{"id":1,"raised":{"types":["X","ExceptionGroup"],"text":"x"}}',
    '{"id":0,"value":["function"]}\n{"id":1,"raised":{"types":["ExceptionGroup"],"text":"x","args":["m",[]]}}',
    '{"id":0,"value":["function"]}\n{"id":1,"raised":{"types":["unittest.case.SkipTest","Exception"],"text":"x"}}',
    '{"id":0,"value":["function"]}\n{"id":1,"raised":{"types":["json.decoder.JSONDecodeError"],"text":"x","args":[]}}',
    '{"id":0,"value":["function"]}\n{"id":1,"value":0,"same":0}',
    '{"id":0,"value":["function"]}\n{"id":1,"value":{"handle":{"number":0,"type":"int","plain":{"x":1}}}}',
    '{"id":0,"value":["function"]}\n{"id":1,"value":{"handle":{"number":0,"type":"int","plain":{"tuple":[]}}}}',
    '{"id":0,"value":["function"]}\n{"id":1,"stop":true}',
    '{"id":0,"value":["function"]}\n{"id":1,"value":' + "[" * 150 + "]" * 150 + "}",
]


@pytest.mark.parametrize("lines", FORGED)
@pytest.mark.parametrize("channel", ["tester", "pytest"])
def test_no_forged_reply_makes_a_verdict_true_or_unknown(channel, lines):
    early = f"import os\nos.write(6, {lines!r}.encode() + b'\\n')\ndef add(a, b): return a + b"
    assert check_code(early, CHANNELS[channel], seconds=2.0).passed is False
    informed = (
        "import os, json, re\n"
        f"forged = {lines!r}.split('\\n')\n"
        "for line in forged:\n"
        "    order = os.read(5, 1 << 16)\n"
        "    if not order: break\n"
        "    number = json.loads(order.split(b'\\n')[0])['id']\n"
        "    os.write(6, re.sub(r'\"id\":[0-9]+', f'\"id\":{number}', line).encode() + b'\\n')\n"
        "def add(a, b): return a - b"
    )
    assert check_code(informed, CHANNELS[channel], seconds=2.0).passed is False
