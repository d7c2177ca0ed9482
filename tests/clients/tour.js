// npm's ksqldb-client: HTTP/2 with prior knowledge, one connection for everything.
const assert = require("node:assert");
const { setTimeout } = require("node:timers/promises");
const Client = require("ksqldb-client");

const NOT_READY = 50302; // the table's query has not finished its first batch
const PAUSE_MS = 200;

const main = async (port) => {
    const client = new Client({ host: "http://127.0.0.1", port });
    await client.connect();
    const run = async (statement) => {
        const { status, error } = await client.executeStatement(statement);
        assert.strictEqual(status, 200, JSON.stringify(error));
    };
    await run(
        "CREATE STREAM js_rides (bike STRING KEY, dock INT) " +
            "WITH (KAFKA_TOPIC='js_rides', VALUE_FORMAT='JSON', PARTITIONS=1);"
    );
    await run("CREATE TABLE js_bikes AS SELECT bike, COUNT(*) AS rides FROM js_rides GROUP BY bike;");
    for (const [bike, dock] of [["b7", 1], ["b9", 2], ["b7", 3]]) {
        const { data } = await client.insertInto("JS_RIDES", { BIKE: bike, DOCK: dock });
        assert.deepStrictEqual(data.rows, [{ status: "ok", seq: 0 }]);
    }
    const wrong = await client.insertInto("JS_RIDES", { BIKE: "b7", DOCK: "one" });
    assert.strictEqual(wrong.error.status, "error");

    // ends by its limit
    const earliest = { properties: { "auto.offset.reset": "earliest" } };
    const rows = [];
    const limited = await client.streamQuery(
        "SELECT * FROM js_rides EMIT CHANGES LIMIT 3;",
        (found) => rows.push(...(found.rows || [])),
        earliest
    );
    assert.strictEqual(limited.status, 200);
    assert.deepStrictEqual(rows.map((row) => `${row.BIKE} ${row.DOCK}`), ["b7 1", "b9 2", "b7 3"]);

    // is ended by its id, while another client's statement would go through
    let closing;
    const endless = await client.streamQuery("SELECT * FROM js_rides EMIT CHANGES;", (found) => {
        closing = closing || client.terminatePushQuery(found.metadata.queryId);
    });
    assert.strictEqual(endless.status, 200);
    assert.strictEqual((await closing).status, 200);

    const wanted = "SELECT bike, rides FROM js_bikes WHERE bike = 'b7';";
    let pulled = [];
    while (pulled.length === 0 || pulled[0].RIDES < 2) {
        const { data, error } = await client.query(wanted);
        assert.ok(data || error.error_code === NOT_READY, JSON.stringify(error));
        pulled = data ? data.rows : [];
        await setTimeout(PAUSE_MS);
    }
    assert.deepStrictEqual(pulled, [{ BIKE: "b7", RIDES: 2 }]);

    assert.ok((await client.listStreams()).some(({ name }) => name === "JS_RIDES"));
    const refused = await client.query("SELECT * FROM nowhere;");
    assert.strictEqual(refused.error.error_code, 40001);
    await run("DROP TABLE js_bikes DELETE TOPIC;");
    await run("DROP STREAM js_rides DELETE TOPIC;");
    await client.disconnect();
};

main(Number(process.argv[2])).catch((error) => {
    console.error(error);
    process.exit(1);
});
