"""A plan as indented text, for EXPLAIN and for failing tests."""

from __future__ import annotations

from ksql.sql.binder.show import show_call, sql_of
from ksql.sql.plan import nodes as p
from ksql.sql.plan.walk import children


def explain(plan: p.Plan, depth: int = 0) -> str:
    """Return one line per node, the sink first, what feeds it below and indented.

    Example:
        ``> [ SINK ] S2 (K STRING KEY, ..) -> topic S2, KAFKA / JSON``
    """
    below = "".join("\n" + explain(child, depth + 1) for child in children(plan))
    return "  " * depth + "> " + _line(plan) + below


def _line(plan: p.Plan) -> str:
    match plan:
        case p.Source():
            formats = f"{plan.key_format.name} / {plan.value_format.name}"
            return f"[ SOURCE ] {plan.kind.lower()} {plan.name} <- topic {plan.topic}, {formats}"
        case p.Filter():
            return f"[ FILTER ] {plan.clause} {sql_of(plan.predicate)}"
        case p.Rekey():
            keys = ", ".join(f"{sql_of(key.expr)} AS {key.name}" for key in plan.keys)
            return f"[ REKEY ] PARTITION BY {keys or 'NULL'}"
        case p.Explode():
            return f"[ EXPLODE ] {', '.join(call.name for call in plan.calls)}"
        case p.Select():
            items = ", ".join(f"{sql_of(n.expr)} AS {n.name}" for n in (*plan.key, *plan.value))
            return f"[ PROJECT ] {items}"
        case p.Aggregate():
            group = ", ".join(sql_of(key.expr) for key in plan.group)
            folds = ", ".join(show_call(fold.function, fold.args) for fold in plan.folds)
            window = f", {plan.window.kind} {plan.window.size_ms} ms" if plan.window else ""
            kept = f", RETENTION_MS {plan.ttl_ms}" if plan.ttl_ms else ""
            return f"[ AGGREGATE ] {folds} GROUP BY {group}{window}{kept}"
        case p.EmitFinal():
            return "[ EMIT FINAL ]"
        case p.StreamTableJoin() | p.StreamStreamJoin() | p.TableTableJoin() | p.ForeignKeyJoin():
            on = f"{sql_of(plan.left_key)} = {sql_of(plan.right_key)}"
            return f"[ JOIN ] {plan.kind} {_sides(plan)} ON {on}"
        case p.Sink():
            columns = ", ".join(map(str, (*plan.key, *plan.value)))
            if plan.topic is None:
                return f"[ OUTPUT ] {columns}"
            formats = f"{plan.key_format.name} / {plan.value_format.name}"
            target = f"topic {plan.topic}, {formats}"
            return f"[ SINK ] {plan.kind.lower()} {plan.name} ({columns}) -> {target}"


def _sides(join: p.Join) -> str:
    match join:
        case p.StreamTableJoin():
            return "stream-table"
        case p.StreamStreamJoin():
            return "stream-stream"
        case p.TableTableJoin():
            return "table-table"
        case p.ForeignKeyJoin():
            return "foreign-key table-table"
