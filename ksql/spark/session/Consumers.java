package ksql;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Kafka's client as sources use it beside Spark's own. */
final class Consumers {
    private static final String CLIENT = "kafka.";

    private Consumers() {}

    /** The settings of Kafka's client among the options of a source. */
    static Map<String, Object> settings(CaseInsensitiveStringMap options) {
        Map<String, Object> client = new HashMap<>();
        options.asCaseSensitiveMap().forEach((name, value) -> {
            if (name.startsWith(CLIENT)) {
                client.put(name.substring(CLIENT.length()), value);
            }
        });
        return client;
    }

    static KafkaConsumer<byte[], byte[]> of(Map<String, Object> config) {
        Map<String, Object> own = new HashMap<>(config);
        own.put("auto.offset.reset", "earliest"); // what was deleted meanwhile is not a reason to skip the rest
        return new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Asks Kafka. */
    static <T> T stoppable(Supplier<T> ask) {
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
}
