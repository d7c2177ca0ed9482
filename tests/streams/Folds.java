import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** COUNT(*), SUM(V) and COLLECT_LIST(V), which shows the order in which rows were folded. */
final class Folds {
  private Folds() {}

  static JsonNode init() {
    ObjectNode state = Topologies.JSON.createObjectNode();
    state.put("C", 0L).put("S", 0L).putArray("L");
    return state;
  }

  static JsonNode step(JsonNode row, JsonNode given) {
    ObjectNode state = counted(given, 1, row.path("V").asLong());
    list(state).add(row.get("V"));
    return state;
  }

  static JsonNode undo(JsonNode row, JsonNode given) {
    ObjectNode state = counted(given, -1, -row.path("V").asLong());
    ArrayNode list = list(state);
    for (int i = list.size() - 1; i >= 0; i--) {
      JsonNode gone = row.path("V");
      if (list.get(i).equals(gone) || list.get(i).isNull() && (gone.isNull() || gone.isMissingNode())) {
        list.remove(i);
        break;
      }
    }
    return state;
  }

  static JsonNode merge(JsonNode one, JsonNode other) {
    ObjectNode state = counted(one, other.get("C").asLong(), other.get("S").asLong());
    list(state).addAll(list(other));
    return state;
  }

  private static ObjectNode counted(JsonNode given, long count, long sum) {
    ObjectNode state = given.deepCopy();
    state.put("C", state.get("C").asLong() + count);
    return state.put("S", state.get("S").asLong() + sum);
  }

  private static ArrayNode list(JsonNode state) {
    return (ArrayNode) state.get("L");
  }
}
