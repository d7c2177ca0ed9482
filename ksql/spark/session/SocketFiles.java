package ksql;

import java.io.File;
import java.lang.reflect.Field;
import java.util.Set;

/** What the JVM notes about the sockets between Spark and its Python workers. */
public final class SocketFiles {
    private SocketFiles() {}

    /**
     * Forgets the files of sockets that are gone; returns how many it forgot.
     *
     * <p>Spark has each stateful task listen at a socket of its own and deletes its file after it. But it has told the
     * JVM to delete the file at its end, too, and the JVM keeps such names for as long as it lives.
     */
    public static int forget() throws ReflectiveOperationException {
        Class<?> hook = Class.forName("java.io.DeleteOnExitHook");
        Field field = hook.getDeclaredField("files");
        field.setAccessible(true);
        synchronized (hook) {
            Set<?> files = (Set<?>) field.get(null);
            if (files == null) {
                return 0; // the JVM is ending
            }
            int before = files.size();
            files.removeIf(name -> name.toString().endsWith(".sock") && !new File(name.toString()).exists());
            return before - files.size();
        }
    }
}
