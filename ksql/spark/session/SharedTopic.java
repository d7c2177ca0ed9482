package ksql;

import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;

/**
 * A topic that several queries write: which of them has written what, batch by batch.
 *
 * <p>Over a backlog they take turns by time, see {@link Progress#turn}. So a partition has a portion of
 * one, then a portion of another one for the same time. A reader merges what different queries have
 * written ({@link #lanes}), and its batches end where all of them have come to one time ({@link #rounds}).
 *
 * <p>It is known of so many batches; each writer's checkpoint keeps its own, see {@link WrittenRanges}. Its lock
 * is that of {@link Progress}.
 */
final class SharedTopic {
    private static final int KEPT = 1_024;

    private final Deque<Portion> portions = new ArrayDeque<>();
    private final Map<String, State> before = new HashMap<>(); // of each writer before the first portion

    /**
     * What a query has written in a batch, or that it had nothing to write up to some time.
     *
     * @param until the time up to which it had processed its inputs then
     * @param from where the topic ended before; empty if it has written nothing
     * @param alone whether no other query wrote meanwhile
     * @param since, asOf all that had arrived by the one number is processed then, and nothing that came
     *     after the other one
     * @param number its place among all portions
     */
    record Portion(
            String writer, long until, Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, boolean alone,
            long since, long asOf, long number) {
        boolean isEmpty() {
            return from.equals(to);
        }

        /** The same with another end. */
        Portion until(Map<TopicPartition, Long> end) {
            return new Portion(writer, until, from, end, alone, since, asOf, number);
        }
    }

    /** How far a writer is, and what it has written last. */
    private record State(long until, long since, long writtenUntil, long writtenAsOf) {
        static final State UNKNOWN = new State(Progress.NOTHING, 0, Progress.NOTHING, 0);

        State after(Portion next) {
            return next.isEmpty()
                ? new State(next.until(), next.since(), writtenUntil, writtenAsOf)
                : new State(next.until(), next.since(), next.until(), next.asOf());
        }

        /** Whether what it will write is after all that the other one has written. */
        boolean isAfter(State other) {
            return until != Progress.ALL && until >= other.writtenUntil || since >= other.writtenAsOf;
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
        if (portion.isEmpty() && replace(portion)) {
            return;
        }
        portions.add(portion);
        if (portions.size() > KEPT) {
            advance(before, portions.remove());
        }
    }

    /** Adds what was written before; what is known already is left out. */
    void restore(Collection<Portion> some) {
        Map<Long, Portion> all = new TreeMap<>();
        some.forEach(each -> all.put(each.number(), each));
        portions.forEach(each -> all.put(each.number(), each));
        portions.clear();
        all.values().forEach(this::add);
    }

    /** What one writer has written, as far as it is known. */
    List<Portion> of(String writer) {
        return portions.stream().filter(each -> each.writer().equals(writer)).toList();
    }

    /** Where the topic ended before what others have begun to write after that number; else those ends. */
    Map<TopicPartition, Long> endsBeforeNext(Portion portion, Map<TopicPartition, Long> ends) {
        Map<TopicPartition, Long> found = new HashMap<>(ends);
        portions.stream().filter(each -> each.number() > portion.number() && !each.isEmpty())
            .forEach(each -> each.from().forEach((place, start) -> found.merge(place, start, Math::min)));
        return found;
    }

    /** Replaces the same of the writer, if nothing was written since; returns whether it was there. */
    private boolean replace(Portion empty) {
        Deque<Portion> last = new ArrayDeque<>();
        boolean isKnown = false;
        while (!isKnown && !portions.isEmpty() && portions.getLast().isEmpty()) {
            Portion each = portions.removeLast();
            isKnown = each.writer().equals(empty.writer()) && each.until() == empty.until();
            last.push(isKnown ? empty : each);
        }
        portions.addAll(last);
        return isKnown;
    }

    private static void advance(Map<String, State> states, Portion portion) {
        states.merge(portion.writer(), State.UNKNOWN.after(portion), (known, any) -> known.after(portion));
    }

    /** The rounds of those writers, in their order. */
    List<Round> rounds(Set<String> writers) {
        List<Round> rounds = new ArrayList<>();
        Map<String, State> states = new HashMap<>(before);
        Map<TopicPartition, Long> ends = new HashMap<>();
        for (Portion each : portions) {
            advance(states, each);
            ends.putAll(each.to());
            long until = until(writers, states);
            if (until != Progress.NOTHING) {
                rounds.add(new Round(until, Map.copyOf(ends)));
            }
        }
        return rounds;
    }

    /** Where what is known of it ends. */
    Map<TopicPartition, Long> ends() {
        Map<TopicPartition, Long> ends = new HashMap<>();
        portions.forEach(each -> ends.putAll(each.to()));
        return ends;
    }

    /** Whether one of those writers is ahead of another one. */
    boolean isOpen(Set<String> writers) {
        Map<String, State> states = new HashMap<>(before);
        portions.forEach(each -> advance(states, each));
        return !portions.isEmpty() && until(writers, states) == Progress.NOTHING;
    }

    /** The time up to which all have processed their inputs; {@link Progress#NOTHING} if one is ahead. */
    private static long until(Set<String> writers, Map<String, State> states) {
        List<State> all = writers.stream().map(one -> states.getOrDefault(one, State.UNKNOWN)).toList();
        boolean isRound = all.stream().allMatch(one ->
            all.stream().allMatch(other -> one == other || one.isAfter(other)));
        return isRound ? all.stream().mapToLong(State::until).min().orElse(Progress.ALL) : Progress.NOTHING;
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
        return copy;
    }
}
