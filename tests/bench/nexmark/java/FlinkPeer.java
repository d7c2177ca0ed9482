import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/**
 * Runs one query of Flink SQL after the other in one JVM, each in a local cluster of two slots.
 *
 * <p>A line of JSON on the standard input has the statements, the last of which is an INSERT over
 * bounded sources, and the settings; a line on the standard output has the times of its run.
 */
public final class FlinkPeer {
  private static final int SLOTS = 2;
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private FlinkPeer() {}

  /** Serve until the input ends. */
  public static void main(String[] arguments) throws Exception {
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      System.out.println(run(MAPPER.readTree(line)));
      System.out.flush();
    }
  }

  private static ObjectNode run(JsonNode order) {
    ObjectNode times = MAPPER.createObjectNode();
    times.put("start", System.currentTimeMillis());
    try {
      StreamTableEnvironment tables = environment(order);
      TableResult result = null;
      for (JsonNode statement : order.get("statements")) {
        result = tables.executeSql(statement.asText());
      }
      result.await();
      times.put("finished", System.currentTimeMillis());
      times.put(
          "running", result.getJobClient().get().getJobExecutionResult().get().getNetRuntime());
    } catch (Exception problem) {
      times.put("failure", reason(problem));
    }
    return times;
  }

  private static StreamTableEnvironment environment(JsonNode order) {
    Configuration settings = new Configuration();
    for (Map.Entry<String, JsonNode> each : order.get("settings").properties()) {
      settings.setString(each.getKey(), each.getValue().asText());
    }
    StreamExecutionEnvironment slots =
        StreamExecutionEnvironment.createLocalEnvironment(SLOTS, settings);
    StreamTableEnvironment tables = StreamTableEnvironment.create(slots);
    for (Map.Entry<String, JsonNode> each : order.get("tables").properties()) {
      tables.getConfig().set(each.getKey(), each.getValue().asText());
    }
    return tables;
  }

  private static String reason(Throwable problem) {
    StringBuilder text = new StringBuilder();
    for (Throwable each = problem; each != null; each = each.getCause()) {
      text.append(each).append("; ");
    }
    return text.toString();
  }
}
