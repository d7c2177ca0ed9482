package ksql;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The offsets at which a query is to end: it takes what is before them, and no batch afterwards.
 *
 * <p>A partition that they do not name ends where the query begins.
 */
final class Until {
    private static final String OPTION = "untilOffsets";

    private final Map<TopicPartition, Long> ends;

    private Until(Map<TopicPartition, Long> ends) {
        this.ends = ends;
    }

    /** Reads the options of a source; null if the query has no end. */
    static Until of(CaseInsensitiveStringMap options) {
        String offsets = options.get(OPTION);
        return offsets == null ? null : new Until(TimeCut.parse(offsets));
    }

    /** Whether a query that has read up to there has come to its end. */
    boolean isReached(String start) {
        Map<TopicPartition, Long> from = TimeCut.parse(start);
        return ends.entrySet().stream()
            .allMatch(each -> from.getOrDefault(each.getKey(), 0L) >= each.getValue());
    }

    /** What of these ends of partitions is not behind its own, as Spark writes offsets. */
    String clipped(String start, String latest) {
        Map<TopicPartition, Long> from = TimeCut.parse(start);
        Map<TopicPartition, Long> clipped = new HashMap<>();
        TimeCut.parse(latest).forEach((place, end) -> {
            long begin = from.getOrDefault(place, 0L);
            long offset = Math.max(begin, Math.min(end, ends.getOrDefault(place, begin)));
            if (from.containsKey(place) || offset > 0) { // a new partition is not begun at 0 in vain
                clipped.put(place, offset);
            }
        });
        return TimeCut.print(clipped);
    }
}
