package ksql;

/**
 * How fresh the results of a query are that has no backlog, for those that write its topic with it.
 *
 * <p>That it has processed all was true when it looked. Records may have arrived since, and another writer
 * may have processed them already. So looks are numbered in the order in which they begin and end. A
 * writer of the same topic goes on when the others have looked after it, and to the time to which they
 * come, too. Its lock is that of {@link Progress}.
 */
final class Freshness {
    private static long last = System.currentTimeMillis() * 1_000; // higher than in a process before

    private long since; // all that had arrived when this number was given is processed
    private long reached = Progress.ALL; // the time up to which it is; all, if a look has found nothing
    private long lookSince;
    private long lookTime = Progress.ALL;
    private long lookEnd; // 0 if no look waits for its turn
    private long waitsSinceMs;
    private long step = Progress.ALL;
    private long asOf;

    static long next() {
        return ++last;
    }

    long since() {
        return since;
    }

    /** The number of the look whose records the last batch has. */
    long asOf() {
        return asOf;
    }

    /**
     * A look has found records, or nothing.
     *
     * @param began the number at its beginning, or an older one of those upstream
     * @param time the time after its last record; {@link Progress#ALL} if nobody reads what comes of them
     */
    void look(long began, long time, boolean isWatched, long nowMs) {
        lookSince = began;
        lookTime = time;
        lookEnd = isWatched ? next() : 0;
        waitsSinceMs = nowMs;
        if (time != Progress.ALL && reached == Progress.ALL) {
            reached = Progress.NOTHING;
        }
    }

    /** Whether its look waits for its turn. */
    boolean isWaiting() {
        return lookEnd > 0;
    }

    /** How long its look has waited. */
    long waitsMs(long nowMs) {
        return nowMs - waitsSinceMs;
    }

    /** The number at the end of the look that waits; 0 if none does. */
    long lookEnd() {
        return lookEnd;
    }

    /** The time up to which its batch goes, which has no backlog if that is all. */
    long end(long until) {
        return until == Progress.ALL ? Math.min(step, lookTime) : until;
    }

    /** Where its next batch would end, if it takes all that the look has found. */
    long end() {
        return lookTime;
    }

    /** Up to which time all is processed; {@link Progress#ALL} only as far as the last look saw. */
    long reached() {
        return reached;
    }

    /** Whether the other one has not looked since this one's look, as far as is known, and has nothing in hand. */
    boolean isAheadOf(Freshness other) {
        return other.reached == Progress.ALL && other.since < lookEnd;
    }

    /** How far it may go beside another one: not at all if that is behind, as far as that is, or will be next. */
    long step(Freshness other) {
        if (other.since >= lookEnd || other.reached == Progress.ALL) {
            return Progress.ALL;
        }
        if (other.reached == reached) {
            return other.isWaiting() ? other.lookTime : Progress.NOTHING;
        }
        return other.reached < reached ? Progress.NOTHING : other.reached;
    }

    /** Its turn has come, up to some time. */
    void take(long limit, boolean isLive) {
        step = isLive ? limit : Progress.ALL;
    }

    /** Whether it goes up to that time in steps with others, and has no backlog. */
    boolean isStep(long until) {
        return step != Progress.ALL && step == until;
    }

    /** It has planned a batch; without a look it has seen what there is. */
    void plan() {
        asOf = lookEnd > 0 ? lookEnd : next();
        lookSince = lookSince > 0 ? lookSince : asOf;
    }

    /**
     * It has processed what its look has found, as far as that was its turn.
     *
     * @param isAll whether it had no backlog
     */
    void done(boolean isAll) {
        boolean isWhole = step >= lookTime;
        if (isAll && isWhole) {
            since = Math.max(since, lookSince);
        }
        reached = isAll ? isWhole ? lookTime : step : Progress.ALL;
        leave();
    }

    /** Its look waits no more. */
    void leave() {
        lookEnd = 0;
        lookSince = 0;
        step = Progress.ALL;
    }
}
