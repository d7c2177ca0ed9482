"""Statements that are nearly right: odd values, types and arguments where others stand."""

from __future__ import annotations

import re

from ksql.functions.registry import BUILTINS
from ksql.functions.spec import AggregateFactory
from tests.fuzz.mutate import damaged
from tests.fuzz.parser import words

SCRIPT = """
CREATE STREAM S (K STRING KEY, A INT, B BIGINT, D DOUBLE, X DECIMAL(10, 2), T STRING, Y BYTES,
  DT DATE, TM TIME, TS TIMESTAMP, L ARRAY<INT>, M MAP<STRING, DOUBLE>, R STRUCT<F INT, G STRING>,
  O BOOLEAN) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM S2 (K STRING KEY, A INT, T STRING) WITH (KAFKA_TOPIC='s2', PARTITIONS=1);
CREATE TABLE U (K STRING PRIMARY KEY, A INT, T STRING) WITH (KAFKA_TOPIC='u', PARTITIONS=1);
CREATE TABLE N AS SELECT K, COUNT(*) AS C, SUM(B) AS A FROM S GROUP BY K;
CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY K;
CREATE TYPE ADDRESS AS STRUCT<STREET STRING, NUMBER INT>;
INSERT INTO S (ROWTIME, K, A, B, D, X, T, L, M, O)
  VALUES (5, 'a', 1, 2, 3.5, 4.25, 'text', ARRAY[1, 2], MAP('a' := 1.5), true);
INSERT INTO S (ROWTIME, K) VALUES (17, 'b');
"""

