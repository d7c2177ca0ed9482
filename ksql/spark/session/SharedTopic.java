package ksql;

import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/**
 * A topic that several queries write: which of them has written what, batch by batch.
 *
 * <p>Over a backlog they take turns by time, see {@link Progress#turn}. So a partition has a portion of
 * one, then a portion of another one for the same time. A reader merges what different queries have
 * written ({@link #lanes}), and its batches end where all of them have come to one time ({@link #rounds}).
 *
 * <p>It is known of so many batches, and until the process ends. Its lock is that of {@link Progress}.
 */
final class SharedTopic {
    private static final int KEPT = 1_024;

    private final Deque<Portion> portions = new ArrayDeque<>();
    private final Map<String, Long> before = new HashMap<>(); // how far each writer was before the first portion
    private final Map<String, Long> written = new HashMap<>(); // the same of what it had written until then
    private final Map<String, Long> reached = new HashMap<>(); // how far each writer is

    /**
     * What a query has written in a batch, or that it had nothing to write up to some time.
     *
     * @param until the time up to which it had processed its inputs then
     * @param from where the topic ended before; empty if it has written nothing
     * @param alone whether no other query wrote meanwhile
     */
    record Portion(
            String writer, long until, Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, boolean alone) {
        boolean isEmpty() {
            return from.equals(to);
        }
    }

    /**
     * Where all writers have come to one time: what each has written is before all that the others will write.
     *
     * @param until the time up to which all have processed their inputs
     */
    record Round(long until, Map<TopicPartition, Long> ends) {
        boolean isWithin(Map<TopicPartition, Long> bounds) {
            return PartitionOffsets.reach(bounds, ends);
        }
    }

    /** A part of a partition; the {@code writer} is 0 if it may have several, else its number. */
    record Lane(long start, long end, int writer) implements Serializable {}

    void add(Portion portion) {
        if (portion.isEmpty() && reached.getOrDefault(portion.writer(), Progress.NOTHING) == portion.until()) {
            return;
        }
        reached.put(portion.writer(), portion.until());
        portions.add(portion);
        if (portions.size() > KEPT) {
            advance(portions.remove(), before, written);
        }
    }

    private static void advance(Portion portion, Map<String, Long> until, Map<String, Long> written) {
        until.put(portion.writer(), portion.until());
        if (!portion.isEmpty()) {
            written.put(portion.writer(), portion.until());
        }
    }

    /** The rounds of those writers, in their order. */
    List<Round> rounds(Set<String> writers) {
        List<Round> rounds = new ArrayList<>();
        Map<String, Long> until = new HashMap<>(before);
        Map<String, Long> last = new HashMap<>(written);
        Map<TopicPartition, Long> ends = new HashMap<>();
        for (Portion each : portions) {
            advance(each, until, last);
            ends.putAll(each.to());
            long all = writers.stream().mapToLong(one -> until.getOrDefault(one, Progress.NOTHING)).min().orElse(Progress.ALL);
            if (all != Progress.NOTHING && writers.stream().allMatch(one -> last.getOrDefault(one, Progress.NOTHING) <= all)) {
                rounds.add(new Round(all, Map.copyOf(ends)));
            }
        }
        return rounds;
    }

    /** A range of a partition by the queries that have written it; one part if it is not known of two. */
    List<Lane> lanes(TopicPartition place, long start, long end) {
        Map<String, Integer> numbers = new HashMap<>();
        List<Lane> lanes = new ArrayList<>();
        long at = start;
        for (Portion each : portions) {
            long from = Math.max(at, each.from().getOrDefault(place, end));
            long to = Math.min(end, each.to().getOrDefault(place, 0L));
            if (!each.alone() || from >= to) {
                continue;
            }
            extend(lanes, at, from, 0);
            extend(lanes, from, to, numbers.computeIfAbsent(each.writer(), one -> numbers.size() + 1));
            at = to;
        }
        extend(lanes, at, end, 0);
        return numbers.size() > 1 ? lanes : List.of(new Lane(start, end, 0));
    }

    private static void extend(List<Lane> lanes, long start, long end, int writer) {
        if (start >= end) {
            return;
        }
        Lane last = lanes.isEmpty() ? null : lanes.get(lanes.size() - 1);
        if (last != null && last.writer() == writer) {
            lanes.set(lanes.size() - 1, new Lane(last.start(), end, writer));
        } else {
            lanes.add(new Lane(start, end, writer));
        }
    }

    SharedTopic copy() {
        SharedTopic copy = new SharedTopic();
        copy.portions.addAll(portions);
        copy.before.putAll(before);
        copy.written.putAll(written);
        return copy;
    }
}
