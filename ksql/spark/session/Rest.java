package ksql;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The rest of a query that has nothing to do: until there may be something, or for some seconds.
 *
 * <p>A query that looked and found nothing need not look again before records arrive or those
 * upstream of it go on. It rests within Spark's trigger: a trigger that finds nothing costs a
 * millisecond, and hundreds of queries have them.
 */
public final class Rest {
    /** A query with longer pauses is to have them. */
    private static final long LONGEST_MS = 100;
    /** It looks by itself all the same: for new partitions, and for topics that are gone. */
    private static final long LOOK_MS = 3_000;
    /** The same of one that waits for other queries. */
    private static final long LINKED_LOOK_MS = 1_000;
    /** Those that rest now, by the names of their queries; guarded by the lock of {@link Progress}. */
    private static final Map<String, Rest> RESTING = new HashMap<>();

    private final String query;
    private final long triggerMs;
    private final Upstreams upstreams;
    private final Arrivals arrivals;
    private String start;
    private Map<TopicPartition, Long> ends = Map.of();
    private Upstreams.Seen seen;
    private long lookedMs;
    private boolean off;
    private boolean woken;
    private boolean released;
    private long restedMs;

    private Rest(String query, long triggerMs, Upstreams upstreams, Arrivals arrivals) {
        this.query = query;
        this.triggerMs = triggerMs;
        this.upstreams = upstreams;
        this.arrivals = arrivals;
        off = triggerMs <= 0 || triggerMs > LONGEST_MS;
    }

    /** Reads the options of a source: {@code triggerMs} is its trigger's interval, {@code restName} its query. */
    static Rest of(CaseInsensitiveStringMap options, Upstreams upstreams) {
        return new Rest(
            options.getOrDefault("restName", ""), options.getLong("triggerMs", 0), upstreams,
            Arrivals.of(Consumers.settings(options)));
    }

    /** Has a query that rests end its trigger without a look: it is to end, or to have other limits. */
    public static void release(String query) {
        synchronized (Progress.class) {
            Rest resting = RESTING.get(query);
            if (resting != null) {
                resting.released = true;
                Progress.class.notifyAll();
            }
        }
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

    /** Waits until a look is due; returns whether the trigger is to end without one. */
    boolean holds(String from) {
        woken = false;
        if (off || !from.equals(start)) {
            return false;
        }
        long since = System.nanoTime();
        begin();
        try {
            return !isLookDue();
        } catch (InterruptedException end) {
            throw Consumers.interrupted(end);
        } finally {
            leave();
            restedMs += (System.nanoTime() - since) / 1_000_000;
        }
    }

    /** How long it has rested since this was called before, in ms. */
    long takeRestedMs() {
        long rested = restedMs;
        restedMs = 0;
        return rested;
    }

    private void begin() {
        synchronized (Progress.class) {
            released = false;
            RESTING.put(query, this);
        }
    }

    private void leave() {
        synchronized (Progress.class) {
            RESTING.remove(query, this);
        }
    }

    /** What other queries say may change with time and wake nobody: so it looks at that in each interval. */
    private boolean isLookDue() throws InterruptedException {
        boolean isLinked = !seen.isAlone();
        long until = lookedMs + (isLinked ? LINKED_LOOK_MS : LOOK_MS);
        for (long now = System.currentTimeMillis(); now < until; now = System.currentTimeMillis()) {
            woken = arrivals.await(ends, this::isChanged, isLinked ? Math.min(now + triggerMs, until) : until);
            if (released) {
                woken = false;
                return false;
            }
            if (woken) {
                return true;
            }
        }
        return true;
    }

    private boolean isChanged() {
        return released || upstreams.isWanted() || !seen.equals(upstreams.look());
    }

    /** Whether something ended its wait: a look that finds nothing all the same is followed by another wait. */
    boolean isWoken() {
        return woken;
    }
}