LITERALS = {
    "BOOLEAN": ["true", "false", "O", "CAST('x' AS BOOLEAN)"],
    "INTEGER": ["0", "1", "-1", "2", "7", "2147483647", "-2147483648", "A", "100000"],
    "BIGINT": [
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "B",
        "2147483648",
        "253402300800000",
        "-62135596800001",
        "31556889864403199000",
    ],
    "DOUBLE": [
        "0e0",
        "-0e0",
        "1e308",
        "-1e308",
        "5e-324",
        "CAST('NaN' AS DOUBLE)",
        "D",
        "CAST('Infinity' AS DOUBLE)",
        "CAST('-Infinity' AS DOUBLE)",
        "1.5e0",
    ],
    "DECIMAL": [
        "0.0",
        "X",
        "99999999999999999999999999999999999999.0",
        "-0.00000000000000000001",
        "1234567890123456789012345678901234567890.5",
        "1.5",
        "CAST('99999999' AS DECIMAL(38, 0))",
        "CAST('0.1' AS DECIMAL(38, 38))",
    ],
    "STRING": [
        "''",
        "' '",
        "T",
        "'NaN'",
        "'1e999999999'",
        "CHR(55296)",
        "'\U0001f600'",
        "'%s%n'",
        '\'{"a": [1, {"b": null}]}\'',
        "'$.a[0]'",
        "'$['",
        "'(('",
        "'(a+)+$'",
        "'2020-02-30'",
        "'yyyy-MM-dd'",
        "'yyyyyyyyyyyyyyyyyyyyyyy'",
        "'Mars/Base'",
        "'UTC'",
        "'+25:00'",
        "'\0'",
        "'+999999999-12-31'",
        "'http://[::1'",
        "'%zz'",
        "'hex'",
        "'utf8'",
        "'base64'",
        "'abc'",
        "'-'",
        "'9' ",
        "'" + "9" * 400 + "'",
        "'1e400'",
        "'[1, 2'",
        "'24:00:00'",
        "'{\"a\":1e9999}'",
    ],
    "BYTES": [
        "TO_BYTES('', 'utf8')",
        "TO_BYTES('ff', 'hex')",
        "Y",
        "TO_BYTES('ÿ😀', 'utf8')",
        "TO_BYTES('00ff00ff00', 'hex')",
    ],
    "DATE": [
        "'2020-01-01'",
        "DT",
        "FROM_DAYS(2147483647)",
        "FROM_DAYS(-2147483648)",
        "CAST('9999-12-31' AS DATE)",
        "FROM_DAYS(0)",
    ],
    "TIME": ["TM", "CAST('23:59:59.999' AS TIME)", "'00:00'", "CAST('00:00' AS TIME)"],
    "TIMESTAMP": [
        "TS",
        "FROM_UNIXTIME(9223372036854775807)",
        "FROM_UNIXTIME(0)",
        "FROM_UNIXTIME(-9223372036854775808)",
        "CAST('9999-12-31T23:59:59.999' AS TIMESTAMP)",
    ],
    "INTERVALUNIT": ["DAYS", "MILLISECONDS", "YEARS", "'DAYS'", "SECONDS"],
}
COLUMNS = {"A", "B", "D", "X", "T", "Y", "DT", "TM", "TS", "O"}
PRIMITIVE = [name for name in LITERALS if name != "INTERVALUNIT"]
TYPES = [
    *PRIMITIVE,
    "DECIMAL(4, 2)",
    "DECIMAL(38, 38)",
    "DECIMAL(0, 0)",
    "DECIMAL(39, 1)",
    "DECIMAL(3, 5)",
    "ARRAY<STRING>",
    "ARRAY<ARRAY<INT>>",
    "MAP<STRING, INT>",
    "MAP<INT, DOUBLE>",
    "STRUCT<F INT, G STRING>",
    "STRUCT<>",
    "ADDRESS",
    "NOSUCH",
    "VARCHAR(99999999999)",
    "INT",
    "MAP<STRING, ARRAY<STRUCT<A INT>>>",
    "DECIMAL",
    "DECIMAL(-1, 0)",
    "DECIMAL(99999999999999, 1)",
]
OPERATORS = [*"+-*/%", "=", "<>", "<", ">=", "||", "AND", "OR", "IS DISTINCT FROM", "LIKE"]
SOURCES = ["S", "S", "S", "S2", "U", "N", "W", "NOSUCH", "`s`"]
PROPERTIES = [
    "KAFKA_TOPIC",
    "PARTITIONS",
    "REPLICAS",
    "FORMAT",
    "KEY_FORMAT",
    "VALUE_FORMAT",
    "TIMESTAMP",
    "TIMESTAMP_FORMAT",
    "WRAP_SINGLE_VALUE",
    "WINDOW_TYPE",
    "WINDOW_SIZE",
    "KEY_SCHEMA_ID",
    "VALUE_SCHEMA_ID",
    "KEY_SCHEMA_FULL_NAME",
    "VALUE_SCHEMA_FULL_NAME",
    "VALUE_DELIMITER",
    "KEY_DELIMITER",
    "CLEANUP_POLICY",
    "RETENTION_MS",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
    "SOURCED_BY_CONNECTOR",
    "NOSUCH",
    "",
]
WORTHS = [
    "'x'",
    "''",
    "1",
    "0",
    "-1",
    "99999999999999999999",
    "1.5",
    "1e999",
    "true",
    "NULL",
    "'1'",
    "'JSON'",
    "'AVRO'",
    "'PROTOBUF'",
    "'JSON_SR'",
    "'DELIMITED'",
    "'KAFKA'",
    "'NONE'",
    "'SESSION'",
    "'PROTOBUF_NOSR'",
    "'TUMBLING'",
    "'1 SECOND'",
    "'99999999999999999999 DAYS'",
    "'-1 DAYS'",
    "'TAB'",
    "'SPACE'",
    "'||'",
    "'yyyy-'",
    "'compact'",
    "ARRAY[1]",
    "'a/b c'",
    "'..'",
    "'\0'",
    "'2147483647'",
    "2147483647",
    "32768",
    "-9223372036854775808",
    "'TS'",
    "'\U0001f600'",
    "'A'",
    "'" + "x" * 300 + "'",
    "'_schemas'",
]
UNITS = ["SECONDS", "DAYS", "MILLISECONDS", "YEARS", "HOUR", "x"]
LISTS = [
    "STREAMS",
    "TABLES EXTENDED",
    "TOPICS",
    "ALL TOPICS EXTENDED",
    "QUERIES",
    "FUNCTIONS",
    "PROPERTIES",
    "TYPES",
    "VARIABLES",
    "CONNECTORS",
]
NUMBERS = ["0", "1", "-1", "10", "2147483648", "9223372036854775807", "99999999999999999999", "1.5"]
_VARIABLE = re.compile(r"\b[A-Z]\b")
_DEEPEST = 3


