"""The loop that folds a batch against the road step by step: the same states, the same log."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ksql.core.errors import QueryFailed
from ksql.exec.codegen.windowed import WindowedIngest
from ksql.exec.dataflow import stages
from ksql.exec.dataflow.compiled import writing
from ksql.exec.dataflow.ingest import CombinedIngest, SourceIngest
from ksql.functions.registry import BUILTINS
from tests.examples import examples
from tests.unit.exec.codegen.test_fused import FIT, KEYS, SETUP, WHOLE, any_value, batch, good_value
from tests.unit.exec.operators.support import Log
from tests.unit.world import World

GROUPED = [
    "SELECT K, COUNT(*) AS C, SUM(I) AS S FROM S GROUP BY K",
    "SELECT I, COUNT(*) AS C, SUM(L) AS S FROM S GROUP BY I",
    "SELECT K, S, MAX(D) AS D, LATEST_BY_OFFSET(L) AS L FROM S WHERE I > 1 GROUP BY K, S",
    "SELECT CAST(S AS INT) AS N, COUNT(K) AS C, SUM(CAST(S AS BIGINT)) AS U FROM S "
    "WHERE B OR L / I > 1 GROUP BY CAST(S AS INT)",
    "SELECT D, SUM(D) AS S, COLLECT_LIST(I) AS L FROM S GROUP BY D",
    "SELECT A, MIN(ROWTIME) AS L, MAX(ROWOFFSET) AS H FROM S GROUP BY A",
    "SELECT V, COUNT(*) AS C FROM OBJECT GROUP BY V",
    "SELECT V, COUNT(*) AS C FROM NOKEY GROUP BY V",
    "SELECT W, SUM(V) AS V FROM LINES GROUP BY W",
]
WINDOWED = [
    "SELECT K, COUNT(*) AS C, SUM(I) AS S FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K",
    "SELECT I, S, COUNT(*) AS C, MAX(L) AS M FROM S "
    "WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 3 SECONDS, GRACE PERIOD 2 SECONDS) "
    "WHERE L / I > 1 GROUP BY I, S",
    "SELECT D, SUM(I) AS S FROM S "
    "WINDOW TUMBLING (SIZE 1 SECOND, GRACE PERIOD 0 SECONDS) GROUP BY D",
    "SELECT W, MIN(V) AS V FROM LINES WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY W EMIT FINAL",
]


def program_of(query):
    world = World(SETUP)
    world.run(f"CREATE TABLE O WITH (KEY_FORMAT='JSON') AS {query};")
    return writing(world.plan("O"), BUILTINS)


@pytest.fixture(scope="module", params=[*GROUPED, *WINDOWED])
def program(request):
    return program_of(request.param)


def outcome(program, batches, *, loops):
    """What leaves a task that gets these batches, or the error; and the log."""
    ingest, log = program.ingest(), Log()
    (source,) = ingest.sources[program.topics[0]]
    if not loops:
        source = SourceIngest(source.reader, source.topic, source.stage_input, source.keying)
        ingest.sources = {program.topics[0]: [source]}
    try:
        out = [record for each in batches for record in ingest.add(each, log)]
        result = repr([*out, *ingest.finish()])
    except QueryFailed as error:
        result = repr((str(error), error.detail, error.entry))
    return result, list(map(repr, log))


def agree(program, *batches):
    assert outcome(program, batches, loops=True) == outcome(program, batches, loops=False)


def ordinary(program, count=20, seed=1):
    (topic,) = program.topics
    chance = random.Random(seed)
    return batch(topic, [(FIT[topic], good_value(topic, chance)) for _ in range(count)])


def test_every_odd_value_alone(program):
    (topic,) = program.topics
    for value in WHOLE:
        agree(program, batch(topic, [(FIT[topic], value)]))


def test_tasks_of_batches_that_fuzzers_make(program):
    (topic,) = program.topics
    chance = random.Random(3)
    for _ in range(examples(120)):
        batches, offset = [], 0
        for _ in range(chance.randrange(1, 4)):
            batches.append(a_batch(topic, chance, offset))
            offset += len(batches[-1].offsets)
        agree(program, *batches)


def a_batch(topic, chance, offset):
    """Some records; in every second batch all are ordinary, but for their times."""
    count, plain = range(chance.randrange(1, 8)), chance.random() < 0.5
    raw = batch(
        topic,
        [
            (
                FIT[topic] if plain or chance.random() < 0.9 else chance.choice(KEYS),
                good_value(topic, chance) if plain else any_value(topic, chance),
                chance.choice((0, 999, 1000, 1500, 5000, 1 << 41)),
            )
            for _ in count
        ],
    )
    partitions = (
        [chance.choice((3, 4)) for _ in count] if chance.random() < 0.2 else [3 for _ in count]
    )
    return raw._replace(offsets=[offset + at for at in count], partitions=partitions)


def test_ordinary_batches_take_one_loop(program, monkeypatch):
    monkeypatch.setattr(SourceIngest, "placed", None)
    ingest = program.ingest()
    assert isinstance(ingest, CombinedIngest | WindowedIngest)
    assert not list(ingest.add(ordinary(program), Log()))
    assert list(ingest.finish())


@pytest.mark.parametrize("query", [GROUPED[0], WINDOWED[0]])
def test_records_for_which_an_aggregate_fails(query, monkeypatch):
    slots_of = stages.slots_of

    def failing(node, code):
        return [
            replace(slot, function=fails_at_three(slot.function)) for slot in slots_of(node, code)
        ]

    monkeypatch.setattr(stages, "slots_of", failing)
    program = program_of(query)
    given = ordinary(program)
    assert any(b'"I": 3' in value for value in given.values)
    agree(program, given, ordinary(program, seed=2))
    only = [value for value in given.values if b'"I": 3' in value]
    agree(program, batch("s", [(b"a", value) for value in only]))


def fails_at_three(function):
    def step(state, *given):
        if given == (3,):
            raise ValueError("three")
        return function.step(state, *given)

    return replace(function, step=step, step_code=None)


def test_headers_are_for_the_step_by_step_path(program):
    (topic,) = program.topics
    chance = random.Random(4)
    records = [(FIT[topic], good_value(topic, chance)) for _ in range(3)]
    agree(program, batch(topic, records, [None, [("h", b"1")], None]))
