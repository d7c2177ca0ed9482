import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** The topologies of the query shapes, as ksqlDB builds them. Sources are l, r and s, the sink is out. */
final class Topologies {
  static final ObjectMapper JSON = new ObjectMapper();
  static final Serde<JsonNode> ROWS = Serdes.serdeFrom(
      (topic, row) -> row == null ? null : row.toString().getBytes(), (topic, bytes) -> read(bytes));

  /** Run before each record that enters a join of streams. */
  static Runnable beforeJoin = () -> {};

  private final StreamsBuilder builder = new StreamsBuilder();
  private final JsonNode given;
  private final String kind;
  /** Those of l, and those of the groups. */
  private final Serde<String> keys, groups;

  private Topologies(JsonNode given) {
    this.given = given;
    this.kind = given.path("kind").asText();
    this.keys = keys("STRING", format("l"));
    this.groups = keys(type(), format("l"));
  }

  /** The topology of a case: its shape, its kind of join and its times. */
  static Topology of(JsonNode given) {
    Topologies made = new Topologies(given);
    KStream<String, JsonNode> results = switch (given.get("shape").asText()) {
      case "stream-stream" -> made.streams(made.kind, made.stream("l"), made.stream("r"));
      case "stream-table" -> made.lookup(made.kind, made.stream("l"), made.table("r"));
      case "stream-chain" -> made.streams(made.kind(1), made.streams(made.kind(0), made.stream("l"), made.stream("r")), made.stream("s"));
      case "stream-tables" -> made.lookup(made.kind(1), made.lookup(made.kind(0), made.stream("l"), made.table("r")), made.table("s"));
      case "streams-table" -> made.lookup(made.kind(1), made.streams(made.kind(0), made.stream("l"), made.stream("r")), made.table("s"));
      case "table-table" -> made.tables(made.kind, made.table("l"), made.table("r")).toStream();
      case "table-chain" -> made.tables(
          made.kind(1), made.tables(made.kind(0), made.table("l"), made.table("r")), made.table("s")).toStream();
      case "foreign-key" -> made.foreign(made.kind).toStream();
      case "foreign-chain" -> made.tables(made.kind(1), made.foreign(made.kind(0)), made.table("s")).toStream();
      case "table-aggregate" -> made.groups(made.table("l")).toStream();
      case "join-aggregate" -> made.groups(made.tables(made.kind, made.table("l"), made.table("r"))).toStream();
      case "sessions", "moved-sessions" -> made.sessions(made.stream("l"));
      case "windows", "moved-windows", "moved-pairs" -> made.windows(made.stream("l"));
      case "moved" -> made.stream("l").selectKey((key, row) -> made.text(row, "F"));
      case "moved-groups" -> made.counted(made.stream("l")).toStream();
      case "moved-left" -> made.streams(made.kind, made.by(made.stream("l"), "F"), made.stream("r"));
      case "moved-right" -> made.streams(made.kind, made.stream("l"), made.by(made.stream("r"), "G"));
      case "moved-both" -> made.streams(made.kind, made.by(made.stream("l"), "F"), made.by(made.stream("r"), "G"));
      case "moved-chain" -> made.streams(
          made.kind(1), made.by(made.streams(made.kind(0), made.stream("l"), made.stream("r")), "F"), made.stream("s"));
      case "formats" -> made.streams(made.kind, made.stream("l"), made.rewritten("r"));
      case "moved-lookup" -> made.lookup(made.kind, made.by(made.stream("l"), "F"), made.table("r"));
      case "moved-join-windows" -> made.windows(made.streams(made.kind, made.stream("l"), made.stream("r")));
      case "moved-lookup-windows" -> made.windows(made.lookup(made.kind, made.by(made.stream("l"), "F"), made.table("r")));
      case "join-sessions" -> made.sessions(made.streams(made.kind, made.stream("l"), made.stream("r")));
      case "join-windows" -> made.windows(made.streams(made.kind, made.stream("l"), made.stream("r")));
      default -> throw new IllegalArgumentException(given.toString());
    };
    if (results != null) {
      results.mapValues(made::selected).to("out", Produced.with(made.groups, ROWS));
    }
    return made.builder.build();
  }

  private KStream<String, JsonNode> stream(String topic) {
    return builder.stream(topic, Consumed.with(keys("STRING", format(topic)), ROWS));
  }

  /** The stream by one of its columns. */
  private KStream<String, JsonNode> by(KStream<String, JsonNode> stream, String column) {
    return stream.selectKey((key, row) -> text(row, column));
  }

  /** The stream with its keys in the format of l's. */
  private KStream<String, JsonNode> rewritten(String topic) {
    return stream(topic).repartition(Repartitioned.with(keys, ROWS));
  }

  private KTable<String, JsonNode> table(String topic) {
    Materialized<String, JsonNode, KeyValueStore<Bytes, byte[]>> store = Materialized.as(topic + "-rows");
    return builder.table(topic, Consumed.with(keys, ROWS))
        .mapValues(row -> row, store.withKeySerde(keys).withValueSerde(ROWS));
  }

