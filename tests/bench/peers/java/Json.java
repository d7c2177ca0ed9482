import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Rows as JSON. */
final class Json {
  static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** How values of a class are read and written. */
  static <T> Serde<T> of(Class<T> rows) {
    ObjectReader reader = MAPPER.readerFor(rows);
    ObjectWriter writer = MAPPER.writerFor(rows);
    return Serdes.serdeFrom(
        (topic, row) -> {
          try {
            return row == null ? null : writer.writeValueAsBytes(row);
          } catch (IOException failure) {
            throw new UncheckedIOException(failure);
          }
        },
        (topic, bytes) -> {
          try {
            return bytes == null ? null : reader.readValue(bytes);
          } catch (IOException failure) {
            throw new UncheckedIOException(failure);
          }
        });
  }
}
