package ksql;

import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says when records arrive: one look at Kafka serves all queries of this process that have nothing to do.
 *
 * <p>It only ends a wait. What there is to read, and whether topics are still there, each query sees
 * by itself; so where Kafka gives no answer here, waits end with their time.
 *
 * <p>Its lock is that of {@link Progress}, whose changes end waits, too.
 */
public final class Arrivals {
    private static final long LOOK_MS = 20;
    private static final long REST_MS = 1_000;
    private static final long KEEP_MS = 30_000;
    private static final Duration ANSWER = Duration.ofMillis(REST_MS);
    private static final Logger LOG = LoggerFactory.getLogger(Arrivals.class);
    private static final Map<Map<String, Object>, Arrivals> CLIENTS = new HashMap<>();

    private final Map<String, Object> client;
    private final Set<Wait> waits = new HashSet<>();
    private Thread looking;

    private Arrivals(Map<String, Object> client) {
        this.client = client;
    }

    /** Those of a client's settings; queries that have the same ones share them. */
    public static Arrivals of(Map<String, Object> client) {
        synchronized (Progress.class) {
            return CLIENTS.computeIfAbsent(client, Arrivals::new);
        }
    }

    /**
     * Waits until a partition has more records than are known, or until something else has changed.
     *
     * @param known where the partitions end
     * @return false if the time is over
     */
    public boolean await(Map<TopicPartition, Long> known, BooleanSupplier changed, long untilMs)
            throws InterruptedException {
        Wait wait = new Wait(known);
        synchronized (Progress.class) {
            begin(wait);
            try {
                while (!wait.isOver && !changed.getAsBoolean()) {
                    long left = untilMs - System.currentTimeMillis();
                    if (left <= 0) {
                        return false;
                    }
                    Progress.class.wait(left);
                }
                return true;
            } finally {
                waits.remove(wait);
            }
        }
    }

    private void begin(Wait wait) {
        waits.add(wait);
        if (looking == null) {
            looking = new Thread(this::look, "ksql-arrivals");
            looking.setDaemon(true);
            looking.start();
        } else if (waits.size() == 1) {
            Progress.class.notifyAll(); // the thread rests
        }
    }

    private void look() {
        try (KafkaConsumer<byte[], byte[]> consumer = Consumers.of(client)) {
            for (Set<TopicPartition> some = places(); !some.isEmpty(); some = places()) {
                Thread.sleep(end(consumer, some) ? LOOK_MS : REST_MS);
            }
        } catch (InterruptedException | KafkaException problem) {
            LOG.info("Waits end with their time", problem);
        } finally {
            synchronized (Progress.class) {
                looking = looking == Thread.currentThread() ? null : looking;
            }
        }
    }

    /** The partitions that are waited for; waits until there are some, or gives none after a time. */
    private Set<TopicPartition> places() throws InterruptedException {
        synchronized (Progress.class) {
            long until = System.currentTimeMillis() + KEEP_MS;
            for (long left = KEEP_MS; waits.isEmpty() && left > 0; left = until - System.currentTimeMillis()) {
                Progress.class.wait(left);
            }
            Set<TopicPartition> places = new HashSet<>();
            waits.forEach(each -> places.addAll(each.known.keySet()));
            looking = places.isEmpty() ? null : looking; // whoever waits from now on begins another look
            return places;
        }
    }

    /** Ends the waits for which there are records; returns whether Kafka has answered. */
    private boolean end(KafkaConsumer<byte[], byte[]> consumer, Set<TopicPartition> places) {
        Map<TopicPartition, Long> ends;
        try {
            ends = consumer.endOffsets(places, ANSWER);
        } catch (KafkaException problem) {
            LOG.info("Each query will see by itself", problem);
            return false;
        }
        synchronized (Progress.class) {
            waits.forEach(each -> each.isOver = each.isOver || each.isBehind(ends));
            if (waits.stream().anyMatch(each -> each.isOver)) {
                Progress.class.notifyAll();
            }
        }
        return true;
    }

    private static final class Wait {
        private final Map<TopicPartition, Long> known;
        private boolean isOver;

        Wait(Map<TopicPartition, Long> known) {
            this.known = known;
        }

        boolean isBehind(Map<TopicPartition, Long> ends) {
            return known.entrySet().stream()
                .anyMatch(each -> ends.getOrDefault(each.getKey(), 0L) > each.getValue());
        }
    }
}
