"""A tour of twenty steps through the console of a real server; two people at the same query."""

from __future__ import annotations

import json

import pytest

from tests.waits import await_true

RIDES = """
CREATE STREAM rides (bike STRING KEY, dock INT, metres INT)
  WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TYPE spot AS STRUCT<lat DOUBLE, lon DOUBLE>;
CREATE TABLE bikes AS SELECT bike, COUNT(*) AS rides FROM rides GROUP BY bike;
"""
BIKES = "CREATE OR REPLACE TABLE bikes AS SELECT bike, COUNT(*) AS rides"


def insert(server, *values):
    server.http.ksql("".join(f"INSERT INTO rides VALUES {value};" for value in values))


def bikes_query(server):
    return next(query for query in server.http.queries() if query.startswith("CTAS_BIKES"))


def statements_make_sources(console, server):
    console.run(RIDES)
    console.sees("Created query with ID CTAS_BIKES")
    server.http.await_queries({bikes_query(server): "RUNNING"})
    insert(server, "('b7', 3, 1200)", "('b9', 1, 993)")


def names_are_completed(console, server):
    console.write("SELECT * FROM rid")
    console.page.keyboard.type("e")
    console.page.locator(".cm-tooltip-autocomplete").get_by_text("rides", exact=True).wait_for()
    console.page.keyboard.press("Tab")
    await_true(
        "completed", lambda: "FROM rides" in console.page.locator(".cm-content").inner_text()
    )


def rows_follow(console, server):
    console.run("SELECT * FROM rides EMIT CHANGES;")
    console.status("2 rows")
    insert(server, "('b2', 1, 640)")
    console.status("3 rows")
    assert "b2" in console.cells()


def a_query_is_stopped(console, server):
    console.press("Stop", within=".rows")
    console.status("stopped")


def rows_are_exported(console, server):
    lines = console.export("CSV").splitlines()
    assert lines[0] == "BIKE,DOCK,METRES"
    assert "b7,3,1200" in lines
    assert {"BIKE": "b7", "DOCK": 3, "METRES": 1200} in json.loads(console.export("JSON"))


def an_error_is_at_its_place(console, server):
    console.run("SHOW STREAMS;\nSELECT * FROM ridez;")
    console.page.get_by_role("button", name="Go to line 2, column 15").click()
    console.page.locator(".cm-lintRange-error", has_text="ridez").wait_for()


def a_selection_is_run(console, server):
    console.write("SHOW TABLES;")
    console.page.keyboard.press("End")
    console.page.keyboard.press("Enter")
    console.page.keyboard.insert_text("SHOW NONSENSE;")
    console.page.keyboard.press("Home")
    console.page.keyboard.press("Shift+Control+Home")
    console.page.keyboard.press("Control+Enter")
    console.page.locator(".result").get_by_role("link", name="BIKES").first.wait_for()
    assert console.page.locator(".result").count() == 1


def tabs_keep_their_texts(console, server):
    console.press("New tab")
    console.write("SHOW TYPES;")
    console.page.get_by_role("tab", name="Tab 1").click()
    await_true(
        "the first text", lambda: "NONSENSE" in console.page.locator(".cm-content").inner_text()
    )
    console.page.reload()
    console.page.get_by_role("tab", name="Tab 2").click()
    await_true(
        "the second text", lambda: "TYPES" in console.page.locator(".cm-content").inner_text()
    )


def history_is_kept(console, server):
    console.press("History")
    console.page.get_by_label("Filter").fill("ridez")
    console.page.locator(".history").get_by_role("button").first.click()
    await_true("taken", lambda: "ridez" in console.page.locator(".cm-content").inner_text())


def settings_are_of_the_tab(console, server):
    console.run("SET 'ksql.query.pull.table.scan.enabled'='true'; DEFINE chosen = 'b9';")
    console.page.get_by_label("Settings of this tab").get_by_text("${chosen} = b9").wait_for()
    console.run("SELECT * FROM rides WHERE bike = '${chosen}' EMIT CHANGES LIMIT 1;")
    console.status("1 row")
    console.status("ended")


def a_source_has_a_page(console, server):
    console.open("catalog")
    console.page.get_by_role("link", name="RIDES", exact=True).click()
    console.sees("CREATE STREAM rides")
    console.page.get_by_role("link", name=bikes_query(server)).wait_for()
    console.press("Show the first rows")
    console.status("3 rows")


def a_topic_has_records(console, server):
    console.open("topic/rides")
    console.sees('{"DOCK":3,"METRES":1200}')
    console.page.get_by_label("From").select_option("offset")
    console.page.get_by_label("Offset").fill("2")
    console.press("Show")
    await_true("one record", lambda: console.page.locator("tbody tr").count() == 1)
    console.page.get_by_label("From").select_option("end")
    console.press("Show")
    await_true("the last records", lambda: console.page.locator("tbody tr").count() == 3)
    console.page.get_by_label("From").select_option("time")
    console.page.get_by_label("Time").fill("2020-01-01T00:00:00")
    console.press("Show")
    await_true("all records", lambda: console.page.locator("tbody tr").count() == 3)


def types_and_functions_are_listed(console, server):
    console.open("catalog/types")
    console.sees("STRUCT<`LAT` DOUBLE")
    console.page.get_by_role("tab", name="Functions").click()
    console.page.get_by_label("Filter").fill("ucase")
    console.page.get_by_role("link", name="UCASE").click()
    console.sees("UCASE(")


