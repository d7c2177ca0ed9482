package ksql;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The offsets at which a query is to end: it takes what is before them, and no batch afterwards.
 *
 * <p>A partition that they do not name ends where the query begins. The end of a query that runs can be moved.
 */
public final class Until {
    private static final String OPTION = "untilOffsets";
    private static final String NAME = "untilName";
    private static final Map<String, String> MOVED = new ConcurrentHashMap<>();

    private final String query;
    private final String stated;
    private String parsed = "";
    private Map<TopicPartition, Long> ends = Map.of();

    private Until(String query, String stated) {
        this.query = query;
        this.stated = stated;
    }

    /** Moves the end of the query of that name, of those that have one. */
    public static void move(String query, String offsets) {
        MOVED.put(query, offsets);
        Rest.release(query);
    }

    /** Has the query end where it was stated. */
    public static void forget(String query) {
        MOVED.remove(query);
        Rest.release(query);
    }

    /** Reads the options of a source; null if the query has no end. */
    static Until of(CaseInsensitiveStringMap options) {
        String offsets = options.get(OPTION);
        return offsets == null ? null : new Until(options.getOrDefault(NAME, ""), offsets);
    }

    private Map<TopicPartition, Long> ends() {
        String now = MOVED.getOrDefault(query, stated);
        if (!now.equals(parsed)) {
            ends = PartitionOffsets.parse(now);
            parsed = now;
        }
        return ends;
    }

    /** Whether a query that has read up to there has come to its end. */
    boolean isReached(String start) {
        Map<TopicPartition, Long> from = PartitionOffsets.parse(start);
        return ends().entrySet().stream()
            .allMatch(each -> from.getOrDefault(each.getKey(), 0L) >= each.getValue());
    }

    /** What of these ends of partitions is not behind its own, as Spark writes offsets. */
    String clipped(String start, String latest) {
        Map<TopicPartition, Long> from = PartitionOffsets.parse(start);
        Map<TopicPartition, Long> clipped = new HashMap<>();
        Map<TopicPartition, Long> ends = ends();
        PartitionOffsets.parse(latest).forEach((place, end) -> {
            long begin = from.getOrDefault(place, 0L);
            long offset = Math.max(begin, Math.min(end, ends.getOrDefault(place, begin)));
            if (from.containsKey(place) || offset > 0) { // a new partition is not begun at 0 in vain
                clipped.put(place, offset);
            }
        });
        return PartitionOffsets.print(clipped);
    }
}