class Writer:
    """Writes texts with the chance that it is given."""

    def __init__(self, chance):
        self._chance = chance
        self._one = chance.choice
        self._constant = False

    def _literal(self, kind):
        literal = self._one(LITERALS[kind])
        while self._constant and literal in COLUMNS:
            literal = self._one(LITERALS[kind])
        return literal

    def statement(self):
        """A statement of some kind; one in five is damaged."""
        text = self._one(self.KINDS)(self)
        if self._chance.random() < 0.1:
            parts = re.findall(r"\w+|\s+|.", text, re.DOTALL)
            damaged(self._chance, parts, words())
            text = "".join(parts)
        return text

    # --- expressions

    def value(self, kind, depth=0):
        """An expression that should be of the type."""
        kind = re.sub(r"\b[A-Z]\b|ANY", lambda _: self._one(PRIMITIVE), kind.strip())
        roll = self._chance.random()
        if roll < 0.04:
            return "NULL"
        if roll < 0.10:
            return self._literal(self._one(PRIMITIVE))
        if roll < 0.2 and depth < _DEEPEST:
            return f"CAST({self.expr(depth + 1)} AS {kind})"
        upper = {"INT": "INTEGER", "VARCHAR": "STRING"}.get(kind.upper(), kind.upper())
        if upper in LITERALS:
            return self._literal(upper)
        if upper.startswith("DECIMAL"):
            return self._literal("DECIMAL")
        return self._nested(upper, depth)

    def _nested(self, kind, depth):
        name, _, inner = kind.partition("<")
        inner = inner.rstrip(">")
        if name == "ARRAY":
            items = [
                self.value(inner or "INT", depth + 1) for _ in range(self._chance.randrange(4))
            ]
            return f"ARRAY[{', '.join(items)}]"
        if name == "MAP":
            key, _, worth = inner.partition(",")
            pairs = [
                f"{self.value(key or 'STRING', depth + 1)} := {self.value(worth or 'INT', 2)}"
                for _ in range(self._chance.randrange(3))
            ]
            return f"MAP({', '.join(pairs)})"
        if name == "STRUCT":
            return self._one(
                [
                    "STRUCT(F := 1, G := 'x')",
                    "STRUCT(G := CAST(NULL AS STRING))",
                    "STRUCT()",
                    "STRUCT(A := NULL)",
                ]
            )
        if "=>" in kind:
            count = kind.partition("=>")[0].count(",") + 1
            names = ["x", "y", "z"][:count]
            body = self._one([*names, f"{names[0]} + {names[-1]}", "NULL", "1", "UCASE(x)"])
            return f"({', '.join(names)}) => {body}" if count > 1 else f"x => {body}"
        return self._literal(self._one(PRIMITIVE))

    def call(self, depth=0, kinds=("SCALAR", "TABLE")):
        """A function with arguments, mostly of its parameters' types."""
        function = self._one([each for each in BUILTINS.all() if each.kind in kinds])
        overload = self._one(function.overloads)
        params = list(overload.params)
        if isinstance(overload, AggregateFactory):
            params += overload.literals
        arguments = []
        for param in params:
            many = self._chance.randrange(4) if "..." in param else 1
            kind = re.sub(r"\.\.\..*| [a-z]\w*$", "", param)
            arguments += [self.value(kind, depth + 1) for _ in range(many)]
        if self._chance.random() < 0.05:
            arguments.append(self.expr(depth + 1))
        return f"{function.name}({', '.join(arguments)})"

    def expr(self, depth=0):
        """Any expression."""
        if depth >= _DEEPEST:
            return self._literal(self._one(PRIMITIVE))
        roll = self._chance.randrange(10)
        if roll < 5:
            return self.call(depth)
        if roll == 5:
            return f"CAST({self.expr(depth + 1)} AS {self._one(TYPES)})"
        if roll == 6:
            left, right = self.expr(depth + 1), self.expr(depth + 1)
            return f"({left} {self._one(OPERATORS)} {right})"
        if roll == 7:
            kind = self._one(PRIMITIVE)
            sign = self._one(OPERATORS)
            return f"({self.value(kind, depth + 1)} {sign} {self.value(kind, depth + 1)})"
        if roll == 8:
            return self._one(
                [
                    f"CASE WHEN {self.value('BOOLEAN')} THEN {self.expr(depth + 1)} ELSE NULL END",
                    f"{self.value('ARRAY<INT>', depth)}[{self.value('INT', depth)}]",
                    f"{self.value('MAP<STRING, INT>', depth)}[{self.value('STRING', depth)}]",
                    f"R->{self._one(['F', 'NOSUCH', '``'])}",
                    f"({self.expr(depth + 1)} IN ({self.expr(depth + 1)}, {self.expr(depth + 1)}))",
                    f"({self.expr(depth + 1)} BETWEEN {self.expr(2)} AND {self.expr(depth + 1)})",
                    f"-{self.expr(depth + 1)}",
                    f"({self.value('STRING')} LIKE 'a' ESCAPE {self.value('STRING')})",
                ]
            )
        return self.value(self._one(PRIMITIVE), depth)

    # --- statements

    def _with(self):
        names = [*(["KAFKA_TOPIC"] if self._chance.random() < 0.5 else []), self._one(PROPERTIES)]
        pairs = [f"{name}={self._one(WORTHS)}" for name in names]
        plain = self._chance.random() < 0.5
        return f"WITH ({', '.join(['PARTITIONS=1', *pairs] if plain else pairs)})"

    def _columns(self):
        columns = []
        for number in range(self._chance.randrange(4)):
            role = self._one(["", "", "KEY", "PRIMARY KEY", "HEADERS", "HEADER('x')", "HEADER('')"])
            name = self._one([f"C{number}", "``", "ROWTIME", "`a b`", "WINDOWSTART", "K", "`\0`"])
            columns.append(f"{name} {self._one(TYPES)} {role}")
        return ", ".join(columns)

    def _name(self):
        if self._chance.random() < 0.7:
            return self._one(["A1", "A2", "S", "N", "W"])
        return self._one(["A1", "S", "N", "``", "`a.b`", "`" + "x" * 300 + "`", "`/`", "`😀`"])

    def create(self):
        kind = self._one(
            [
                "STREAM",
                "TABLE",
                "SOURCE STREAM",
                "SOURCE TABLE",
                "OR REPLACE STREAM",
                "STREAM IF NOT EXISTS",
            ]
        )
        columns = self._columns()
        return f"CREATE {kind} {self._name()} {f'({columns})' if columns else ''} {self._with()};"

    def create_as(self):
        kind = self._one(["STREAM", "TABLE", "OR REPLACE TABLE"])
        return f"CREATE {kind} {self._name()} {self._one(['', self._with()])} AS {self.select()};"

    def select(self, emit=""):
        if self._chance.random() < 0.5:
            return f"SELECT K, {self.expr()} AS E, {self.call()} AS F FROM S{emit}"
        items = [self.expr() for _ in range(self._chance.randrange(1, 3))]
        items += self._one([[], ["*"], ["K"], [self.call(kinds=("AGGREGATE",))]])
        text = f"SELECT {', '.join(items)} FROM {self._one(SOURCES)}"
        if self._chance.random() < 0.15:
            within = self._one(["", f"WITHIN {self._one(NUMBERS)} {self._one(UNITS)}"])
            text += f" JOIN {self._one(SOURCES)} AS J {within} ON S.K = {self.expr()}"
        if self._chance.random() < 0.2:
            text += " WINDOW " + self._one(
                [
                    f"TUMBLING (SIZE {self._one(NUMBERS)} {self._one(UNITS)})",
                    f"HOPPING (SIZE {self._one(NUMBERS)} {self._one(UNITS)}, "
                    f"ADVANCE BY {self._one(NUMBERS)} {self._one(UNITS)})",
                    f"SESSION ({self._one(NUMBERS)} {self._one(UNITS)}, "
                    f"GRACE PERIOD {self._one(NUMBERS)} {self._one(UNITS)})",
                ]
            )
        if self._chance.random() < 0.4:
            text += f" WHERE {self._where()}"
        text += self._one(["", "", " PARTITION BY K", f" PARTITION BY {self.expr(2)}"])
        text += self._one(["", "", " GROUP BY K", f" GROUP BY {self.expr(2)}"])
        if self._chance.random() < 0.1:
            text += f" HAVING {self._where()}"
        return text + emit

    def _where(self):
        return self._one(
            [
                self.expr(),
                f"K = {self.expr()}",
                f"K IN ({self.value('STRING')}, {self.value('STRING')})",
                f"WINDOWSTART {self._one(['>', '=', '<='])} {self._one([*NUMBERS, self.expr()])}",
                f"K = 'a' AND WINDOWEND BETWEEN {self.value('STRING')} AND {self.value('BIGINT')}",
                f"ROWTIME > {self.value('STRING')}",
                f"K = 'a' AND ROWTIME >= {self.value('BIGINT')} OR NOT ({self.expr(2)})",
            ]
        )

    def pull(self):
        limit = self._one(["", "", f" LIMIT {self._one(NUMBERS)}"])
        return f"SELECT {self._one(['*', self.expr()])} FROM {self._one(['N', 'W', 'S', 'U'])} " + (
            f"WHERE {self._where()}{limit};"
        )

    def push(self):
        limit = self._one(["", "", f" LIMIT {self._one(NUMBERS)}"])
        return self.select(f" EMIT {self._one(['CHANGES', 'CHANGES', 'FINAL'])}{limit};")

    def insert(self):
        kinds = {
            "K": "STRING",
            "A": "INTEGER",
            "B": "BIGINT",
            "D": "DOUBLE",
            "X": "DECIMAL",
            "T": "STRING",
            "Y": "BYTES",
            "DT": "DATE",
            "TM": "TIME",
            "TS": "TIMESTAMP",
            "L": "ARRAY<INT>",
            "M": "MAP<STRING,DOUBLE>",
            "R": "STRUCT<>",
            "O": "BOOLEAN",
            "ROWTIME": "BIGINT",
        }
        name = self._one(list(kinds))
        self._constant = True
        value = self._one([self.expr, lambda: self.value(kinds[name])])()
        return f"INSERT INTO S (K, {name}) VALUES ({self.value('STRING')}, {value});"

    def other(self):
        name, number, unit = self._name(), self._one(NUMBERS), self._one(UNITS)
        return self._one(
            [
                f"INSERT INTO {name} {self.select()};",
                f"DROP {self._one(['STREAM', 'TABLE'])} {name} DELETE TOPIC;",
                f"CREATE TYPE {name} AS {self._one(TYPES)};",
                f"DROP TYPE {name};",
                f"ALTER STREAM S ADD COLUMN {name} {self._one(TYPES)};",
                f"DESCRIBE {name} EXTENDED;",
                f"DESCRIBE FUNCTION {self._one([name, 'LPAD', 'COUNT', 'TRANSFORM'])};",
                f"EXPLAIN {self._one([name, self.select()])};",
                f"{self._one(['TERMINATE', 'PAUSE', 'RESUME'])} "
                f"{self._one([name, 'ALL', 'CTAS_N_1'])};",
                f"PRINT {self._one(['s', 's2', name])} FROM BEGINNING INTERVAL {number} "
                f"LIMIT {self._one(NUMBERS)};",
                f"SET '{self._one(['auto.offset.reset', '', 'x', 'ksql.x'])}'={self._one(WORTHS)};",
                "UNSET 'auto.offset.reset';",
                f"DEFINE x = {self._one(WORTHS)}; SELECT '${{x}}' FROM N;",
                f"ASSERT TOPIC {name} WITH (PARTITIONS={number}) TIMEOUT 0 {unit};",
                f"ASSERT {self._one(['', 'NOT EXISTS '])}SCHEMA SUBJECT {name} ID {number} "
                f"TIMEOUT 0 {unit};",
                f"SHOW {self._one(LISTS)};",
                f"RUN SCRIPT {self._one(WORTHS)};",
                f"CREATE SOURCE CONNECTOR {name} {self._with()};",
            ]
        )

    KINDS = (create, create_as, pull, pull, push, insert, insert, insert, other)