def lineage_leads_to_the_query(console, server):
    console.open("lineage")
    node = console.page.get_by_role("link", name=f"query {bikes_query(server)}")
    node.filter(has_text="RUNNING").wait_for()
    node.click()
    console.page.get_by_role("heading", name=bikes_query(server)).wait_for()


def a_query_has_charts_and_a_plan(console, server):
    console.sees("[ AGGREGATE ] COUNT")
    await_true("charts", lambda: console.page.locator(".chart canvas").count() == 4)
    console.page.locator(".chart", has_text="Batch time").get_by_text("plan").wait_for()
    console.sees("looks of the server")
    console.press("Show the reasons from the processing log")
    console.status("0 rows")


def a_query_is_paused_and_resumed(console, server):
    console.press("Pause")
    console.page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    console.page.get_by_role("button", name="Resume").click()
    console.page.get_by_role("button", name="Pause").wait_for()


def compared(console, text):
    console.press("Replace…")
    console.write(text, within="dialog")
    console.press("Compare")
    return console.page.locator("dialog [data-test=verdict]").inner_text()


def a_refused_replacement_says_why(console, server):
    text = f"{BIKES} FROM rides WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY bike;"
    assert compared(console, text).startswith("Refused")
    assert console.page.get_by_role("button", name="Replace the query").is_disabled()
    console.press("Close")


def a_replacement_switches(console, server):
    verdict = compared(console, f"{BIKES} FROM rides WHERE metres > 700 GROUP BY bike;")
    assert verdict.startswith("Accepted")
    console.page.locator("dialog .added", has_text="WHERE metres > 700").wait_for()
    console.press("Replace the query")
    console.page.locator("dialog .verdict", has_text="Created query").wait_for()
    console.page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    console.page.locator(".badge", has_text="switched").wait_for()


def a_rebuild_is_watched_and_rolled_back(console, server):
    console.press("Replace…")
    console.write(f"{BIKES}, SUM(metres) AS metres FROM rides GROUP BY bike;", within="dialog")
    start = console.page.get_by_label("Read from")
    assert start.is_disabled()
    console.page.get_by_label("Mode").select_option("rebuild")
    start.fill("earliest")
    start.press("Enter")
    console.sees("START_MODE = 'earliest'", within="dialog")
    console.press("Compare")
    console.sees("A rebuild would read")
    console.press("Replace the query")
    console.page.locator("dialog .badge", has_text="switched").wait_for()
    console.page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    console.press("Roll back")
    console.page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    rolled = console.page.locator("tr", has_text="roll back").filter(has_text="switched")
    rolled.get_by_role("button").click()
    console.sees("Before")
    console.page.keyboard.press("Escape")


def the_cluster_is_healthy_and_the_query_ends(console, server):
    console.open("cluster")
    console.sees("All is well")
    console.sees("leads: it runs the queries")
    console.page.get_by_role("button", name="Dark colours").click()
    assert console.page.evaluate("document.documentElement.dataset.theme") == "dark"
    console.open(f"query/{bikes_query(server)}")
    console.press("Terminate")
    console.page.get_by_role("dialog").get_by_role("button", name="Terminate").click()
    server.http.await_queries({})


STEPS = (
    statements_make_sources,
    names_are_completed,
    rows_follow,
    a_query_is_stopped,
    rows_are_exported,
    an_error_is_at_its_place,
    a_selection_is_run,
    tabs_keep_their_texts,
    history_is_kept,
    settings_are_of_the_tab,
    a_source_has_a_page,
    a_topic_has_records,
    types_and_functions_are_listed,
    lineage_leads_to_the_query,
    a_query_has_charts_and_a_plan,
    a_query_is_paused_and_resumed,
    a_refused_replacement_says_why,
    a_replacement_switches,
    a_rebuild_is_watched_and_rolled_back,
    the_cluster_is_healthy_and_the_query_ends,
)


@pytest.mark.kafka
def test_tour(console, server, tmp_path):
    opened = console(server.http.url)
    for step in STEPS:
        try:
            step(opened, server)
        except BaseException:
            opened.page.screenshot(path=tmp_path / f"{step.__name__}.png", full_page=True)
            raise
        assert opened.errors == [], step.__name__
    assert opened.shifted < 0.1, opened.page.evaluate("window.shifts")


SOURCE = """
CREATE STREAM doubled (id STRING KEY, n INT)
  WITH (KAFKA_TOPIC='doubled', VALUE_FORMAT='JSON', PARTITIONS=1);
"""
TWICE = "CREATE OR REPLACE STREAM twice AS SELECT * FROM doubled WHERE"


def compared_where(console, query, condition):
    console.open(f"query/{query}")
    console.press("Replace…")
    console.write(
        f"{TWICE} {condition};",
        within="dialog",
    )
    console.press("Compare")
    console.page.locator("dialog .added", has_text=condition).wait_for()


@pytest.mark.kafka
def test_two_tabs_that_replace_the_same_query(console, server):
    server.http.ksql(SOURCE)
    answer = server.http.one("CREATE STREAM twice AS SELECT * FROM doubled;")
    query = answer["commandStatus"]["queryId"]
    first, second = console(server.http.url), console(server.http.url)
    compared_where(first, query, "n > 1")
    compared_where(second, query, "n > 2")
    first.press("Replace the query")
    first.page.locator("dialog .verdict", has_text="Created query").wait_for()
    second.press("Replace the query")
    second.sees("The query was replaced meanwhile")
    statement = server.http.one(f"EXPLAIN {query};")["queryDescription"]["statementText"]
    assert statement.endswith("WHERE n > 1;")
    server.http.ksql(f"TERMINATE {query};")
