package ksql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file of a query's checkpoint that says which ranges of a topic it has written.
 *
 * <p>Readers that come after a restart need them to tell apart what different queries have written. A line
 * is added before each batch, and after it, if others write the topic, too. Others may come while a query
 * has a backlog, so it does the same. Without the file the records are in the order of the topic; so
 * nothing waits for the disk, and what cannot be read is left out.
 */
final class WrittenRanges {
    private static final String NAME = "written-ranges";
    private static final int VERSION = 1;
    private static final int MOST_LINES = 4_096;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Logger LOG = LoggerFactory.getLogger(WrittenRanges.class);

    private final Path file;
    private final String topic;
    private int lines;

    private WrittenRanges(Path file, String topic) {
        this.file = file;
        this.topic = topic;
    }

    /**
     * @param source the folder of a source in a checkpoint, as Spark names it
     * @param topic what the query writes now; a candidate writes a topic of its own before the cut-over
     */
    static WrittenRanges of(String source, String topic) {
        URI place = new org.apache.hadoop.fs.Path(source).toUri(); // it may have blanks and percent signs
        boolean isLocal = place.getScheme() == null || place.getScheme().equals("file");
        Path file = isLocal ? Path.of(place.getPath()).resolve("../..").normalize().resolve(NAME) : null;
        return new WrittenRanges(file, topic);
    }

    /** What was written to the topic, in its order; the last one has no {@code to} if its batch was not finished. */
    List<SharedTopic.Portion> read() {
        List<SharedTopic.Portion> portions = new ArrayList<>();
        if (file == null || !Files.exists(file)) {
            return portions;
        }
        try {
            for (String line : Files.readAllLines(file)) {
                lines++;
                JsonNode each = JSON.readTree(line);
                if (!each.path("topic").asText(topic).equals(topic)) {
                    continue;
                }
                if (!portions.isEmpty() && portions.get(portions.size() - 1).to() == null) {
                    portions.remove(portions.size() - 1);
                }
                portions.add(parsed(each));
            }
        } catch (IOException | IllegalArgumentException problem) {
            LOG.warn("{} is left out from line {} on", file, lines, problem);
        }
        return portions;
    }

    /** Adds what was begun or written; writes all that counts if there are many lines. */
    void add(SharedTopic.Portion portion, Supplier<? extends Collection<SharedTopic.Portion>> all) {
        if (file == null) {
            return;
        }
        try {
            if (++lines > MOST_LINES) {
                rewrite(all.get());
            }
            Files.writeString(file, printed(portion), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    private void rewrite(Collection<SharedTopic.Portion> all) throws IOException {
        StringBuilder text = new StringBuilder();
        all.forEach(each -> text.append(printed(each)));
        Path next = file.resolveSibling(NAME + ".next");
        Files.writeString(next, text);
        Files.move(next, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        lines = all.size() + 1;
    }

    private String printed(SharedTopic.Portion portion) {
        ObjectNode line = JSON.createObjectNode().put("version", VERSION).put("topic", topic)
            .put("number", portion.number())
            .put("writer", portion.writer()).put("until", portion.until()).put("alone", portion.alone())
            .put("since", portion.since()).put("asOf", portion.asOf())
            .put("from", PartitionOffsets.print(portion.from()));
        if (portion.to() != null) {
            line.put("to", PartitionOffsets.print(portion.to()));
        }
        return line + "\n";
    }

    private static SharedTopic.Portion parsed(JsonNode each) {
        if (each.path("version").asInt() != VERSION) {
            throw new IllegalArgumentException(each.toString());
        }
        return new SharedTopic.Portion(
            each.get("writer").asText(), each.get("until").asLong(),
            PartitionOffsets.parse(each.get("from").asText()),
            each.has("to") ? PartitionOffsets.parse(each.get("to").asText()) : null,
            each.get("alone").asBoolean(), each.get("since").asLong(), each.get("asOf").asLong(),
            each.get("number").asLong());
    }
}
