package ksql;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
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
    private WrittenRanges ranges;

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
                String id = each.getValue().get("query").asText();
                Progress.announce(each.getKey(), id, sources, written, begun, now);
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

    /**
     * Restores what the query has written to a topic that others write, too, or read; keeps what it will write.
     *
     * @param source the folder of its source in the checkpoint, as Spark names it
     * @param isRerun whether its last batch is half done
     */
    void restore(String source, TimeCut cut, boolean isRerun) {
        if (sink.isEmpty() || cut == null) {
            return;
        }
        ranges = WrittenRanges.of(source, sink);
        boolean isShared = Progress.isShared(query);
        if (!isShared && !Progress.hasReaders(query)) {
            return;
        }
        List<SharedTopic.Portion> known = ranges.read();
        if (!known.isEmpty()) {
            Progress.restore(query, known, cut.writtenEnds(sink), isRerun);
            save();
            if (!isShared && !transactions) {
                cut.releaseEnds();
            }
        }
    }

    private void save() {
        SharedTopic.Portion portion = Progress.takeUnsaved(query);
        if (portion != null && ranges != null) {
            ranges.add(portion, () -> Progress.written(query));
        }
    }

    void begin() {
        Progress.begin(query);
    }

    void rerun() {
        Progress.rerun(query);
        try {
            Progress.awaitWriters(query);
        } catch (InterruptedException end) {
            throw Consumers.interrupted(end);
        }
    }

    void done(TimeCut cut) {
        long now = System.currentTimeMillis();
        boolean isShared = Progress.isShared(query);
        boolean mayHide = Progress.hasReaders(query) && (transactions || isShared);
        Map<TopicPartition, Long> written = null;
        if (Progress.isInBatch(query) && (mayHide || Progress.isNoted(query))) {
            written = cut.writtenEnds(sink);
        }
        Progress.done(query, written, mayHide, now);
        save();
        if (written != null && !mayHide && !Progress.isNoted(query)) {
            cut.releaseEnds();
        }
    }

    Seen look() {
        long now = System.currentTimeMillis();
        return new Seen(Progress.upstream(query, now), Progress.others(query, now), Progress.open(query, now));
    }

    /** Begins a look; returns the number that {@link #looked} takes. */
    long since() {
        return Progress.since(query, System.currentTimeMillis());
    }

    /** Whether the time of what a look has found is needed. */
    boolean isWatched() {
        return Progress.isWatched(query);
    }

    void looked(long since, long time, boolean isFound) {
        Progress.looked(query, since, time, isFound, System.currentTimeMillis());
    }

    /** Whether others wait for its next look. */
    boolean isWanted() {
        return Progress.isWanted(query);
    }

    /** The time up to which the query may plan a batch; {@link Progress#NOTHING} if it is to wait for its turn. */
    long turn(long until) {
        return Progress.turn(query, until, System.currentTimeMillis());
    }

    boolean changedSince(Seen seen) {
        return !seen.batches().equals(look().batches());
    }

    void behind() {
        Progress.behind(query);
    }

    void planned(long until, boolean batch, TimeCut cut) {
        boolean stated = batch && (Progress.isNoted(query) || Progress.hasReaders(query));
        Progress.planned(query, until, stated ? cut.writtenEnds(sink) : batch ? Map.of() : null);
        save();
    }

    void stop() {
        Progress.stop(query, System.currentTimeMillis());
    }

    /**
     * What the queries upstream have said.
     *
     * @param others the same of those that write this query's topic, too
     * @param open the topics in which one writer is ahead of another one
     */
    record Seen(Map<String, Upstream> queries, List<List<Object>> others, Map<String, Long> open) {
        /** Whether no other query has to do with this one. */
        boolean isAlone() {
            return queries.isEmpty() && others.isEmpty();
        }

        boolean isFree() {
            return open.isEmpty() && queries.values().stream().allMatch(Upstream::isFree);
        }

        Map<String, Long> batches() {
            Map<String, Long> found = new HashMap<>();
            queries.forEach((name, each) -> found.put(name, each.batches()));
            return found;
        }
    }
}