  // --- joins

  private String kind(int place) {
    return kind.split(" ")[place];
  }

  private KStream<String, JsonNode> streams(
      String kind, KStream<String, JsonNode> left, KStream<String, JsonNode> right) {
    StreamJoined<String, JsonNode, JsonNode> how = StreamJoined.with(keys, ROWS, ROWS);
    long before = millis("before"), after = millis("after");
    left = left.peek((key, row) -> beforeJoin.run());
    right = right.peek((key, row) -> beforeJoin.run());
    return switch (kind) {
      case "INNER" -> left.join(right, Topologies::joined, within(before, after), how);
      case "LEFT" -> left.leftJoin(right, Topologies::joined, within(before, after), how);
      case "RIGHT" -> right.leftJoin(left, (r, l) -> joined(l, r), within(after, before), how);
      default -> left.outerJoin(right, Topologies::joined, within(before, after), how);
    };
  }

  @SuppressWarnings("deprecation") // what WITHIN means without GRACE PERIOD
  private JoinWindows within(long before, long after) {
    JoinWindows windows = given.hasNonNull("join-grace")
        ? JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(before), duration("join-grace"))
        : JoinWindows.of(Duration.ofMillis(before));
    return windows.before(Duration.ofMillis(before)).after(Duration.ofMillis(after));
  }

  private KStream<String, JsonNode> lookup(
      String kind, KStream<String, JsonNode> stream, KTable<String, JsonNode> table) {
    Joined<String, JsonNode, JsonNode> how = Joined.with(keys, ROWS, ROWS);
    return kind.equals("INNER") ? stream.join(table, Topologies::joined, how)
        : stream.leftJoin(table, Topologies::joined, how);
  }

  private KTable<String, JsonNode> tables(String kind, KTable<String, JsonNode> left, KTable<String, JsonNode> right) {
    return switch (kind) {
      case "INNER" -> left.join(right, Topologies::joined);
      case "LEFT" -> left.leftJoin(right, Topologies::joined);
      case "RIGHT" -> right.leftJoin(left, (r, l) -> joined(l, r));
      default -> left.outerJoin(right, Topologies::joined);
    };
  }

  private KTable<String, JsonNode> foreign(String kind) {
    KTable<String, JsonNode> left = table("l"), right = table("r");
    Function<JsonNode, String> reference = row -> text(row, "F");
    Materialized<String, JsonNode, KeyValueStore<Bytes, byte[]>> store = Materialized.with(keys, ROWS);
    return kind.equals("INNER") ? left.join(right, reference, Topologies::joined, store)
        : left.leftJoin(right, reference, Topologies::joined, store);
  }

  /** The columns of both rows. */
  private static JsonNode joined(JsonNode left, JsonNode right) {
    ObjectNode whole = JSON.createObjectNode();
    for (JsonNode side : new JsonNode[] {left, right}) {
      if (side != null) {
        whole.setAll((ObjectNode) side);
      }
    }
    return whole;
  }

  // --- aggregates

  /** Groups by F: a change takes the old row out of its group and puts the new one into its own. */
  private KTable<String, JsonNode> groups(KTable<String, JsonNode> table) {
    Materialized<String, JsonNode, KeyValueStore<Bytes, byte[]>> store = Materialized.as("groups");
    return table.filter((key, row) -> row != null)
        .groupBy((key, row) -> KeyValue.pair(text(row, "F"), row), Grouped.with(groups, ROWS))
        .aggregate(Folds::init, (key, row, state) -> Folds.step(row, state), (key, row, state) -> Folds.undo(row, state),
            store.withKeySerde(groups).withValueSerde(ROWS));
  }

  private KStream<String, JsonNode> sessions(KStream<String, JsonNode> stream) {
    SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(duration("gap"), duration("grace"));
    Materialized<String, JsonNode, SessionStore<Bytes, byte[]>> store = Materialized.as("sessions");
    SessionWindowedKStream<String, JsonNode> groups = grouped(stream).windowedBy(windows);
    if (given.path("final").asBoolean()) {
      groups = groups.emitStrategy(EmitStrategy.onWindowClose());
    }
    return changes(new WindowedSerdes.SessionWindowedSerde<>(this.groups),
        groups.aggregate(Folds::init, (key, row, state) -> Folds.step(row, state),
            (key, one, other) -> Folds.merge(one, other), retained(store)));
  }

  private KStream<String, JsonNode> windows(KStream<String, JsonNode> stream) {
    TimeWindows windows = TimeWindows.ofSizeAndGrace(duration("size"), duration("grace"))
        .advanceBy(duration("advance"));
    Materialized<String, JsonNode, WindowStore<Bytes, byte[]>> store = Materialized.as("windows");
    TimeWindowedKStream<String, JsonNode> groups = grouped(stream).windowedBy(windows);
    if (given.path("final").asBoolean()) {
      groups = groups.emitStrategy(EmitStrategy.onWindowClose());
    }
    return changes(new WindowedSerdes.TimeWindowedSerde<>(this.groups, millis("size")),
        groups.aggregate(Folds::init, (key, row, state) -> Folds.step(row, state), retained(store)));
  }

  private KGroupedStream<String, JsonNode> grouped(KStream<String, JsonNode> stream) {
    KStream<String, JsonNode> rows = stream.filter((key, row) -> row != null);
    String column = given.path("by").asText();
    return column.isEmpty() ? rows.groupByKey(Grouped.with(keys, ROWS))
        : rows.groupBy((key, row) -> text(row, column), Grouped.with(groups, ROWS));
  }

  private KTable<String, JsonNode> counted(KStream<String, JsonNode> stream) {
    Materialized<String, JsonNode, KeyValueStore<Bytes, byte[]>> store = Materialized.as("groups");
    return grouped(stream).aggregate(Folds::init, (key, row, state) -> Folds.step(row, state),
        store.withKeySerde(groups).withValueSerde(ROWS));
  }

  private <S extends org.apache.kafka.streams.processor.StateStore> Materialized<String, JsonNode, S> retained(
      Materialized<String, JsonNode, S> store) {
    Materialized<String, JsonNode, S> typed = store.withKeySerde(groups).withValueSerde(ROWS);
    return given.hasNonNull("retention") ? typed.withRetention(duration("retention")) : typed;
  }

  /** Over several partitions the keys are written as they are, for their bytes decide on the partition. */
  private KStream<String, JsonNode> changes(
      Serde<Windowed<String>> windowed, KTable<Windowed<String>, JsonNode> table) {
    if (given.has("partitions")) {
      table.toStream().to("out", Produced.with(windowed, ROWS));
      return null;
    }
    return table.toStream((key, row) -> key.key() + "@" + key.window().start() + "/" + key.window().end());
  }

  private Duration duration(String name) {
    return Duration.ofMillis(millis(name));
  }

  private long millis(String name) {
    return given.get(name).asLong();
  }

  /** The columns that are no part of the key. */
  private JsonNode selected(JsonNode row) {
    if (row == null || !given.has("columns")) {
      return row;
    }
    ObjectNode some = JSON.createObjectNode();
    given.get("columns").forEach(name -> some.set(name.asText(), row.path(name.asText())));
    return some;
  }

  // --- keys

  /** A column's value as text; of an object, and of two columns, its JSON. */
  private String text(JsonNode row, String column) {
    if (column.equals("F, V")) {
      boolean whole = row != null && row.hasNonNull("F") && row.hasNonNull("V");
      return whole ? JSON.createObjectNode().<ObjectNode>set("F", row.get("F")).set("V", row.get("V")).toString() : null;
    }
    if (row == null || !row.hasNonNull(column)) {
      return null;
    }
    JsonNode value = row.get(column);
    return value.isObject() ? value.toString() : value.asText();
  }

  private String format(String topic) {
    return given.path("formats").path(topic).asText("KAFKA");
  }

  /** The type of what the query groups by. */
  private String type() {
    return given.path("type").asText("STRING");
  }

  /** Keys as texts, whose bytes are those of a type in a format. */
  private static Serde<String> keys(String type, String format) {
    if (format.equals("JSON")) {
      return typed(
          Serdes.String(), type.equals("STRING") ? Topologies::quoted : text -> number(type, text),
          text -> type.equals("STRING") ? read(text.getBytes(StandardCharsets.UTF_8)).asText() : text);
    }
    return switch (type) {
      case "INT" -> typed(Serdes.Integer(), Integer::valueOf, String::valueOf);
      case "BIGINT" -> typed(Serdes.Long(), Long::valueOf, String::valueOf);
      case "DOUBLE" -> typed(Serdes.Double(), Double::valueOf, String::valueOf);
      default -> Serdes.String();
    };
  }

  private static <T> Serde<String> typed(Serde<T> bytes, Function<String, T> read, Function<T, String> shown) {
    return Serdes.serdeFrom(
        (topic, text) -> text == null ? null : bytes.serializer().serialize(topic, read.apply(text)),
        (topic, data) -> data == null ? null : shown.apply(bytes.deserializer().deserialize(topic, data)));
  }

  private static String quoted(String text) {
    return JSON.getNodeFactory().textNode(text).toString();
  }

  /** What is no text, in JSON. */
  private static String number(String type, String text) {
    return switch (type) {
      case "DOUBLE" -> Double.valueOf(text).toString();
      case "DECIMAL(4, 2)" -> new BigDecimal(text).setScale(2).toPlainString();
      default -> text;
    };
  }

  private static JsonNode read(byte[] bytes) {
    try {
      return bytes == null ? null : JSON.readTree(bytes);
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }
}
