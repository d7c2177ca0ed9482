import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.internals.ProcessorNode;
import org.apache.kafka.streams.processor.internals.ProcessorTopology;
import org.apache.kafka.streams.test.TestRecord;

/** Reads a case per line, answers its output per line: {"out": [[key, row, time], ..]} or {"error": ..}; see Partitions, too. */
public final class Oracle {
  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    Path folder = Path.of(args[0]);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      ObjectNode answer = Topologies.JSON.createObjectNode();
      try {
        answer.set("out", run(Topologies.JSON.readTree(line), Files.createTempDirectory(folder, "case")));
      } catch (Exception error) {
        answer.put("error", error.toString());
      }
      out.println(answer);
    }
  }

  private static ArrayNode run(JsonNode given, Path folder) throws Exception {
    if (given.has("partitions")) {
      try (Partitions partitions = new Partitions(given, folder)) {
        return partitions.run(given.get("records"));
      }
    }
    ArrayNode results = Topologies.JSON.createArrayNode();
    try (TopologyTestDriver driver = new TopologyTestDriver(Topologies.of(given), settings(folder), Instant.EPOCH)) {
      Topologies.beforeJoin = looksAtOnce(driver);
      TestOutputTopic<String, JsonNode> sink =
          driver.createOutputTopic("out", new StringDeserializer(), Topologies.ROWS.deserializer());
      for (JsonNode record : given.get("records")) {
        TestInputTopic<String, JsonNode> topic = driver.createInputTopic(
            record.get(0).asText(), new StringSerializer(), Topologies.ROWS.serializer());
        JsonNode key = record.get(1), row = record.get(2);
        topic.pipeInput(key.isNull() ? null : key.asText(), row.isNull() ? null : row, record.get(3).asLong());
      }
      for (TestRecord<String, JsonNode> each : sink.readRecordsToList()) {
        results.addArray().add(each.key()).add(each.value()).add(each.timestamp());
      }
    }
    return results;
  }

  /**
   * Joins of streams look for records without match only now and then. The intervals of wall-clock time are
   * switched off by settings; what is left is a shortcut by the time of the last one that was seen, which may
   * pass over others. The trackers of that time are to be set back before each record, so that each one looks.
   */
  static Runnable looksAtOnce(TopologyTestDriver driver) throws Exception {
    List<Object> trackers = new ArrayList<>();
    ProcessorTopology topology = (ProcessorTopology) value(TopologyTestDriver.class, "processorTopology", driver);
    for (ProcessorNode<?, ?, ?, ?> node : topology.processors()) {
      Object processor = value(ProcessorNode.class, "processor", node);
      for (Class<?> type = processor == null ? null : processor.getClass(); type != null; type = type.getSuperclass()) {
        for (Field field : type.getDeclaredFields()) {
          if (field.getName().equals("sharedTimeTracker")) {
            trackers.add(value(type, field.getName(), processor));
          }
        }
      }
    }
    return () -> trackers.forEach(Oracle::setBack);
  }

  private static void setBack(Object tracker) {
    try {
      field(tracker.getClass(), "minTime").setLong(tracker, Long.MIN_VALUE / 2);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  static Object value(Class<?> type, String name, Object of) throws Exception {
    return field(type, name).get(of);
  }

  static Field field(Class<?> type, String name) throws ReflectiveOperationException {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  static Properties settings(Path folder) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "oracle");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
    settings.put(StreamsConfig.STATE_DIR_CONFIG, folder.toString());
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, org.apache.kafka.common.serialization.Serdes.StringSerde.class);
    settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
    settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
    return settings;
  }
}
