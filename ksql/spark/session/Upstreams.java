package ksql;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One query's part in {@link Progress}: what it looks at before a batch, and what it states. */
final class Upstreams {
    static final int TRIES = 5;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Upstreams NONE = new Upstreams("", "", false);

    private final String query;
    private final String sink;
    private final boolean transactions;

    private Upstreams(String query, String sink, boolean transactions) {
        this.query = query;
        this.sink = sink;
        this.transactions = transactions;
    }

    /**
     * Reads the options of a source: {@code queries} has those that run with it, {@code queryName}
     * its own name among them; {@code transactions} whether it writes in such; {@code upstreamWaitMs}
     * how long it waits for one that does not run.
     */
    static Upstreams of(CaseInsensitiveStringMap options) {
        String query = options.get("queryName");
        String queries = options.get("queries");
        if (query == null || queries == null) {
            return NONE;
        }
        long now = System.currentTimeMillis();
        String[] sink = {""};
        try {
            for (Map.Entry<String, JsonNode> each : JSON.readTree(queries).properties()) {
                Set<String> sources = new HashSet<>();
                each.getValue().get("sources").forEach(topic -> sources.add(topic.asText()));
                String written = each.getValue().get("sink").asText();
                long begun = each.getValue().get("begun").asLong();
                Progress.announce(each.getKey(), sources, written, begun, now);
                if (each.getKey().equals(query)) {
                    sink[0] = written;
                }
            }
        } catch (JsonProcessingException problem) {
            throw new IllegalArgumentException(queries, problem);
        }
        Progress.limit(query, options.getLong("upstreamWaitMs", 0));
        return new Upstreams(query, sink[0], options.getBoolean("transactions", false));
    }

    void begin() {
        Progress.begin(query);
    }

    void rerun() {
        Progress.rerun(query);
    }

    void done(TimeCut cut) {
        long now = System.currentTimeMillis();
        boolean stated = Progress.isInBatch(query) && Progress.hasReaders(query)
            && (transactions || Progress.isShared(query));
        Progress.done(query, stated ? cut.writtenEnds(sink) : null, now);
    }

    Seen look() {
        return new Seen(Progress.upstream(query, System.currentTimeMillis()));
    }

    boolean changedSince(Seen seen) {
        return !seen.batches().equals(look().batches());
    }

    void behind() {
        Progress.behind(query);
    }

    void planned(long until, boolean batch, TimeCut cut) {
        boolean stated = batch && Progress.hasReaders(query);
        Progress.planned(query, until, stated ? cut.writtenEnds(sink) : batch ? Map.of() : null);
    }

    void stop() {
        Progress.stop(query, System.currentTimeMillis());
    }

    /** What the queries upstream have said. */
    record Seen(Map<String, Progress.Upstream> queries) {
        boolean isFree() {
            return queries.values().stream().allMatch(Progress.Upstream::isFree);
        }

        Map<String, Long> batches() {
            Map<String, Long> found = new HashMap<>();
            queries.forEach((name, each) -> found.put(name, each.batches()));
            return found;
        }
    }
}
