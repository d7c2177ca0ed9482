package ksql;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;

/**
 * Finds records by their times: in the brokers' index, or among the records themselves.
 *
 * <p>The index of a topic that is written in transactions has their marks as well, which have the
 * time at which they were written, so that it is of no use.
 */
final class TimeIndex implements AutoCloseable {
    private static final int LITTLE = 1 << 16;

    private final Map<String, Object> client;
    private final Set<String> marked;
    private final Map<TopicPartition, RecordTimes> times = new HashMap<>();
    private final Map<TopicPartition, Long> records = new HashMap<>(); // of the index, that are no marks
    private Map<TopicPartition, Long> begins = Map.of();
    private KafkaConsumer<byte[], byte[]> consumer;
    private KafkaConsumer<byte[], byte[]> looking;
    private KafkaConsumer<byte[], byte[]> uncommitted;

    /**
     * What a query has to read: from the starts of partitions to their ends.
     *
     * @param most how many records a batch may have
     */
    record Unread(Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, long most) {
        long start(TopicPartition place) {
            return from.getOrDefault(place, 0L);
        }
    }

    /**
     * @param marked the topics that are known to be written in transactions. Of others that is
     *     noticed when a cut comes to a mark
     */
    TimeIndex(Map<String, Object> client, Set<String> marked) {
        this.client = client;
        this.marked = new HashSet<>(marked);
    }

    /** States where the query began to read once; it may have been at the ends of its topics. */
    void begin(Map<TopicPartition, Long> offsets) {
        begins = offsets;
    }

    /**
     * The first record to read of each partition at this time or later.
     *
     * <p>Brokers look at the whole partition. Where they find one that was taken, though the query has
     * not come to that time there, the one that was taken is far ahead; then the next records are read.
     */
    Map<TopicPartition, OffsetAndTimestamp> from(long time, Unread unread) {
        Map<TopicPartition, OffsetAndTimestamp> found = fromAnywhere(time, unread);
        return Consumers.stoppable(() -> {
            found.replaceAll((place, first) -> {
                boolean isTaken = first != null && first.offset() < unread.start(place);
                return isTaken && !taken(place, unread).hasPassed(time)
                    ? times(place).first(time, unread.to().get(place), unread.most())
                    : first;
            });
            return found;
        });
    }

    /** The same; in the brokers' index it may be one that was taken. */
    Map<TopicPartition, OffsetAndTimestamp> fromAnywhere(long time, Unread unread) {
        Map<TopicPartition, Long> asked = new HashMap<>();
        Map<TopicPartition, OffsetAndTimestamp> found = new HashMap<>();
        return Consumers.stoppable(() -> {
            unread.to().forEach((place, end) -> {
                if (!marked.contains(place.topic())) {
                    asked.put(place, time);
                } else {
                    found.put(place, taken(place, unread).first(time, end, unread.most()));
                }
            });
            if (!asked.isEmpty()) {
                found.putAll(consumer().offsetsForTimes(asked));
            }
            return found;
        });
    }

    /** The same by what readers see. */
    Map<TopicPartition, OffsetAndTimestamp> seen(long time, Unread unread) {
        Map<TopicPartition, OffsetAndTimestamp> found = from(time, unread);
        while (areMarks(found)) {
            found = from(time, unread);
        }
        return found;
    }

    /** Whether the query has come to that time in a partition. */
    boolean hasPassed(long time, Unread unread) {
        Map<TopicPartition, OffsetAndTimestamp> found = seen(time, unread);
        return Consumers.stoppable(() -> unread.to().keySet().stream().anyMatch(place -> {
            if (marked.contains(place.topic())) {
                return taken(place, unread).hasPassed(time);
            }
            OffsetAndTimestamp first = found.get(place);
            boolean isTaken = first != null && first.offset() < unread.start(place);
            return isTaken && taken(place, unread).hasPassed(time);
        }));
    }

    /** A partition's times, of which all before the start was taken. */
    private RecordTimes taken(TopicPartition place, Unread unread) {
        times(place).begin(unread.start(place), begins.getOrDefault(place, 0L));
        return times(place);
    }

    /**
     * Whether the index has found something that readers do not see: the mark of a transaction, or a
     * record of an aborted one. Then the topic's times are read from now on.
     */
    boolean areMarks(Map<TopicPartition, OffsetAndTimestamp> found) {
        Map<TopicPartition, Long> unsure = new HashMap<>();
        found.forEach((place, first) -> {
            if (first != null && !marked.contains(place.topic())
                    && !Objects.equals(records.get(place), first.offset())) {
                unsure.put(place, first.offset());
            }
        });
        int known = marked.size();
        Consumers.stoppable(() -> visible(unsure)).forEach((place, offset) -> {
            if (offset.equals(unsure.get(place))) {
                records.put(place, offset);
            } else {
                marked.add(place.topic());
            }
        });
        return marked.size() > known;
    }

