package ksql;

import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The rest of a query that has nothing to do: until its trigger's next moment, or until there may be something.
 *
 * <p>A query that looked and found nothing need not look again before records arrive or those
 * upstream of it go on; then it begins its batch at once instead of at that moment.
 */
final class Rest {
    /** A query with longer pauses is to have them. */
    private static final long LONGEST_MS = 100;
    /** So much of the pause is left to Spark, which ends queries and states their status in it. */
    private static final long LEFT_MS = 10;
    /** It looks by itself all the same: for new partitions, and for topics that are gone. */
    private static final long LOOK_MS = 1_000;

    private final long triggerMs;
    private final Upstreams upstreams;
    private final Arrivals arrivals;
    private String start;
    private Map<TopicPartition, Long> ends = Map.of();
    private Upstreams.Seen seen;
    private long lookedMs;
    private boolean off;
    private boolean woken;

    private Rest(long triggerMs, Upstreams upstreams, Arrivals arrivals) {
        this.triggerMs = triggerMs;
        this.upstreams = upstreams;
        this.arrivals = arrivals;
        off = triggerMs <= LEFT_MS || triggerMs > LONGEST_MS;
    }

    /** Reads the options of a source: {@code triggerMs} is its trigger's interval. */
    static Rest of(CaseInsensitiveStringMap options, Upstreams upstreams) {
        return new Rest(options.getLong("triggerMs", 0), upstreams, Arrivals.of(Consumers.settings(options)));
    }

    /** There is no trigger with an interval. */
    void end() {
        off = true;
    }

    /** The source has looked; it has nothing to do if the end is where it began. */
    void looked(String from, String end, String latest, Upstreams.Seen upstream) {
        start = from.equals(end) ? from : null;
        if (start != null) {
            ends = PartitionOffsets.parse(latest);
            seen = upstream;
            lookedMs = System.currentTimeMillis();
        }
    }

    /** Waits; returns whether the look before holds still. */
    boolean holds(String from) {
        long now = System.currentTimeMillis();
        woken = false;
        if (off || !from.equals(start) || now - lookedMs > LOOK_MS) {
            return false;
        }
        long next = now / triggerMs * triggerMs + triggerMs;
        try {
            woken = arrivals.await(ends, this::isChanged, next - LEFT_MS);
            return !woken;
        } catch (InterruptedException end) {
            throw Consumers.interrupted(end);
        }
    }

    private boolean isChanged() {
        return upstreams.isWanted() || !seen.equals(upstreams.look());
    }

    /** Whether something ended its wait: a look that finds nothing all the same is followed by another wait. */
    boolean isWoken() {
        return woken;
    }
}
