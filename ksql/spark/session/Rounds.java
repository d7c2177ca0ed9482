package ksql;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;

/**
 * Where batches of a reader may end in the topics that several queries write.
 *
 * <p>In between, one of them is behind another one: what it writes for a time comes after later records.
 */
final class Rounds {
    /** A batch takes more than it may have rather than end in between, up to so many times as much. */
    private static final long MOST_TIMES = 4;

    private final Map<String, SharedTopic> topics = new HashMap<>();
    private final Map<String, Set<String>> writers = new HashMap<>();
    private final Map<String, Set<String>> behind = new HashMap<>();
    private final Set<String> hidden = new HashSet<>(); // topics of which marks may still hide something
    private final Set<String> limited = new HashSet<>();

    Rounds(Upstreams.Seen seen) {
        for (Upstream each : seen.queries().values()) {
            writers.computeIfAbsent(each.sink(), any -> new HashSet<>()).add(each.id());
            if (each.until() != Progress.ALL) {
                behind.computeIfAbsent(each.sink(), any -> new HashSet<>()).add(each.id());
            }
            if (!each.marked()) {
                hidden.add(each.sink());
            }
        }
        writers.values().removeIf(some -> some.size() < 2);
        writers.keySet().forEach(topic -> topics.put(topic, Progress.shared(topic)));
    }

    /** The reader does not wait for this query. */
    void leave(Upstream query) {
        writers.computeIfPresent(query.sink(), (topic, some) -> without(query.id(), some));
        behind.computeIfPresent(query.sink(), (topic, some) -> without(query.id(), some));
    }

    private static Set<String> without(String query, Set<String> some) {
        some.remove(query);
        return some.isEmpty() ? null : some;
    }

    private List<SharedTopic.Round> of(String topic) {
        return topics.get(topic).rounds(writers.get(topic));
    }

    /** Whether it is {@link #limit} that says how far this topic is read. */
    boolean limits(String topic) {
        return limited.contains(topic);
    }

    /** Whether the end of what is read may lie between two rounds. */
    private boolean isBetween(String topic, Map<TopicPartition, Long> to) {
        SharedTopic known = topics.get(topic);
        return behind.containsKey(topic) || known.isOpen(writers.get(topic))
            || hidden.contains(topic) && !PartitionOffsets.reach(to, known.ends());
    }

    /**
     * Takes away what lies behind the last rounds of topics whose writers are behind.
     *
     * @param until the time up to which others let the reader come
     * @return the time up to which these rounds let it come
     */
    long limit(Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, long until) {
        Map<String, SharedTopic.Round> last = new HashMap<>();
        writers.keySet().stream().filter(topic -> isBetween(topic, to)).forEach(limited::add);
        long before;
        do { // a round of one topic may be earlier than that of another one
            before = until;
            for (String topic : limited) {
                last.put(topic, last(of(topic), before, to));
                until = behind.containsKey(topic) ? Math.min(until, last.get(topic).until()) : until;
            }
        } while (until < before);
        last.forEach((topic, round) -> end(topic, round, from, to));
        return until;
    }

    private static SharedTopic.Round last(
            List<SharedTopic.Round> rounds, long until, Map<TopicPartition, Long> bounds) {
        return rounds.stream().filter(each -> each.until() <= until && each.isWithin(bounds))
            .reduce((one, next) -> next).orElse(new SharedTopic.Round(Progress.NOTHING, Map.of()));
    }

    /** Has a topic end with a round, but not before what is read already. */
    private static void end(
            String topic, SharedTopic.Round round, Map<TopicPartition, Long> from, Map<TopicPartition, Long> to) {
        to.replaceAll((place, end) -> place.topic().equals(topic)
            ? Math.max(round.ends().getOrDefault(place, 0L), from.getOrDefault(place, 0L)) : end);
    }

    /** The last round that a batch can take, if there is more than it may have; null if no round bounds it. */
    SharedTopic.Round end(
            Behind unread, Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, long most) {
        if (writers.isEmpty() || unread.count(to) <= most) {
            return null;
        }
        Map<String, List<SharedTopic.Round>> rounds = new HashMap<>();
        writers.keySet().forEach(topic -> rounds.put(topic, of(topic).stream()
            .filter(each -> each.isWithin(to) && !each.isWithin(from)).toList()));
        List<Long> times = List.copyOf(times(rounds));
        SharedTopic.Round within = null; // the last one of few enough records
        SharedTopic.Round next = null;
        int low = 0;
        int high = times.size();
        while (low < high) { // each of them asks the brokers
            int middle = (low + high) / 2;
            long time = times.get(middle);
            SharedTopic.Round round = new SharedTopic.Round(time, ends(time, rounds, unread, from, to));
            if (unread.count(round.ends()) <= most) {
                within = round;
                low = middle + 1;
            } else {
                next = round;
                high = middle;
            }
        }
        if (within != null && unread.count(within.ends()) > 0) {
            return within;
        }
        return next != null && unread.count(next.ends()) <= MOST_TIMES * most ? next : null;
    }

    private static Set<Long> times(Map<String, List<SharedTopic.Round>> rounds) {
        Set<Long> times = new TreeSet<>();
        rounds.values().forEach(some -> some.forEach(each -> times.add(each.until())));
        return times;
    }

    private static Map<TopicPartition, Long> ends(
            long time, Map<String, List<SharedTopic.Round>> rounds, Behind unread,
            Map<TopicPartition, Long> from, Map<TopicPartition, Long> to) {
        if (time == Progress.ALL) {
            return to;
        }
        Map<TopicPartition, Long> ends = new HashMap<>(unread.surelyBefore(time));
        rounds.forEach((topic, some) -> end(topic, last(some, time, to), from, ends));
        return ends;
    }
}