    /** The offsets of the first records that readers see from these offsets on, or of what is behind them. */
    private Map<TopicPartition, Long> visible(Map<TopicPartition, Long> from) {
        Map<TopicPartition, Long> seen = new HashMap<>();
        if (from.isEmpty()) {
            return seen;
        }
        looking().assign(from.keySet());
        looking().resume(from.keySet());
        from.forEach(looking()::seek);
        while (seen.size() < from.size()) {
            ConsumerRecords<byte[], byte[]> read = looking().poll(RecordTimes.POLL);
            from.forEach((place, offset) -> {
                if (!read.records(place).isEmpty()) {
                    seen.putIfAbsent(place, read.records(place).get(0).offset());
                } else if (looking().position(place) > offset) {
                    seen.putIfAbsent(place, looking().position(place));
                }
            });
            looking().pause(seen.keySet());
        }
        return seen;
    }

    private RecordTimes times(TopicPartition place) {
        return times.computeIfAbsent(place, known -> new RecordTimes(known, consumer(), looking()));
    }

    /**
     * The time after the last records between these offsets; {@link Progress#ALL} if there are none to see.
     *
     * <p>A few of each partition are read.
     */
    long after(Map<TopicPartition, Long> from, Map<TopicPartition, Long> to) {
        Map<TopicPartition, Long> ends = new HashMap<>(to);
        ends.keySet().removeIf(place -> to.get(place) <= from.getOrDefault(place, 0L));
        return Consumers.stoppable(() -> {
            looking().endOffsets(ends.keySet()).forEach((place, end) -> ends.merge(place, end, Math::min));
            looking().assign(ends.keySet());
            looking().resume(ends.keySet());
            ends.forEach((place, end) -> looking().seek(
                place, Math.max(from.getOrDefault(place, 0L), end - RecordTimes.FIRST_LOOK_BACK)));
            return after(ends);
        });
    }

    private long after(Map<TopicPartition, Long> ends) {
        long last = Progress.NOTHING;
        Set<TopicPartition> left = new HashSet<>(ends.keySet());
        while (true) {
            left.removeIf(place -> looking().position(place) >= ends.get(place));
            if (left.isEmpty()) {
                return last == Progress.NOTHING ? Progress.ALL : last;
            }
            Set<TopicPartition> read = new HashSet<>(ends.keySet());
            read.removeAll(left);
            looking().pause(read);
            for (ConsumerRecord<byte[], byte[]> each : looking().poll(RecordTimes.POLL)) {
                TopicPartition place = new TopicPartition(each.topic(), each.partition());
                last = each.offset() < ends.get(place) ? Math.max(last, each.timestamp() + 1) : last;
            }
        }
    }

    /** Where a topic ends now, with the records of transactions whose end is not marked yet. */
    Map<TopicPartition, Long> writtenEnds(String topic) {
        if (uncommitted == null) {
            Map<String, Object> all = new HashMap<>(client);
            all.put("isolation.level", "read_uncommitted");
            uncommitted = Consumers.of(all);
        }
        return Consumers.stoppable(() -> {
            List<TopicPartition> places = new ArrayList<>();
            uncommitted.partitionsFor(topic).forEach(
                each -> places.add(new TopicPartition(topic, each.partition())));
            return uncommitted.endOffsets(places);
        });
    }

    /** Closes what {@link #writtenEnds} needs, which opens it again. */
    void releaseEnds() {
        if (uncommitted != null) {
            uncommitted.close();
            uncommitted = null;
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        if (consumer == null) {
            consumer = Consumers.of(client);
        }
        return consumer;
    }

    private KafkaConsumer<byte[], byte[]> looking() {
        if (looking == null) {
            Map<String, Object> little = new HashMap<>(client);
            little.put("max.partition.fetch.bytes", LITTLE);
            looking = Consumers.of(little);
        }
        return looking;
    }

    @Override
    public void close() {
        times.clear();
        for (KafkaConsumer<byte[], byte[]> each : open()) {
            each.close();
        }
        consumer = null;
        looking = null;
        uncommitted = null;
    }

    private List<KafkaConsumer<byte[], byte[]>> open() {
        List<KafkaConsumer<byte[], byte[]>> open = new ArrayList<>();
        open.add(consumer);
        open.add(looking);
        open.add(uncommitted);
        open.removeIf(Objects::isNull);
        return open;
    }
}
