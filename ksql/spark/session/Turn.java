package ksql;

/**
 * A query's turn among those that write its topic, or its place in their queue.
 *
 * <p>Who waits only for the end of another one's batch is in the queue. So a query that has its batches one
 * right after the other does not take every turn. Its lock is that of {@link Progress}.
 */
final class Turn {
    /** How long others give way to one in the queue, since it has looked. */
    private static final long GIVE_WAY_MS = 60_000;

    private static long last;

    private boolean taken;
    private long number; // in the queue; 0 if it is not in it
    private long lookedMs;

    boolean isTaken() {
        return taken;
    }

    boolean isQueued() {
        return number > 0;
    }

    void take() {
        number = 0;
        taken = true;
    }

    /** It has no turn any more, and waits for none. */
    void leave() {
        if (taken || number > 0) {
            Progress.class.notifyAll();
        }
        taken = false;
        number = 0;
    }

    /** Waits, from now on or still. */
    void queue(long nowMs) {
        number = number > 0 ? number : ++last;
        lookedMs = nowMs;
    }

    /** Whether the other one has its turn, or has waited for longer; one that has its own is after nobody. */
    boolean isAfter(Turn other, long nowMs) {
        boolean waits = other.number > 0 && nowMs - other.lookedMs <= GIVE_WAY_MS;
        return !taken && (other.taken || waits && (number == 0 || other.number < number));
    }
}
