package ksql;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/**
 * What a query says to its readers.
 *
 * @param until the time up to which it has processed its inputs
 * @param ends where its topic ended before the batch that it is in; empty if it is in none
 * @param written where its topic ended after the batch before, hidden records included; empty
 *     if that does not count
 * @param marked whether hidden records have been waited for long enough
 * @param finished its last batches, the last one first, if it is not the only one that writes its topic
 * @param batches how many it has begun
 * @param id what its versions have in common
 * @param sink the topic that it writes
 */
public record Upstream(
        long until, Map<TopicPartition, Long> ends, Map<TopicPartition, Long> written, boolean marked,
        List<Batch> finished, long batches, String id, String sink) {
    /**
     * A batch that is finished.
     *
     * @param until the time up to which the query had processed its inputs then
     * @param ends where its topic ended then, hidden records included
     */
    record Batch(long until, Map<TopicPartition, Long> ends) {
        boolean isBefore(Map<TopicPartition, Long> bounds) {
            return PartitionOffsets.reach(bounds, ends);
        }
    }

    /** Whether it has processed all, and readers see all of that. */
    boolean isFree() {
        return until == Progress.ALL && ends.isEmpty() && (marked || written.isEmpty());
    }

    /**
     * The time up to which a reader sees what its inputs have given.
     *
     * @param visible where the topics end for the reader
     * @param bounds the same, but not behind where queries are in a batch
     */
    long reached(Map<TopicPartition, Long> visible, Map<TopicPartition, Long> bounds) {
        boolean isSeen = written.entrySet().stream().allMatch(each -> {
            long seen = visible.getOrDefault(each.getKey(), 0L);
            long bound = bounds.getOrDefault(each.getKey(), 0L);
            return bound >= each.getValue() || marked && bound >= seen; // the rest is hidden
        });
        return isSeen ? until : finished.stream()
            .filter(each -> each.isBefore(bounds)).findFirst()
            .map(each -> Math.min(until, each.until())).orElse(Progress.NOTHING);
    }
}
