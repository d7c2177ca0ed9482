import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.internals.StreamsProducer;

/**
 * A case over several partitions. A test driver has one, so there is a driver for each. What a step of the query writes for
 * the next one does not come back to the driver that wrote it: it goes to that of the partition which the step has chosen,
 * or else Kafka's producer by the bytes of the key. A record without key, which may go anywhere, stays where it is.
 */
final class Partitions implements AutoCloseable {
  private static final Set<String> SOURCES = Set.of("l", "r", "s");
  private static final Serializer<byte[]> BYTES = new ByteArraySerializer();

  private record Sent(int partition, String topic, byte[] key, byte[] value, long time) {}

  private final List<TopologyTestDriver> drivers = new ArrayList<>();
  /** The topics between two steps. */
  private final Map<String, TopicPartition> between = new HashMap<>();
  private final Deque<Sent> waiting = new ArrayDeque<>();
  private final ArrayNode results = Topologies.JSON.createArrayNode();

  Partitions(JsonNode given, Path folder) throws Exception {
    int count = given.get("partitions").asInt();
    List<Runnable> looks = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      TopologyTestDriver driver = new TopologyTestDriver(
          Topologies.of(given), Oracle.settings(folder.resolve("" + number)), Instant.EPOCH);
      drivers.add(driver);
      showPartitions(driver, count);
      looks.add(Oracle.looksAtOnce(driver));
      between.putAll(inputs(driver));
      inputs(driver).keySet().retainAll(SOURCES);
    }
    between.keySet().removeAll(SOURCES);
    Topologies.beforeJoin = () -> looks.forEach(Runnable::run);
  }

  /** Takes the records through the whole query one after the other; gives [key, row, time, driver, partition] of the results. */
  ArrayNode run(JsonNode records) throws Exception {
    for (JsonNode record : records) {
      String topic = record.get(0).asText();
      JsonNode key = record.get(1), row = record.get(2);
      waiting.add(new Sent(record.get(4).asInt(), topic,
          key.isNull() ? null : key.asText().getBytes(StandardCharsets.ISO_8859_1),
          row.isNull() ? null : Topologies.ROWS.serializer().serialize(topic, row), record.get(3).asLong()));
      while (!waiting.isEmpty()) {
        pass(waiting.remove());
      }
    }
    return results;
  }

  private void pass(Sent sent) throws Exception {
    TopologyTestDriver driver = drivers.get(sent.partition);
    TopicPartition place = between.get(sent.topic);
    if (place != null) {
      inputs(driver).put(sent.topic, place);
    }
    driver.createInputTopic(sent.topic, BYTES, BYTES).pipeInput(sent.key, sent.value, sent.time);
    inputs(driver).keySet().retainAll(SOURCES);
    for (Map.Entry<String, Queue<ProducerRecord<byte[], byte[]>>> written : written(driver).entrySet()) {
      for (ProducerRecord<byte[], byte[]> each : written.getValue()) {
        if (between.containsKey(written.getKey())) {
          waiting.add(new Sent(chosen(sent.partition, each), each.topic(), each.key(), value(sent.partition, each), each.timestamp()));
        } else if (written.getKey().equals("out")) {
          add(sent.partition, each);
        }
      }
      written.getValue().clear();
    }
  }

  private int chosen(int from, ProducerRecord<byte[], byte[]> record) {
    if (record.partition() != null) {
      return record.partition();
    }
    return record.key() == null ? from : BuiltInPartitioner.partitionForKey(record.key(), drivers.size());
  }

  /** The value; a request of a foreign-key join ends in the partition for the answer, and each driver takes itself for the first one. */
  private static byte[] value(int from, ProducerRecord<byte[], byte[]> record) {
    byte[] value = record.value();
    if (record.topic().contains("SUBSCRIPTION-REGISTRATION")) {
      ByteBuffer.wrap(value).putInt(value.length - Integer.BYTES, from);
    }
    return value;
  }

  private void add(int from, ProducerRecord<byte[], byte[]> record) {
    ArrayNode result = results.addArray();
    result.add(record.key() == null ? null : new String(record.key(), StandardCharsets.ISO_8859_1));
    result.add(Topologies.ROWS.deserializer().deserialize("out", record.value()));
    result.add(record.timestamp()).add(from);
    if (record.key() == null) {
      result.addNull();
    } else {
      result.add(chosen(from, record));
    }
  }

  /** The driver's producer tells of one partition; by this one, steps choose among all. */
  private static void showPartitions(TopologyTestDriver driver, int count) throws Exception {
    MockProducer<byte[], byte[]> producer = new MockProducer<>(Cluster.empty(), true, null, BYTES, BYTES) {
      @Override
      public List<PartitionInfo> partitionsFor(String topic) {
        return IntStream.range(0, count).mapToObj(number -> new PartitionInfo(topic, number, null, null, null)).toList();
      }
    };
    Object within = Oracle.value(TopologyTestDriver.class, "testDriverProducer", driver);
    Oracle.field(TopologyTestDriver.class, "producer").set(driver, producer);
    Oracle.field(StreamsProducer.class, "producer").set(within, producer);
  }

  @SuppressWarnings("unchecked")
  private static Map<String, TopicPartition> inputs(TopologyTestDriver driver) throws Exception {
    return (Map<String, TopicPartition>) Oracle.value(TopologyTestDriver.class, "partitionsByInputTopic", driver);
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Queue<ProducerRecord<byte[], byte[]>>> written(TopologyTestDriver driver) throws Exception {
    return (Map<String, Queue<ProducerRecord<byte[], byte[]>>>)
        Oracle.value(TopologyTestDriver.class, "outputRecordsByTopic", driver);
  }

  @Override
  public void close() {
    Topologies.beforeJoin = () -> {};
    drivers.forEach(TopologyTestDriver::close);
  }
}
