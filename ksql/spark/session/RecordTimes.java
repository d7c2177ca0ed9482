package ksql;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;

/** The times of the records that a partition has to read, as far as they were looked at. */
final class RecordTimes {
    static final Duration POLL = Duration.ofMillis(100);
    private static final long LOOK_BACK = 1_000;

    private final TopicPartition place;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final ArrayDeque<long[]> records = new ArrayDeque<>(); // offset and time
    private long next = -1;
    private long latest = Progress.NOTHING; // of those that were taken

    RecordTimes(TopicPartition place, KafkaConsumer<byte[], byte[]> consumer) {
        this.place = place;
        this.consumer = consumer;
    }

    /**
     * At first the last records before the start are looked at: they were taken by a launch before.
     *
     * @param firstRead where the query began to read once
     */
    void begin(long start, long firstRead) {
        if (next < 0) {
            long first = consumer.beginningOffsets(List.of(place)).get(place);
            long end = consumer.endOffsets(List.of(place)).get(place); // before the start if a broker lost the rest
            next = Math.min(start, Math.max(Math.max(first, firstRead), start - LOOK_BACK));
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

    /** The latest time of those that were taken. */
    long latest() {
        return latest;
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
        consumer.assign(List.of(place));
        consumer.seek(place, next);
        List<long[]> read = new ArrayList<>();
        consumer.poll(POLL).forEach(each -> read.add(new long[] {each.offset(), each.timestamp()}));
        next = consumer.position(place);
        records.addAll(read);
        return read;
    }
}
