package ksql;

import org.apache.spark.scheduler.Pool;
import org.apache.spark.scheduler.Schedulable;
import org.apache.spark.scheduler.SchedulingMode;

/**
 * A pool of Spark's fair scheduler: of pools with an equal right to a core, the oldest job's goes first.
 *
 * <p>Spark compares their names then. With more queries than cores, those at the end of the alphabet would wait
 * as long as the others have work.
 */
public final class OldestFirstPool extends Pool {
    private static final long LOWEST = 10_000_000_000L; // so all numbers have the same length

    public OldestFirstPool(String name, int weight) {
        super(name, SchedulingMode.FIFO(), 0, weight);
    }

    /** What Spark compares: the number of its oldest job; its own name while it has none. */
    @Override
    public String name() {
        int oldest = Integer.MAX_VALUE;
        for (Schedulable tasks : schedulableQueue()) {
            oldest = Math.min(oldest, tasks.priority());
        }
        return oldest == Integer.MAX_VALUE ? poolName() : Long.toString(LOWEST + oldest);
    }
}
