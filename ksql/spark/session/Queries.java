package ksql;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.stream.Collectors;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/** What Python asks of queries again and again, in one call: each call costs more than its answer. */
public final class Queries {
    private Queries() {}

    /** The ids of the runs that are active, joined by commas. */
    public static String active(SparkSession session) {
        return Arrays.stream(session.streams().active())
            .map(query -> query.runId().toString()).collect(Collectors.joining(","));
    }

    /** Spark's reports of the batches that began after a moment, the oldest first, as an array in JSON. */
    public static String batchesAfter(StreamingQuery query, String moment) {
        StreamingQueryProgress[] recent = query.recentProgress();
        Deque<String> batches = new ArrayDeque<>();
        for (int i = recent.length - 1; i >= 0 && recent[i].timestamp().compareTo(moment) > 0; i--) {
            batches.push(recent[i].json());
        }
        return batches.stream().collect(Collectors.joining(",", "[", "]"));
    }
}
