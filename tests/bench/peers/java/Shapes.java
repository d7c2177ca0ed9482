import java.time.Duration;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** The topologies of the statements in workloads.py. */
final class Shapes {
  private static final Serde<String> KEYS = Serdes.String();
  private static final Serde<Rows.Order> ORDERS = Json.of(Rows.Order.class);
  private static final Serde<Rows.Count> COUNTS = Json.of(Rows.Count.class);
  private static final long SECOND_MS = 1000L;

  private final StreamsBuilder builder = new StreamsBuilder();
  private final LongAdder seen;
  private final String out;

  private Shapes(LongAdder seen, String out) {
    this.seen = seen;
    this.out = out;
  }

  /** A shape over its topics; {@code seen} counts the records of streams. */
  static Topology of(
      String shape, String left, String right, String out, LongAdder seen, Properties settings) {
    Shapes made = new Shapes(seen, out);
    if (shape.equals("moved-table-join")) { // what is counted lies behind the exchange
      made.joinTable(made.watched(made.moved(left)), right);
      return made.builder.build(settings);
    }
    KStream<String, Rows.Order> orders = made.stream(left, ORDERS);
    switch (shape) {
      case "moved-filter" -> made.filter(orders.selectKey((key, order) -> order.NAME));
      case "filter" -> made.filter(orders);
      case "count" -> made.count(orders);
      case "table-join" -> made.joinTable(orders, right);
      case "windows" -> made.windows(orders);
      case "stream-join" -> made.joinStream(orders, right);
      case "sessions" -> made.sessions(orders);
      default -> throw new IllegalArgumentException(shape);
    }
    return made.builder.build(settings);
  }

  private <T> KStream<String, T> stream(String topic, Serde<T> rows) {
    return watched(builder.stream(topic, Consumed.with(KEYS, rows)));
  }

  private <T> KStream<String, T> watched(KStream<String, T> rows) {
    return rows.peek((key, row) -> seen.increment());
  }

  private KStream<String, Rows.Order> moved(String topic) {
    return builder.stream(topic, Consumed.with(KEYS, ORDERS))
        .selectKey((key, order) -> order.NAME)
        .repartition(Repartitioned.with(KEYS, ORDERS));
  }

  private void filter(KStream<String, Rows.Order> orders) {
    orders
        .filter((key, order) -> order.AMOUNT > 10)
        .mapValues(
            order -> {
              Rows.Labelled made = new Rows.Labelled();
              made.ID = order.ID;
              made.AMOUNT = order.AMOUNT;
              made.LABEL = order.NAME.toUpperCase(Locale.ROOT);
              return made;
            })
        .to(out, Produced.with(KEYS, Json.of(Rows.Labelled.class)));
  }

  private void count(KStream<String, Rows.Order> orders) {
    Serde<Rows.Totals> totals = Json.of(Rows.Totals.class);
    orders
        .groupByKey(Grouped.with(KEYS, ORDERS))
        .aggregate(
            Rows.Totals::new,
            (key, order, total) -> {
              total.C++;
              total.S += order.AMOUNT;
              return total;
            },
            Materialized.<String, Rows.Totals, KeyValueStore<Bytes, byte[]>>as("totals")
                .withKeySerde(KEYS)
                .withValueSerde(totals))
        .toStream()
        .to(out, Produced.with(KEYS, totals));
  }

  private void joinTable(KStream<String, Rows.Order> orders, String topic) {
    Serde<Rows.User> rows = Json.of(Rows.User.class);
    KTable<String, Rows.User> users =
        builder.table(topic, Consumed.with(KEYS, rows), Materialized.as("users"));
    orders
        .join(
            users,
            (order, user) -> {
              Rows.Joined made = new Rows.Joined();
              made.ID = order.ID;
              made.AMOUNT = order.AMOUNT;
              made.NAME = user.NAME;
              made.REGION = user.REGION;
              return made;
            },
            Joined.with(KEYS, ORDERS, rows))
        .to(out, Produced.with(KEYS, Json.of(Rows.Joined.class)));
  }

  private void windows(KStream<String, Rows.Order> orders) {
    orders
        .groupByKey(Grouped.with(KEYS, ORDERS))
        .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(1), Duration.ofHours(24)))
        .count(
            Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows")
                .withKeySerde(KEYS)
                .withValueSerde(Serdes.Long()))
        .toStream()
        .mapValues(Shapes::counted)
        .to(
            out,
            Produced.with(
                WindowedSerdes.timeWindowedSerdeFrom(String.class, SECOND_MS), COUNTS));
  }

  private void sessions(KStream<String, Rows.Order> orders) {
    Duration gap = Duration.ofSeconds(10);
    orders
        .groupByKey(Grouped.with(KEYS, ORDERS))
        .windowedBy(SessionWindows.ofInactivityGapAndGrace(gap, gap))
        .count(
            Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("sessions")
                .withKeySerde(KEYS)
                .withValueSerde(Serdes.Long()))
        .toStream()
        .mapValues(Shapes::counted)
        .to(out, Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), COUNTS));
  }

  private void joinStream(KStream<String, Rows.Order> orders, String topic) {
    Duration within = Duration.ofSeconds(10);
    Serde<Rows.Payment> rows = Json.of(Rows.Payment.class);
    orders
        .join(
            stream(topic, rows),
            (order, payment) -> {
              Rows.Paired made = new Rows.Paired();
              made.ID = order.ID;
              made.AMOUNT = order.AMOUNT;
              made.PAID = payment.PAID;
              return made;
            },
            JoinWindows.ofTimeDifferenceAndGrace(within, within),
            StreamJoined.with(KEYS, ORDERS, rows))
        .to(out, Produced.with(KEYS, Json.of(Rows.Paired.class)));
  }

  private static Rows.Count counted(Long count) {
    if (count == null) {
      return null;
    }
    Rows.Count made = new Rows.Count();
    made.C = count;
    return made;
  }
}
