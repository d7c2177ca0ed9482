package ksql;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;

/** The times of a partition's records, as far as they were looked at: those to read, and the last ones before. */
final class RecordTimes {
    static final Duration POLL = Duration.ofMillis(100);
    static final long FIRST_LOOK_BACK = 16;
    private static final long LOOK_BACK = 1_000;
    private static final int TAKEN = 5;

    private final TopicPartition place;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaConsumer<byte[], byte[]> little;
    private final ArrayDeque<long[]> records = new ArrayDeque<>(); // offset and time
    private final ArrayDeque<Long> taken = new ArrayDeque<>(); // the times of the last ones before the start
    private long next = -1;
    private long passed = Progress.NOTHING;

    /** @param little reads little at a time: the last records before the start are few */
    RecordTimes(
            TopicPartition place, KafkaConsumer<byte[], byte[]> consumer, KafkaConsumer<byte[], byte[]> little) {
        this.place = place;
        this.consumer = consumer;
        this.little = little;
    }

    /**
     * The query has taken all before the start.
     *
     * @param firstRead where the query began to read once
     */
    void begin(long start, long firstRead) {
        if (next < start) {
            lookBack(start, firstRead);
        }
        while (!records.isEmpty() && records.peek()[0] < start) {
            taken.add(records.poll()[1]);
        }
        while (taken.size() > TAKEN) {
            taken.poll();
        }
        next = Math.max(next, start);
    }

    /** Records that were not looked at were taken, by a launch before or in a batch that was not cut. */
    private void lookBack(long start, long firstRead) {
        long first = Math.max(consumer.beginningOffsets(List.of(place)).get(place), firstRead);
        long end = consumer.endOffsets(List.of(place)).get(place); // before the start if a broker lost the rest
        taken.clear();
        for (long back = FIRST_LOOK_BACK;; back *= 8) {
            records.clear();
            next = Math.min(start, Math.max(first, start - back));
            boolean isAll = next <= first || back > LOOK_BACK;
            while (next < Math.min(start, end)) {
                more(little);
            }
            if (isAll || records.stream().filter(each -> each[0] < start).count() >= TAKEN) {
                return;
            }
        }
    }

    /**
     * Whether the query has come to that time here: most of the last records have it or are later.
     * One that is far ahead of the others does not count, nor does one that is ahead of the clock.
     * What it has come to remains, however old the records are that follow.
     */
    boolean hasPassed(long time) {
        long now = System.currentTimeMillis();
        List<Long> sorted = taken.stream().filter(each -> each <= now).sorted().toList();
        if (!sorted.isEmpty()) {
            passed = Math.max(passed, sorted.get((sorted.size() - 1) / 2));
        }
        return passed >= time;
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
            some = more(consumer);
        }
    }

    private List<long[]> more(KafkaConsumer<byte[], byte[]> reading) {
        reading.assign(List.of(place));
        reading.resume(List.of(place));
        reading.seek(place, next);
        List<long[]> read = new ArrayList<>();
        reading.poll(POLL).forEach(each -> read.add(new long[] {each.offset(), each.timestamp()}));
        next = reading.position(place);
        records.addAll(read);
        return read;
    }
}
