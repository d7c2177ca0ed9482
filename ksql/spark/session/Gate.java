package ksql;

import java.util.HashSet;
import java.util.Set;

/**
 * Gates at which queries that were started ahead of their time wait before they look at their checkpoint.
 *
 * <p>A gate that nobody has closed is open. What waits at a closed one is ended by an interrupt.
 */
public final class Gate {
    private static final Set<String> CLOSED = new HashSet<>();

    private Gate() {}

    /** Has what comes to the gate wait. */
    public static synchronized void close(String gate) {
        CLOSED.add(gate);
    }

    /** Lets through what waits, and what comes. */
    public static synchronized void open(String gate) {
        CLOSED.remove(gate);
        Gate.class.notifyAll();
    }

    /** Returns when the gate is open. */
    static synchronized void pass(String gate) throws InterruptedException {
        while (CLOSED.contains(gate)) {
            Gate.class.wait();
        }
    }
}
