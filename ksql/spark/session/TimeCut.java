package ksql;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
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
    private static final String CLIENT = "kafka.";
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long FIRST_STEP_MS = 1_000;
    private static final int LITTLE = 1 << 16;
    private static final long LOOK_BACK = 1_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, Object> client;
    private final Comparator<TopicPartition> order;
    private final Set<String> marked;
    private final Map<TopicPartition, Times> times = new HashMap<>();
    private final Map<TopicPartition, Long> records = new HashMap<>(); // of the index, that are no marks
    private Map<TopicPartition, Long> begins = Map.of();
    private KafkaConsumer<byte[], byte[]> consumer;
    private KafkaConsumer<byte[], byte[]> looking;
    private KafkaConsumer<byte[], byte[]> uncommitted;
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
        return new TimeCut(client(options), List.of(topics.split(",")), marked);
    }

    /** The settings of Kafka's client among the options of a source. */
    static Map<String, Object> client(CaseInsensitiveStringMap options) {
        Map<String, Object> client = new HashMap<>();
        options.asCaseSensitiveMap().forEach((name, value) -> {
            if (name.startsWith(CLIENT)) {
                client.put(name.substring(CLIENT.length()), value);
            }
        });
        return client;
    }

    /**
     * @param topics in the order of the query's sources
     * @param marked those that are known to be written in transactions: the brokers' index of times has
     *     their marks as well, which have the time at which they were written, so that it is of no use.
     *     Of others that is noticed when a cut comes to a mark
     */
    TimeCut(Map<String, Object> client, List<String> topics, Set<String> marked) {
        this.client = client;
        this.marked = new HashSet<>(marked);
        order = Comparator.<TopicPartition>comparingInt(place -> topics.indexOf(place.topic()))
            .thenComparingInt(TopicPartition::partition);
    }

    /** States where the query began to read once; it may have been at the ends of its topics. */
    void begin(String offsets) {
        begins = parse(offsets);
    }

    private long firstRead(TopicPartition place) {
        return begins.getOrDefault(place, 0L);
    }

    /** The end of a batch, as Spark writes offsets, and the time up to which all is read then. */
    record End(String offsets, long until) {}

    /**
     * Returns the end of a batch of at most so many records.
     *
     * @param seen what the queries say that write what is read
     */
    End end(String start, String latest, long most, Upstreams.Seen seen) {
        Map<TopicPartition, Long> from = parse(start);
        Map<TopicPartition, Long> to = parse(latest);
        long until = limit(from, to, seen, most);
        Map<TopicPartition, Long> found = new TreeMap<>(order);
        cut(new Behind(from, to, most), to, most).forEach((place, offset) -> {
            if (from.containsKey(place) || offset > 0) { // a new partition is not begun at 0 in vain
                found.put(place, offset);
            }
        });
        return new End(print(found), Math.min(until, ended));
    }

    /** Takes away what queries upstream may still add to; returns the time that they have reached. */
    private long limit(
            Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, Upstreams.Seen seen, long most) {
        long until = Progress.ALL;
        Map<TopicPartition, Long> visible = Map.copyOf(to);
        for (Progress.Upstream each : seen.queries().values()) {
            long reached = each.isSeen(visible) ? each.until() : Progress.NOTHING;
            if (reached != Progress.ALL && isBehind(reached, new Behind(from, to, most))) {
                continue; // what it adds comes after later records anyway
            }
            until = Math.min(until, reached);
            each.ends().forEach((place, end) -> to.computeIfPresent(
                place, (known, latest) -> Math.max(Math.min(latest, end), from.getOrDefault(place, 0L))));
        }
        if (until == Progress.NOTHING) {
            to.replaceAll((place, latest) -> from.getOrDefault(place, 0L));
        } else if (until != Progress.ALL) {
            to.putAll(new Behind(from, to, most).surelyBefore(until));
        }
        return until;
    }

    /** Whether records of that time or later were read already. */
    private static boolean isBehind(long time, Behind behind) {
        return time != Progress.NOTHING && behind.hasRead(time);
    }

    private Map<TopicPartition, Long> cut(Behind behind, Map<TopicPartition, Long> to, long most) {
        ended = Progress.ALL;
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
        return isWithin ? behind.some(best, over, most) : best;
    }

    /**
     * Whether the index has found something that readers do not see: the mark of a transaction, or a
     * record of an aborted one. Then the topic's times are read from now on.
     */
    private boolean areMarks(Map<TopicPartition, OffsetAndTimestamp> found) {
        Map<TopicPartition, Long> unsure = new HashMap<>();
        found.forEach((place, first) -> {
            if (first != null && !marked.contains(place.topic())
                    && !Objects.equals(records.get(place), first.offset())) {
                unsure.put(place, first.offset());
            }
        });
        int known = marked.size();
        stoppable(() -> visible(unsure)).forEach((place, offset) -> {
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
        if (looking == null) {
            Map<String, Object> little = new HashMap<>(client);
            little.put("max.partition.fetch.bytes", LITTLE);
            looking = consumer(little);
        }
        looking.assign(from.keySet());
        looking.resume(from.keySet());
        from.forEach(looking::seek);
        while (seen.size() < from.size()) {
            ConsumerRecords<byte[], byte[]> read = looking.poll(POLL);
            from.forEach((place, offset) -> {
                if (!read.records(place).isEmpty()) {
                    seen.putIfAbsent(place, read.records(place).get(0).offset());
                } else if (looking.position(place) > offset) {
                    seen.putIfAbsent(place, looking.position(place));
                }
            });
            looking.pause(seen.keySet());
        }
        return seen;
    }

    private Times times(TopicPartition place) {
        return times.computeIfAbsent(place, Times::new);
    }

    /** Where a topic ends now, with the records of transactions whose end is not marked yet. */
    Map<TopicPartition, Long> writtenEnds(String topic) {
        if (uncommitted == null) {
            Map<String, Object> all = new HashMap<>(client);
            all.put("isolation.level", "read_uncommitted");
            uncommitted = consumer(all);
        }
        return stoppable(() -> {
            List<TopicPartition> places = new ArrayList<>();
            uncommitted.partitionsFor(topic).forEach(
                each -> places.add(new TopicPartition(topic, each.partition())));
            return uncommitted.endOffsets(places);
        });
    }

    @Override
    public void close() {
        if (consumer != null) {
            consumer.close();
            consumer = null;
        }
        if (uncommitted != null) {
            uncommitted.close();
            uncommitted = null;
        }
        if (looking != null) {
            looking.close();
            looking = null;
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        if (consumer == null) {
            consumer = consumer(client);
        }
        return consumer;
    }

    /** Asks Kafka. */
    private static <T> T stoppable(Supplier<T> ask) {
        try {
            return ask.get();
        } catch (InterruptException end) {
            throw interrupted(end);
        }
    }

    /** An interrupt as Spark expects it of a query that is stopped. */
    static UncheckedIOException interrupted(Exception end) {
        return new UncheckedIOException((IOException) new InterruptedIOException().initCause(end));
    }

    static KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> config) {
        Map<String, Object> own = new HashMap<>(config);
        own.put("auto.offset.reset", "earliest"); // what was deleted meanwhile is not a reason to skip the rest
        return new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** The times of the records that a partition of a marked topic has to read, as far as they were looked at. */
    private final class Times {
        private final TopicPartition place;
        private final ArrayDeque<long[]> records = new ArrayDeque<>(); // offset and time
        private long next = -1;
        private long latest = Progress.NOTHING; // of those that were taken

        Times(TopicPartition place) {
            this.place = place;
        }

        /** At first the last records before the start are looked at: they were taken by a launch before. */
        void begin(long start) {
            if (next < 0) {
                long first = consumer().beginningOffsets(List.of(place)).get(place);
                long end = consumer().endOffsets(List.of(place)).get(place); // before the start if a broker lost the rest
                next = Math.min(start, Math.max(Math.max(first, firstRead(place)), start - LOOK_BACK));
                while (next < Math.min(start, end)) {
                    more();
                }
            }
            while (!records.isEmpty() && records.peek()[0] < start) {
                latest = Math.max(latest, records.poll()[1]);
            }
            if (next < start) {
                next = start;
            }
        }

        /**
         * The first record at this time or later before the end, among as many as a batch may have, and
         * one more: all before that one would be too many, so that it is no end of a batch.
         */
        OffsetAndTimestamp first(long time, long end, long most) {
            long looked = 0;
            Iterable<long[]> some = records;
            while (true) {
                for (long[] each : some) {
                    if (each[1] >= time || ++looked > most + 1) {
                        return new OffsetAndTimestamp(each[0], each[1]);
                    }
                }
                if (next >= end) {
                    return null;
                }
                some = more();
            }
        }

        private List<long[]> more() {
            consumer().assign(List.of(place));
            consumer().seek(place, next);
            List<long[]> read = new ArrayList<>();
            consumer().poll(POLL).forEach(each -> read.add(new long[] {each.offset(), each.timestamp()}));
            next = consumer().position(place);
            records.addAll(read);
            return read;
        }
    }

    /** What there is to read. */
    private final class Behind {
        private final Map<TopicPartition, Long> from;
        private final Map<TopicPartition, Long> to;
        private final long most;

        Behind(Map<TopicPartition, Long> from, Map<TopicPartition, Long> to, long most) {
            this.from = from;
            this.to = to;
            this.most = most;
        }

        /** How many records are before the ends. */
        long count(Map<TopicPartition, Long> ends) {
            long count = 0;
            for (Map.Entry<TopicPartition, Long> end : ends.entrySet()) {
                count += end.getValue() - start(end.getKey());
            }
            return count;
        }

        /**
         * The ends before the first record of each partition at this time or later.
         *
         * <p>Brokers look at the whole partition: behind a record that is far ahead, all wait with it,
         * also when it was taken long ago.
         */
        Map<TopicPartition, Long> before(long time) {
            if (time == Long.MAX_VALUE) {
                return to;
            }
            return ends(from(time));
        }

        /** The same by what readers see: it holds, however the search came to this time. */
        Map<TopicPartition, Long> surelyBefore(long time) {
            return ends(seen(time));
        }

        /** Whether what ends a cut at this time is a mark; the next search reads that topic's times. */
        boolean meetsMarks(long time) {
            return time != Long.MAX_VALUE && areMarks(from(time));
        }

        private Map<TopicPartition, OffsetAndTimestamp> seen(long time) {
            Map<TopicPartition, OffsetAndTimestamp> found = from(time);
            while (areMarks(found)) {
                found = from(time);
            }
            return found;
        }

        private Map<TopicPartition, Long> ends(Map<TopicPartition, OffsetAndTimestamp> found) {
            Map<TopicPartition, Long> ends = new HashMap<>();
            to.forEach((place, latest) -> {
                OffsetAndTimestamp first = found.get(place);
                long end = first == null ? latest : Math.min(first.offset(), latest);
                ends.put(place, Math.max(end, start(place)));
            });
            return ends;
        }

        /** The time before which there is no record: here the search begins, not at the epoch. */
        long earliest() {
            return from(0).values().stream()
                .filter(Objects::nonNull).mapToLong(OffsetAndTimestamp::timestamp).min().orElse(0);
        }

        /** Whether records of that time or later are before the starts. */
        boolean hasRead(long time) {
            Map<TopicPartition, OffsetAndTimestamp> found = seen(time);
            return from.entrySet().stream().anyMatch(each -> {
                if (marked.contains(each.getKey().topic())) {
                    return times(each.getKey()).latest >= time;
                }
                OffsetAndTimestamp first = found.get(each.getKey());
                return first != null && Math.max(first.offset(), firstRead(each.getKey())) < each.getValue();
            });
        }

        /** The first record of each partition at this time or later. */
        private Map<TopicPartition, OffsetAndTimestamp> from(long time) {
            Map<TopicPartition, Long> asked = new HashMap<>();
            Map<TopicPartition, OffsetAndTimestamp> found = new HashMap<>();
            return stoppable(() -> {
                to.forEach((place, end) -> {
                    if (!marked.contains(place.topic())) {
                        asked.put(place, time);
                    } else {
                        times(place).begin(start(place));
                        found.put(place, times(place).first(time, end, most));
                    }
                });
                if (!asked.isEmpty()) {
                    found.putAll(consumer().offsetsForTimes(asked));
                }
                return found;
            });
        }

        /** All before the first ends; then of those before the others as many as a batch may have. */
        Map<TopicPartition, Long> some(
                Map<TopicPartition, Long> all, Map<TopicPartition, Long> others, long most) {
            List<TopicPartition> places = new ArrayList<>(others.keySet());
            places.sort(order);
            Map<TopicPartition, Long> found = new HashMap<>();
            long left = Math.max(0, most - count(all));
            for (TopicPartition place : places) {
                long taken = Math.min(left, others.get(place) - all.get(place));
                found.put(place, all.get(place) + taken);
                left -= taken;
            }
            return found;
        }

        private long start(TopicPartition place) {
            return from.getOrDefault(place, 0L);
        }
    }

    static Map<TopicPartition, Long> parse(String offsets) {
        Map<TopicPartition, Long> found = new HashMap<>();
        try {
            JsonNode topics = JSON.readTree(offsets);
            topics.properties().forEach(topic -> topic.getValue().properties().forEach(each ->
                found.put(
                    new TopicPartition(topic.getKey(), Integer.parseInt(each.getKey())),
                    each.getValue().asLong())));
        } catch (JsonProcessingException problem) {
            throw new IllegalArgumentException(offsets, problem);
        }
        return found;
    }

    static String print(Map<TopicPartition, Long> offsets) {
        Map<String, Map<String, Long>> topics = new TreeMap<>();
        offsets.forEach((place, offset) -> topics.computeIfAbsent(place.topic(), name -> new TreeMap<>())
            .put(String.valueOf(place.partition()), offset));
        try {
            return JSON.writeValueAsString(topics);
        } catch (JsonProcessingException problem) {
            throw new IllegalStateException(problem);
        }
    }
}
