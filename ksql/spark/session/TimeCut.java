package ksql;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Cuts what a query is behind into micro-batches by time instead of by number.
 *
 * <p>A batch takes from each partition all records before the first one that is later than the cut:
 * so no record of it has its turn after one of the next batch, and a stream's record meets the rows
 * of a table that are older, however many records a batch may have. Of records of one time as many
 * are taken as there may be, in the order in which the query takes them: by topic, then partition.
 *
 * <p>Source: Kafka Streams' choice of the next record among a task's partitions (KIP-695).
 */
final class TimeCut implements AutoCloseable {
    private static final long FIRST_STEP_MS = 1_000;

    private final Comparator<TopicPartition> order;
    private final TimeIndex index;
    private long last;
    private long span;
    private long ended = Progress.ALL;

    /** Reads the options of a source; null if its batches are cut by number. */
    static TimeCut of(CaseInsensitiveStringMap options) {
        String topics = options.get("topicOrder");
        if (topics == null) {
            return null;
        }
        Set<String> marked = Set.of(options.getOrDefault("markedTopics", "").split(","));
        TimeIndex index = new TimeIndex(Consumers.settings(options), marked);
        return new TimeCut(index, List.of(topics.split(",")));
    }

    /** @param topics in the order of the query's sources */
    TimeCut(TimeIndex index, List<String> topics) {
        this.index = index;
        order = Comparator.<TopicPartition>comparingInt(place -> topics.indexOf(place.topic()))
            .thenComparingInt(TopicPartition::partition);
    }

    /** States where the query began to read once; it may have been at the ends of its topics. */
    void begin(String offsets) {
        index.begin(PartitionOffsets.parse(offsets));
    }

    /** The end of a batch, as Spark writes offsets, and the time up to which all is read then. */
    record End(String offsets, long until) {}

    /**
     * Returns the end of a batch of at most so many records.
     *
     * @param seen what the queries say that write what is read
     */
    End end(String start, String latest, long most, Upstreams.Seen seen) {
        Map<TopicPartition, Long> from = PartitionOffsets.parse(start);
        Map<TopicPartition, Long> to = PartitionOffsets.parse(latest);
        ended = Progress.ALL;
        Rounds rounds = new Rounds(seen);
        long until = limit(from, to, seen, rounds, most);
        Map<TopicPartition, Long> found = new TreeMap<>(order);
        Behind behind = new Behind(index, from, to, most);
        SharedTopic.Round round = rounds.end(behind, from, to, most);
        (round != null ? taken(round) : cut(behind, to, most)).forEach((place, offset) -> {
            if (from.containsKey(place) || offset > 0) { // a new partition is not begun at 0 in vain
                found.put(place, offset);
            }
        });
        return new End(PartitionOffsets.print(found), Math.min(until, ended));
    }

    private Map<TopicPartition, Long> taken(SharedTopic.Round round) {
        ended = round.until();
        return round.ends();
    }

    /** What of a batch is before some time. */
    String before(long time, String start, String end, long most) {
        Map<TopicPartition, Long> from = PartitionOffsets.parse(start);
        Map<TopicPartition, Long> to = PartitionOffsets.parse(end);
        Map<TopicPartition, Long> found = new TreeMap<>(order);
        found.putAll(new Behind(index, from, to, most).surelyBefore(time));
        return PartitionOffsets.print(found);
    }

    /** Takes away what queries upstream may still add to; returns the time that they have reached. */
    private long limit(
            Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, Upstreams.Seen seen, Rounds rounds,
            long most) {
        long until = Progress.ALL;
        Map<TopicPartition, Long> visible = Map.copyOf(to);
        for (Upstream each : seen.queries().values()) {
            clip(from, to, each.ends());
        }
        Map<TopicPartition, Long> bounds = Map.copyOf(to);
        for (Upstream each : seen.queries().values()) {
            long reached = each.reached(visible, bounds);
            if (reached != Progress.ALL && isBehind(reached, new Behind(index, from, to, most))) {
                rounds.leave(each); // what it adds comes after later records anyway
                continue;
            }
            until = Math.min(until, reached);
        }
        until = rounds.limit(from, to, until);
        if (until == Progress.NOTHING) {
            to.replaceAll((place, latest) -> from.getOrDefault(place, 0L));
        } else if (until != Progress.ALL) {
            new Behind(index, from, to, most).surelyBefore(until).forEach((place, end) -> {
                if (!rounds.limits(place.topic())) {
                    to.put(place, end);
                }
            });
        }
        return until;
    }

    /** Takes away what lies behind those ends: it is half of a batch, of whatever time. */
    private static void clip(
            Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, Map<TopicPartition, Long> ends) {
        ends.forEach((place, end) -> to.computeIfPresent(
            place, (known, latest) -> Math.max(Math.min(latest, end), from.getOrDefault(place, 0L))));
    }

    /** Whether the query is past that time already, so that it need not wait for what is behind it. */
    private static boolean isBehind(long time, Behind behind) {
        return time != Progress.NOTHING && behind.hasPassed(time + 1); // records of that time are still to come
    }

    private Map<TopicPartition, Long> cut(Behind behind, Map<TopicPartition, Long> to, long most) {
        if (behind.count(to) <= most) {
            return to;
        }
        long begin = last > 0 && behind.count(behind.before(last)) == 0 ? last : behind.earliest();
        long low = begin;
        long high = low;
        long step = Math.max(FIRST_STEP_MS, span / 2);
        Map<TopicPartition, Long> best;
        Map<TopicPartition, Long> over = behind.before(low);
        do {
            best = over;
            low = high;
            high = low > Long.MAX_VALUE - step ? Long.MAX_VALUE : low + step;
            step *= 2;
            over = behind.before(high);
        } while (behind.count(over) <= most);
        while (high - low > 1 && 4 * behind.count(best) < 3 * most) {
            long middle = low + (high - low) / 2;
            Map<TopicPartition, Long> tried = behind.before(middle);
            if (behind.count(tried) <= most) {
                low = middle;
                best = tried;
            } else {
                high = middle;
                over = tried;
            }
        }
        boolean isWithin = high - low <= 1; // among records of one time
        if (behind.meetsMarks(low) || isWithin && behind.meetsMarks(high)) {
            return cut(behind, to, most);
        }
        last = low;
        span = low - begin;
        ended = low;
        return isWithin ? behind.some(best, over, order) : best;
    }

    /** The time after the last records of a batch; {@link Progress#ALL} if readers see none. */
    long after(String start, String end) {
        return index.after(PartitionOffsets.parse(start), PartitionOffsets.parse(end));
    }

    /** Where a topic ends now, with the records of transactions whose end is not marked yet. */
    Map<TopicPartition, Long> writtenEnds(String topic) {
        return index.writtenEnds(topic);
    }

    /** Closes what {@link #writtenEnds} needs, which opens it again. */
    void releaseEnds() {
        index.releaseEnds();
    }

    @Override
    public void close() {
        index.close();
    }
}
