package ksql;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;

/** What there is to read, from the starts of partitions to their ends. */
final class Behind {
    private final TimeIndex index;
    private final TimeIndex.Unread unread;

    /** @param most how many records a batch may have */
    Behind(TimeIndex index, Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, long most) {
        this.index = index;
        unread = new TimeIndex.Unread(from, to, most);
    }

    /** How many records are before the ends. */
    long count(Map<TopicPartition, Long> ends) {
        long count = 0;
        for (Map.Entry<TopicPartition, Long> end : ends.entrySet()) {
            count += end.getValue() - unread.start(end.getKey());
        }
        return count;
    }

    /** The ends before the first record of each partition at this time or later. */
    Map<TopicPartition, Long> before(long time) {
        return time == Long.MAX_VALUE ? unread.to() : ends(index.from(time, unread));
    }

    /** The same by what readers see: it holds, however the search came to this time. */
    Map<TopicPartition, Long> surelyBefore(long time) {
        return ends(index.seen(time, unread));
    }

    /** Whether what ends a cut at this time is a mark; the next search reads that topic's times. */
    boolean meetsMarks(long time) {
        return time != Long.MAX_VALUE && index.areMarks(index.from(time, unread));
    }

    private Map<TopicPartition, Long> ends(Map<TopicPartition, OffsetAndTimestamp> found) {
        Map<TopicPartition, Long> ends = new HashMap<>();
        unread.to().forEach((place, latest) -> {
            OffsetAndTimestamp first = found.get(place);
            long end = first == null ? latest : Math.min(first.offset(), latest);
            ends.put(place, Math.max(end, unread.start(place)));
        });
        return ends;
    }

    /** The time before which there is no record: here the search begins, not at the epoch. */
    long earliest() {
        return index.fromAnywhere(0, unread).values().stream()
            .filter(Objects::nonNull).mapToLong(OffsetAndTimestamp::timestamp).min().orElse(0);
    }

    /** Whether the query has come to that time in a partition. */
    boolean hasPassed(long time) {
        return index.hasPassed(time, unread);
    }

    /** All before the first ends; then of those before the others, by the order, as many as a batch may have. */
    Map<TopicPartition, Long> some(
            Map<TopicPartition, Long> all, Map<TopicPartition, Long> others, Comparator<TopicPartition> order) {
        List<TopicPartition> places = new ArrayList<>(others.keySet());
        places.sort(order);
        Map<TopicPartition, Long> found = new HashMap<>();
        long left = Math.max(0, unread.most() - count(all));
        for (TopicPartition place : places) {
            long taken = Math.min(left, others.get(place) - all.get(place));
            found.put(place, all.get(place) + taken);
            left -= taken;
        }
        return found;
    }
}
