package ksql;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaMicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Spark's Kafka source, but for four things, each an option of its own.
 *
 * <p>{@code rangesOnly}: its rows are not records. Each range of a partition is one row that names it,
 * or one of each {@link SharedTopic.Lane} if several queries have written it. {@code topicOrder}, the
 * topics in their order: a query that is behind takes micro-batches that end at one time in all
 * partitions, see {@link TimeCut}. {@code untilOffsets}: it reads up to these and no further, see
 * {@link Until}. With {@code emptyBatch}, a number, as well it takes one batch without records there,
 * whose one row names no range. {@code gate}: it waits at that {@link Gate}.
 *
 * <p>Which offsets there are, what a checkpoint says and whether records were lost before the batch
 * was planned is all decided by Spark's own stream.
 */
public class KafkaRanges implements TableProvider {
    static final String RANGES = "rangesOnly";
    private static final String EMPTY_BATCH = "emptyBatch";
    private static final String NO_OFFSETS = "{}";
    static final String GATE = "gate";
    /** Of the metrics of a trigger: how long it waited for something to do, in ms. */
    private static final String RESTED = "restedMs";
    static final StructType SCHEMA = new StructType()
        .add("topic", DataTypes.StringType)
        .add("partition", DataTypes.IntegerType)
        .add("start", DataTypes.LongType)
        .add("end", DataTypes.LongType)
        .add("writer", DataTypes.IntegerType);

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return options.getBoolean(RANGES, false) ? SCHEMA : kafka(options).schema();
    }

    @Override
    public Table getTable(StructType schema, Transform[] parts, Map<String, String> properties) {
        CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(properties);
        return new RangeTable(kafka(options), options.getBoolean(RANGES, false));
    }

    private static SupportsRead kafka(CaseInsensitiveStringMap options) {
        return (SupportsRead) new KafkaSourceProvider().getTable(options);
    }

    static class RangeTable implements Table, SupportsRead {
        private final SupportsRead kafka;
        private final boolean ranges;

        RangeTable(SupportsRead kafka, boolean ranges) {
            this.kafka = kafka;
            this.ranges = ranges;
        }

        @Override
        public String name() {
            return "KafkaRanges";
        }

        @Override
        public StructType schema() {
            return ranges ? SCHEMA : kafka.schema();
        }

        @Override
        public Set<TableCapability> capabilities() {
            return Collections.singleton(TableCapability.MICRO_BATCH_READ);
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            Scan scan = kafka.newScanBuilder(options).build();
            Upstreams upstreams = Upstreams.of(options);
            int empty = options.getInt(EMPTY_BATCH, -1);
            Ways ways =
                new Ways(TimeCut.of(options), Until.of(options), empty, upstreams, Rest.of(options, upstreams));
            return () -> new RangeScan(scan, ranges, ways, options.get(GATE));
        }
    }

    /** What decides, besides Spark's own stream, where batches end; {@code cut} and {@code until} may be null. */
    record Ways(TimeCut cut, Until until, int emptyBatch, Upstreams upstreams, Rest rest) {}

    static class RangeScan implements Scan {
        private final Scan kafka;
        private final boolean ranges;
        private final Ways ways;
        private final String gate;

        RangeScan(Scan kafka, boolean ranges, Ways ways, String gate) {
            this.kafka = kafka;
            this.ranges = ranges;
            this.ways = ways;
            this.gate = gate;
        }

        @Override
        public StructType readSchema() {
            return ranges ? SCHEMA : kafka.readSchema();
        }

        @Override
        public String description() {
            return "KafkaRanges";
        }

        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
            KafkaMicroBatchStream stream = (KafkaMicroBatchStream) kafka.toMicroBatchStream(checkpoint);
            if (gate != null) {
                waitAt(gate, stream);
            }
            return new RangeStream(stream, ranges, ways, checkpoint);
        }
    }

    /** Connects to Kafka, and waits: Spark reads the checkpoint after that. */
    private static void waitAt(String gate, KafkaMicroBatchStream stream) {
        try {
            stream.latestOffset(stream.deserializeOffset("{}"), ReadLimit.allAvailable());
            Gate.pass(gate);
        } catch (InterruptedException end) {
            stream.stop();
            throw Consumers.interrupted(end);
        }
    }

    static class RangeStream
        implements MicroBatchStream, SupportsAdmissionControl, SupportsTriggerAvailableNow, ReportsSourceMetrics {
        private final KafkaMicroBatchStream kafka;
        private final boolean ranges;
        private final TimeCut cut;
        private final Until until;
        private final int emptyBatch;
        private final Upstreams upstreams;
        private final Rest rest;
        private final String checkpoint;
        private final Map<String, Offset> parsed = Collections.synchronizedMap(new LastOffsets());
        private volatile Offset begin;
        private Look waiting;
        private boolean isRestored;

        RangeStream(KafkaMicroBatchStream kafka, boolean ranges, Ways ways, String checkpoint) {
            this.kafka = kafka;
            this.ranges = ranges;
            cut = ways.cut();
            until = ways.until();
            emptyBatch = ways.emptyBatch();
            upstreams = ways.upstreams();
            rest = ways.rest();
            this.checkpoint = checkpoint;
        }

        @Override
        public Offset initialOffset() {
            return kafka.initialOffset();
        }

        @Override
        public Offset deserializeOffset(String json) {
            return parsed.computeIfAbsent(json, kafka::deserializeOffset);
        }

        @Override
        public Offset latestOffset() {
            return kafka.latestOffset();
        }

        @Override
        public Offset latestOffset(Offset start, ReadLimit limit) {
            boolean first = begin == null;
            begin = start;
            if (until != null && until.isReached(start.json())) {
                if (first) {
                    kafka.latestOffset(start, limit); // its metrics need one look
                    if (emptyBatch >= 0) {
                        return new Again(start, emptyBatch);
                    }
                }
                return start; // without a wait: whoever has set the end ends the query
            }
            if (cut == null || !(limit instanceof ReadMaxRows)) {
                return clipped(start, kafka.latestOffset(start, limit));
            }
            if (first) {
                restore(false);
                upstreams.begin();
                cut.begin(kafka.initialOffset().json());
            }
            upstreams.done(cut);
            long most = ((ReadMaxRows) limit).maxRows();
            Offset end;
            do {
                if (rest.holds(start.json())) {
                    return start;
                }
                end = next(start, limit, most);
            } while (start.equals(end) && rest.isWoken());
            return end;
        }

        private void restore(boolean isRerun) {
            if (!isRestored) { // Spark plans a batch that it runs again more than once
                upstreams.restore(checkpoint, cut, isRerun);
                isRestored = true;
            }
        }

        /** What a look has found: the end of a batch, and the time up to which all is processed then. */
        private record Look(Offset start, Offset end, long until, Upstreams.Seen seen, String latest) {}

        /** A look whose batch waits for its turn holds until then: what comes later may belong to a later turn. */
        private Offset next(Offset start, ReadLimit limit, long most) {
            Look found = waiting != null && waiting.start().equals(start) ? waiting : look(start, limit, most);
            waiting = null;
            if (found.latest() == null) {
                return found.end();
            }
            Upstreams.Seen seen = found.seen();
            Offset end = clipped(start, found.end());
            if (!end.equals(start)) {
                seen = upstreams.look();
                long turn = upstreams.turn(found.until());
                if (turn == Progress.NOTHING) {
                    waiting = found;
                    rest.looked(start.json(), start.json(), NO_OFFSETS, seen);
                    return start;
                }
                end = turn < found.until()
                    ? deserializeOffset(cut.before(turn, start.json(), end.json(), most)) : end;
                upstreams.planned(turn, !end.equals(start), cut);
            } else {
                upstreams.planned(found.until(), false, cut);
            }
            rest.looked(start.json(), end.json(), found.latest(), seen);
            return end;
        }

        private Look look(Offset start, ReadLimit limit, long most) {
            Upstreams.Seen seen;
            Offset end;
            int tries = 0;
            long since;
            do { // one that has begun a batch meanwhile may have written a part of it before the end
                since = upstreams.since();
                seen = upstreams.look();
                end = clipped(start, kafka.latestOffset(start, limit));
            } while (upstreams.changedSince(seen) && ++tries < Upstreams.TRIES);
            Offset written = kafka.reportLatestOffset();
            if (end == null || written == null) {
                return new Look(start, end, Progress.NOTHING, seen, null);
            }
            Offset latest = clipped(start, written);
            if (!end.equals(latest)) {
                upstreams.behind();
            }
            long until = Progress.ALL;
            if (!end.equals(latest) || !seen.isFree()) {
                TimeCut.End found = cut.end(start.json(), latest.json(), most, seen);
                end = deserializeOffset(found.offsets());
                until = found.until();
            }
            boolean isTimed = until == Progress.ALL && !end.equals(start) && upstreams.isWatched();
            upstreams.looked(since, isTimed ? cut.after(start.json(), end.json()) : until, !end.equals(start));
            return new Look(start, end, until, seen, written.json());
        }

        private Offset clipped(Offset start, Offset end) {
            boolean whole = until == null || start == null || end == null;
            return whole ? end : deserializeOffset(until.clipped(start.json(), end.json()));
        }

        @Override
        public ReadLimit getDefaultReadLimit() {
            return kafka.getDefaultReadLimit();
        }

        @Override
        public Offset reportLatestOffset() {
            return clipped(begin, kafka.reportLatestOffset());
        }

        @Override
        public void prepareForTriggerAvailableNow() {
            rest.end();
            kafka.prepareForTriggerAvailableNow();
        }

        @Override
        public Map<String, String> metrics(Optional<Offset> consumed) {
            upstreams.done(cut); // Spark asks right after a batch: its readers need not wait for the next one
            Map<String, String> metrics = new HashMap<>(
                kafka.metrics(consumed.map(offset -> deserializeOffset(offset.json()))));
            metrics.put(RESTED, String.valueOf(rest.takeRestedMs()));
            return metrics;
        }

        @Override
        public void commit(Offset end) {
            kafka.commit(deserializeOffset(end.json()));
        }

        @Override
        public void stop() {
            try {
                kafka.stop();
            } finally {
                upstreams.stop();
                if (cut != null) {
                    cut.close();
                }
            }
        }

        @Override
        public InputPartition[] planInputPartitions(Offset start, Offset end) {
            if (begin == null) { // the checkpoint says what the batch has
                restore(true);
                upstreams.rerun();
            }
            if (emptyBatch >= 0) {
                return new InputPartition[] {new Range("", 0, List.of(new SharedTopic.Lane(0, 1, 0)))};
            }
            InputPartition[] found = kafka.planInputPartitions(start, end);
            if (!ranges) {
                return found;
            }
            Map<TopicPartition, Long> come = PartitionOffsets.parse(end.json());
            come.keySet().removeAll(PartitionOffsets.parse(start.json()).keySet());
            List<InputPartition> rows = new ArrayList<>();
            for (InputPartition each : found) {
                KafkaOffsetRange range = ((KafkaBatchInputPartition) each).offsetRange();
                TopicPartition place = range.topicPartition();
                rows.add(range(place, come.remove(place) == null ? range.fromOffset() : 0, range.untilOffset()));
            }
            come.forEach((place, until) -> {
                if (until > 0) {
                    rows.add(range(place, 0, until));
                }
            });
            return rows.toArray(InputPartition[]::new);
        }

        /** A partition that has come since is read from 0: whoever reads it finds whether its first records are gone. */
        private static Range range(TopicPartition place, long from, long until) {
            return new Range(place.topic(), place.partition(), Progress.lanes(place, from, until));
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return ranges ? new Factory() : kafka.createReaderFactory();
        }

        @Override
        public String toString() {
            return "KafkaRanges of " + kafka;
        }
    }

    /** The offsets that Spark has had parsed lately: it has the same ones parsed several times for each trigger. */
    private static final class LastOffsets extends LinkedHashMap<String, Offset> {
        private static final long serialVersionUID = 1;
        private static final int KEPT = 4;

        LastOffsets() {
            super(2 * KEPT, 0.75f, true);
        }

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Offset> eldest) {
            return size() > KEPT;
        }
    }

    /**
     * The same offsets, written otherwise: Spark compares texts, and takes a batch up to them. Two
     * batches in a row are written differently.
     */
    static class Again extends Offset {
        private final String json;

        Again(Offset offset, int batch) {
            json = offset.json() + " ".repeat(1 + batch % 2);
        }

        @Override
        public String json() {
            return json;
        }
    }

    static class Range implements InputPartition {
        private static final long serialVersionUID = 2;
        final String topic;
        final int partition;
        final ArrayList<SharedTopic.Lane> lanes;

        Range(String topic, int partition, List<SharedTopic.Lane> lanes) {
            this.topic = topic;
            this.partition = partition;
            this.lanes = new ArrayList<>(lanes);
        }
    }

    static class Factory implements PartitionReaderFactory {
        private static final long serialVersionUID = 1;

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new Reader((Range) partition);
        }
    }

    static class Reader implements PartitionReader<InternalRow> {
        private final Range range;
        private final Iterator<SharedTopic.Lane> lanes;
        private SharedTopic.Lane lane;

        Reader(Range range) {
            this.range = range;
            lanes = range.lanes.stream().filter(each -> each.end() > each.start()).iterator();
        }

        @Override
        public boolean next() {
            lane = lanes.hasNext() ? lanes.next() : null;
            return lane != null;
        }

        @Override
        public InternalRow get() {
            UTF8String topic = UTF8String.fromString(range.topic);
            return new GenericInternalRow(
                new Object[] {topic, range.partition, lane.start(), lane.end(), lane.writer()});
        }

        @Override
        public void close() {}
    }
}
