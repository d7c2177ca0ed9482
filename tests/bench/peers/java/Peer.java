import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * Runs one application after the other in one JVM, so that the later ones run compiled code.
 *
 * <p>A line of JSON on the standard input names a shape, its topics and settings; a line on the
 * standard output has the moments of its run.
 */
public final class Peer {
  private static final Duration PATIENCE = Duration.ofMinutes(10);

  private Peer() {}

  /** Serve until the input ends. */
  public static void main(String[] arguments) throws Exception {
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      System.out.println(run(Json.MAPPER.readTree(line)));
      System.out.flush();
    }
  }

  private static ObjectNode run(JsonNode order) throws InterruptedException {
    ObjectNode moments = Json.MAPPER.createObjectNode();
    LongAdder seen = new LongAdder();
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Properties settings = settings(order);
    KafkaStreams streams =
        new KafkaStreams(
            Shapes.of(
                order.get("shape").asText(),
                order.get("left").asText(),
                order.get("right").asText(),
                order.get("out").asText(),
                seen,
                settings),
            settings);
    streams.setUncaughtExceptionHandler(
        problem -> {
          failure.set(problem);
          return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
    long records = order.get("records").asLong();
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    moments.put("start", System.currentTimeMillis());
    streams.start();
    await(seen, records / 4, failure, deadline);
    moments.put("quarter_seen", seen.sum()).put("quarter", System.currentTimeMillis());
    await(seen, records, failure, deadline);
    moments.put("seen", seen.sum()).put("consumed", System.currentTimeMillis());
    streams.close(); // flushes the caches and the producer, and commits
    moments.put("closed", System.currentTimeMillis());
    streams.cleanUp();
    if (failure.get() != null) {
      moments.put("failure", failure.get().toString());
    }
    return moments;
  }

  private static void await(
      LongAdder seen, long goal, AtomicReference<Throwable> failure, long deadline)
      throws InterruptedException {
    while (seen.sum() < goal && failure.get() == null && System.nanoTime() < deadline) {
      Thread.sleep(2);
    }
  }

  private static Properties settings(JsonNode order) {
    Properties made = new Properties();
    made.put("application.id", order.get("application").asText());
    made.put("bootstrap.servers", order.get("bootstrap").asText());
    made.put("state.dir", order.get("state").asText());
    made.put("statestore.cache.max.bytes", order.get("cache").asText());
    made.put("num.stream.threads", "2");
    made.put("commit.interval.ms", "2000");
    made.put("topology.optimization", "all");
    made.put("consumer.auto.offset.reset", "earliest");
    return made;
  }
}
