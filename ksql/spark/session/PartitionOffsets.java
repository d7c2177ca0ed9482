package ksql;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;

/** Offsets of partitions, as Spark's Kafka source writes them into a checkpoint. */
final class PartitionOffsets {
    private static final ObjectMapper JSON = new ObjectMapper();

    private PartitionOffsets() {}

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

    /** Whether those offsets lie at these ends or after them, in each partition that has one. */
    static boolean reach(Map<TopicPartition, Long> offsets, Map<TopicPartition, Long> ends) {
        return ends.entrySet().stream()
            .allMatch(each -> offsets.getOrDefault(each.getKey(), 0L) >= each.getValue());
    }
}
