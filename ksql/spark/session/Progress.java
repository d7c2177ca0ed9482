package ksql;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/**
 * How far the queries of this process are, for those that read what they write.
 *
 * <p>A query that reads another one's topic must not see half of a batch, nor go ahead of the time
 * up to which that query has processed its inputs: else a backlog would reach it in another order
 * than the same records live. So each query states, when it plans a batch, where its topic ends
 * before that batch, and up to which time all its inputs are processed.
 *
 * <p>A transaction is over for its writer before Kafka has marked its end in each partition, and until
 * then no reader sees its records. So a query also states where its topic ended after its last
 * batch, whatever is marked: what lies before that has to be seen whole or not at all.
 *
 * <p>Where several queries write one topic, a reader may not come to the end of the last batch of one,
 * as another one is in a batch, or in a transaction. So each of them keeps where its batches ended.
 *
 * <p>A query that runs, or is about to, is waited for; one that is stopped or fails only for a time, and so are marks.
 *
 * <p>What changes here ends the {@link Arrivals#await waits} of readers.
 */
public final class Progress {
    /** All inputs are processed. */
    static final long ALL = Long.MAX_VALUE;
    /** Nothing is known yet. */
    static final long NOTHING = Long.MIN_VALUE;

    /** How long one that is to run may take until its first look. */
    private static final long START_MS = 600_000;

    private static final long START_CHECK_MS = 1_000;

    /** Of how many batches it is known where they ended. */
    private static final int KEPT = 64;

    /** Of how many queries it is known that they have ended. */
    private static final int KEPT_FORGOTTEN = 1_024;

    private static final Map<String, Progress> QUERIES = new HashMap<>();
    private static final Map<String, SharedTopic> SHARED = new HashMap<>();
    private static final Map<String, Long> FORGOTTEN = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Long> eldest) {
            return size() > KEPT_FORGOTTEN;
        }
    };

    private final String id;
    private final Set<String> sources;
    private final String sink;
    private long waitMs;
    private long begun;
    private long doneUntil = NOTHING;
    private long plannedUntil = NOTHING;
    private long target = NOTHING;
    private Map<TopicPartition, Long> endsBefore = Map.of();
    private Map<TopicPartition, Long> written = Map.of();
    private long writtenAtMs;
    private final Deque<Upstream.Batch> finished = new ArrayDeque<>(); // the last one first
    private boolean inBatch;
    private final Turn turn = new Turn();
    private final Freshness fresh = new Freshness();
    private long wanted;
    private SharedTopic.Portion unsaved;
    private SharedTopic.Portion unfinished;
    private boolean alone;
    private long batches;
    private long idleSinceMs;
    private boolean starting;
    private boolean stopped;
    private boolean worked;

    private Progress(String id, Set<String> sources, String sink, long begun, long nowMs) {
        this.id = id;
        this.sources = sources;
        this.sink = sink;
        this.begun = begun;
        starting = begun > 0;
        stopped = !starting;
        idleSinceMs = nowMs;
    }

    /**
     * Registers a query that is to run; one that is here already keeps what it has stated, and since
     * when it does not run: else whatever starts beside one that fails would have its readers wait anew.
     *
     * @param id what all versions of a query have in common
     * @param begun 0 for one that is stopped or fails; else it grows whenever the query is to run again.
     *     One that is to run is waited for until it does, for ten minutes at most
     */
    public static synchronized void announce(
            String query, String id, Set<String> sources, String sink, long begun, long nowMs) {
        if (begun < FORGOTTEN.getOrDefault(query, 0L)) {
            return;
        }
        FORGOTTEN.remove(query);
        Progress known = QUERIES.get(query);
        if (known == null || !known.sink.equals(sink) || !known.sources.equals(sources)) {
            QUERIES.put(query, new Progress(id, sources, sink, begun, nowMs));
        } else if (known.begun < begun) {
            known.begun = begun;
            if (known.stopped) {
                known.starting = true;
                known.stopped = false;
                known.idleSinceMs = nowMs;
            }
        }
    }

    /** The query waits so long for one that does not run, and for marks. */
    public static synchronized void limit(String query, long waitMs) {
        Progress known = QUERIES.get(query);
        if (known != null) {
            known.waitMs = waitMs;
        }
    }

    /**
     * The query is ended for good: nobody waits for it.
     *
     * @param begun what begins before that is older: a source that lists the query may come only now
     */
    public static synchronized void forget(String query, long begun) {
        QUERIES.remove(query);
        FORGOTTEN.put(query, begun);
        SHARED.keySet().retainAll(QUERIES.values().stream().map(each -> each.sink).toList());
        Progress.class.notifyAll();
    }

    /** Whether a reader that waits so long has waited for long enough. */
    private boolean isGone(long waitMs, long nowMs) {
        long idleMs = nowMs - idleSinceMs;
        return stopped && idleMs > waitMs || starting && idleMs > Math.max(waitMs, START_MS);
    }

    /**
     * The query does not run for now; its batch, if it had one, is half done or done. One that had
     * processed all does not know what comes from now on. One that has done nothing since it ran
     * before does not run since then: else readers would wait for ever for one that fails again and again.
     */
    public static synchronized void stop(String query, long nowMs) {
        Progress known = QUERIES.get(query);
        if (known != null && !known.stopped) {
            known.idleSinceMs = known.worked || known.starting ? nowMs : known.idleSinceMs;
            known.stopped = true;
            known.starting = false;
            known.worked = false;
            known.turn.leave();
            known.fresh.leave();
            known.doneUntil = known.doneUntil == ALL ? NOTHING : known.doneUntil;
            known.plannedUntil = known.plannedUntil == ALL ? NOTHING : known.plannedUntil;
            Progress.class.notifyAll();
        }
    }

    /**
     * Waits until those have begun that write one topic with others: their checkpoints say who has written what.
     *
     * <p>A batch that is run again needs it before the first look.
     */
    static synchronized void awaitWriters(String query) throws InterruptedException {
        long nowMs = System.currentTimeMillis();
        while (isAwaited(query, nowMs)) {
            Progress.class.wait(START_CHECK_MS);
            nowMs = System.currentTimeMillis();
        }
    }

    private static boolean isAwaited(String query, long nowMs) {
        return upstream(query, nowMs).keySet().stream().anyMatch(each -> isShared(each) && QUERIES.get(each).starting);
    }

    /** Whether a batch was planned that is not done yet. */
    public static synchronized boolean isInBatch(String query) {
        Progress known = QUERIES.get(query);
        return known != null && known.inBatch;
    }

    /**
     * The query looks for the first time since it was started. A batch that was planned before and
     * is neither done nor run again was never begun.
     */
    public static synchronized void begin(String query) {
        Progress known = QUERIES.get(query);
        if (known != null) {
            known.inBatch = false;
            known.unfinished = null;
            known.turn.leave();
            known.fresh.leave();
            known.target = NOTHING;
            known.stopped = false;
            known.starting = false;
            Progress.class.notifyAll();
        }
    }

    /**
     * The query runs a batch again that was half done when it ended. While that takes, it runs; what
     * it has done before it ended is known, and where the batch began. A process before this one may
     * have planned it: then the checkpoint may say both.
     */
    public static synchronized void rerun(String query) {
        Progress known = QUERIES.get(query);
        if (known != null) {
            if (!known.inBatch) {
                known.inBatch = true;
                SharedTopic.Portion begun = known.unfinished;
                known.alone = begun != null && begun.alone();
                known.plannedUntil = begun != null && begun.until() != ALL ? begun.until() : known.doneUntil;
                known.endsBefore = begun == null ? Map.of() : begun.from();
                known.fresh.plan();
            }
            known.batches++;
            known.stopped = false;
            known.starting = false;
            Progress.class.notifyAll();
        }
    }

    /**
     * The batch that was planned before, if there was one, is done.
     *
     * @param written where its topic ends now, with what transactions still hide; null if nothing
     *     was written, or that does not count
     * @param mayHide whether readers may not see all of that yet
     */
    public static synchronized void done(
            String query, Map<TopicPartition, Long> written, boolean mayHide, long nowMs) {
        Progress known = QUERIES.get(query);
        if (known != null) {
            boolean mayBeHidden = written != null && mayHide;
            boolean isNews = mayBeHidden || known.inBatch || known.stopped || known.starting;
            if (mayBeHidden) {
                known.written = written;
                known.writtenAtMs = nowMs;
            }
            if (known.inBatch) {
                known.fresh.done(known.plannedUntil == ALL);
                if (written != null) {
                    known.note(query, known.endsBefore, written);
                }
                known.doneUntil = known.plannedUntil;
                known.inBatch = false;
                known.worked = true;
            }
            if (mayBeHidden) {
                known.keep(new Upstream.Batch(known.doneUntil, written));
            }
            known.stopped = false;
            known.starting = false;
            if (isNews) {
                Progress.class.notifyAll();
            }
        }
    }

    private void keep(Upstream.Batch batch) {
        finished.push(batch);
        if (finished.size() > KEPT) {
            finished.removeLast();
        }
    }

    /**
     * The query has found more than a batch may have, and plans a batch up to some time. If it had
     * processed all, it has not any more; how far it is it says when that batch is done.
     */
    public static synchronized void behind(String query) {
        Progress known = QUERIES.get(query);
        if (known != null && known.doneUntil == ALL) {
            known.doneUntil = NOTHING;
            Progress.class.notifyAll();
        }
    }

    /**
     * The query has planned a batch, or found nothing to do.
     *
     * @param until the time up to which its inputs are processed then
     * @param ends where its topic ends before the batch, empty if that was not looked at as nobody
     *     read it; null if there is no batch
     */
    public static synchronized void planned(String query, long until, Map<TopicPartition, Long> ends) {
        Progress known = QUERIES.get(query);
        if (known != null) {
            boolean isNews = ends != null || !known.isIdle(query) || until != known.target;
            known.plannedUntil = known.fresh.isStep(until) ? ALL : until;
            known.inBatch = ends != null;
            known.turn.leave();
            known.fresh.plan();
            if (ends == null) {
                known.target = until;
                known.fresh.done(known.plannedUntil == ALL);
                known.note(query, Map.of(), Map.of());
                known.doneUntil = known.plannedUntil;
                known.worked = true;
            } else {
                known.beside(isWatched(query));
                known.endsBefore = ends;
                known.unsaved = isNoted(query) ? known.portion(known.fresh.end(known.plannedUntil), ends, null) : null;
                known.batches++;
            }
            if (isNews || known.doneUntil != ALL) {
                Progress.class.notifyAll();
            }
        }
    }

    /** Whether it had processed all, writes a topic alone, and nobody waits for its next look. */
    private boolean isIdle(String query) {
        return doneUntil == ALL && !inBatch && !isShared(query) && !isUnlooked(wanted);
    }

    /** States what the query has written up to some time. */
    private void note(String query, Map<TopicPartition, Long> from, Map<TopicPartition, Long> to) {
        if (isNoted(query)) {
            SharedTopic topic = SHARED.computeIfAbsent(sink, any -> new SharedTopic());
            long until = plannedUntil == ALL ? fresh.reached() : plannedUntil;
            SharedTopic.Portion portion = portion(until, from, to);
            topic.add(portion);
            unsaved = portion.isEmpty() && until == ALL ? null : portion;
        }
    }

    private SharedTopic.Portion portion(long until, Map<TopicPartition, Long> from, Map<TopicPartition, Long> to) {
        return new SharedTopic.Portion(
            id, until, from, to, alone, fresh.since(), fresh.asOf(), Freshness.next());
    }

    /** What the query has begun to write, or has written, since this was called before; null if nothing. */
    static synchronized SharedTopic.Portion takeUnsaved(String query) {
        Progress known = QUERIES.get(query);
        SharedTopic.Portion portion = known == null ? null : known.unsaved;
        if (portion != null) {
            known.unsaved = null;
        }
        return portion;
    }

    /** What the query has written, as far as it is known. */
    static synchronized List<SharedTopic.Portion> written(String query) {
        Progress known = QUERIES.get(query);
        return known == null ? List.of() : shared(known.sink).of(known.id);
    }

    /**
     * A query that is about to begin has written that, maybe in a process before this one.
     *
     * @param portions the last one without its end if its batch was begun
     * @param ends where its topic ends now; if what was written ends later, that was another topic
     * @param isRerun whether that batch is half done; else it is done, or was never run
     */
    static synchronized void restore(
            String query, List<SharedTopic.Portion> portions, Map<TopicPartition, Long> ends, boolean isRerun) {
        Progress known = QUERIES.get(query);
        if (known == null || portions.stream().anyMatch(each ->
                !PartitionOffsets.reach(ends, each.to() == null ? each.from() : each.to()))) {
            return;
        }
        SharedTopic topic = SHARED.computeIfAbsent(known.sink, any -> new SharedTopic());
        topic.restore(portions.stream().filter(each -> each.to() != null).toList());
        SharedTopic.Portion last = portions.get(portions.size() - 1);
        if (last.to() == null && isRerun) {
            known.unfinished = last;
        } else if (last.to() == null) {
            QUERIES.values().stream().filter(each -> known.isBeside(each) && each.inBatch)
                .forEach(each -> each.endsBefore.forEach((place, end) -> ends.merge(place, end, Math::min)));
            known.unsaved = last.until(topic.endsBeforeNext(last, ends));
            topic.restore(List.of(known.unsaved));
        }
    }

    /**
     * A batch begins: of those that run at one time none is alone. Nor is one of live records that nobody reads.
     * Those that read what comes of the topic count here: they write it without waiting for a turn.
     */
    private void beside(boolean isWatched) {
        List<Progress> others = QUERIES.values().stream()
            .filter(each -> isBeside(each) && !each.stopped).toList();
        boolean isInTurn = isWatched || doneUntil != ALL || others.stream().anyMatch(each -> each.doneUntil != ALL);
        alone = others.isEmpty() || isInTurn && others.stream().noneMatch(each -> each.inBatch);
        others.forEach(each -> each.alone = false);
    }

    /**
     * The others that write its topic and run, or are about to; but none that reads what comes of that. If the
     * topic has readers, they wait for one that is stopped, and so does this one: it may be replaced.
     */
    private static List<Progress> otherWriters(String query, long nowMs) {
        Progress known = QUERIES.get(query);
        if (known == null || known.sink.isEmpty()) {
            return List.of();
        }
        Set<String> downstream = downstream(query);
        boolean isRead = hasReaders(query);
        return QUERIES.entrySet().stream()
            .filter(each -> known.isBeside(each.getValue()) && (isRead || !each.getValue().stopped))
            .filter(each -> !each.getValue().isGone(known.waitMs, nowMs))
            .filter(each -> !downstream.contains(each.getKey()) && !downstream(each.getKey()).contains(query))
            .map(Map.Entry::getValue).toList();
    }

    /** Whether both write one topic and are not versions of one query. */
    private boolean isBeside(Progress other) {
        return !sink.isEmpty() && sink.equals(other.sink) && !id.equals(other.id);
    }

    /**
     * The time up to which a query may plan its next batch if others write its topic, too.
     *
     * <p>While they have a backlog they go on in steps: to the lowest of the times at which a batch of one
     * of them would end, one query after the other. So none is ahead of others by more than such a step.
     * One that had processed all does not wait for those that have not; only two batches do not run
     * at one time then, so that it is known who has written what.
     *
     * <p>If somebody reads the topic, live records are written in such steps, too. What another one had
     * processed is not all any more, once this one has found records: that one has to look again first.
     *
     * <p>Who has to wait only for the end of another one's batch is the next: a query that has its batches one
     * right after the other gives way to it.
     *
     * @param until the end of the batch that it would plan
     * @return {@link #NOTHING} while it has to wait
     */
    public static synchronized long turn(String query, long until, long nowMs) {
        Progress known = QUERIES.get(query);
        List<Progress> others = otherWriters(query, nowMs);
        if (others.isEmpty()) {
            return until;
        }
        boolean isLive = known.doneUntil == ALL && until == ALL && known.fresh.isWaiting();
        long end = isLive ? known.fresh.end() : until;
        known.aim(end);
        List<Progress> unlooked = others.stream().filter(each -> known.isAheadOf(each, nowMs)).toList();
        unlooked.forEach(each -> each.want(known.fresh.lookEnd()));
        long limit = known.limit(others, end, isLive);
        long done = isLive ? known.fresh.reached() : known.doneUntil;
        if (!unlooked.isEmpty() || limit < end && limit <= done) { // else it goes on, maybe with more of one time
            known.turn.leave();
            return NOTHING;
        }
        if (others.stream().anyMatch(each -> known.givesWay(each, nowMs))) {
            known.turn.queue(nowMs);
            return NOTHING;
        }
        known.aim(limit);
        known.fresh.take(limit, isLive);
        known.turn.take();
        return limit == end ? until : limit;
    }

    private long limit(List<Progress> others, long end, boolean isLive) {
        long limit = end;
        for (Progress other : others) {
            if (doneUntil != ALL && other.doneUntil != ALL) {
                limit = Math.min(limit, other.starting || other.stopped ? NOTHING : step(other));
            } else if (isLive && other.doneUntil == ALL) {
                limit = Math.min(limit, fresh.step(other.fresh));
            }
        }
        return limit;
    }

    /** Whether it has found records, and the other one, which had processed all, has not looked since. */
    private boolean isAheadOf(Progress other, long nowMs) {
        return fresh.isWaiting() && other.doneUntil == ALL && fresh.isAheadOf(other.fresh)
            && fresh.waitsMs(nowMs) <= Math.max(waitMs, START_MS);
    }

    /** Whether the other one is in a batch, or comes first; but not if both have processed all and nobody reads it. */
    private boolean givesWay(Progress other, long nowMs) {
        boolean isUnread = doneUntil == ALL && other.doneUntil == ALL && !fresh.isWaiting();
        return !isUnread && (other.inBatch || turn.isAfter(other.turn, nowMs));
    }

    /** It and all upstream of it are to look again, unless they have since that number was given. */
    private void want(long number) {
        if (wanted < number) {
            wanted = number;
            writers(this).forEach(each -> each.want(number));
            Progress.class.notifyAll();
        }
    }

    private static List<Progress> writers(Progress reader) {
        return QUERIES.values().stream().filter(each -> each != reader && reader.sources.contains(each.sink)).toList();
    }

    /** Whether somebody waits for its next look, and those upstream have had theirs. */
    public static synchronized boolean isWanted(String query) {
        Progress known = QUERIES.get(query);
        return known != null && known.isUnlooked(known.wanted) && !known.fresh.isWaiting()
            && writers(known).stream().noneMatch(each -> each.isUnlooked(known.wanted));
    }

    /** Whether it had processed all, and may not have what has arrived until that number was given. */
    private boolean isUnlooked(long number) {
        return doneUntil == ALL && !stopped && fresh.since() < number;
    }

    /**
     * A number for a look that begins: what those upstream have not seen, it does not see either.
     */
    public static synchronized long since(String query, long nowMs) {
        return upstream(query, nowMs).entrySet().stream().filter(each -> each.getValue().until() == ALL)
            .mapToLong(each -> QUERIES.get(each.getKey()).fresh.since()).reduce(Freshness.next(), Math::min);
    }

    /**
     * A look has found something, or nothing.
     *
     * @param since the number at its beginning
     * @param time the time after the last record to process; {@link #ALL} if not {@link #isWatched}
     */
    public static synchronized void looked(String query, long since, long time, boolean isFound, long nowMs) {
        Progress known = QUERIES.get(query);
        if (known != null) {
            known.fresh.look(since, time, isFound && isWatched(query), nowMs);
        }
    }

    /** Whether another query reads what this one and others write. */
    public static synchronized boolean isWatched(String query) {
        return isShared(query) && hasReaders(query);
    }

    /** The topics to read in which one writer is ahead of another one, and how far those are. */
    public static synchronized Map<String, Long> open(String query, long nowMs) {
        Map<String, Set<String>> writers = new HashMap<>();
        Map<String, Long> since = new HashMap<>();
        upstream(query, nowMs).forEach((name, each) -> {
            writers.computeIfAbsent(each.sink(), any -> new HashSet<>()).add(each.id());
            since.merge(each.sink(), QUERIES.get(name).fresh.since(), Long::sum);
        });
        since.keySet().removeIf(topic -> writers.get(topic).size() < 2
            || !SHARED.containsKey(topic) || !SHARED.get(topic).isOpen(writers.get(topic)));
        return since;
    }

    /** How far it may go beside another one: not at all if that is behind, as far as that is, or will be next. */
    private long step(Progress other) {
        return other.doneUntil < doneUntil ? NOTHING : other.doneUntil > doneUntil ? other.doneUntil : other.target;
    }

    private void aim(long until) {
        if (target != until) {
            target = until;
            Progress.class.notifyAll();
        }
    }

    /** How far the other writers of its topic are, as far as {@link #turn} looks at it. */
    public static synchronized List<List<Object>> others(String query, long nowMs) {
        Progress known = QUERIES.get(query);
        return otherWriters(query, nowMs).stream()
            .map(each -> List.<Object>of(
                each.id, each.target, each.doneUntil, each.inBatch || each.turn.isTaken(), each.turn.isQueued(),
                each.starting, known.isAheadOf(each, nowMs), each.fresh.isWaiting(), each.fresh.reached()))
            .toList();
    }

    /** A range of a partition by the queries that have written it. */
    static synchronized List<SharedTopic.Lane> lanes(TopicPartition place, long start, long end) {
        SharedTopic known = SHARED.get(place.topic());
        return known == null ? List.of(new SharedTopic.Lane(start, end, 0)) : known.lanes(place, start, end);
    }

    /** What is known of a topic that several queries write. */
    static synchronized SharedTopic shared(String topic) {
        SharedTopic known = SHARED.get(topic);
        return known == null ? new SharedTopic() : known.copy();
    }

    /** Whether another query reads what this one writes, or may do so again. */
    public static synchronized boolean hasReaders(String query) {
        Progress known = QUERIES.get(query);
        return known != null && !known.sink.isEmpty()
            && QUERIES.entrySet().stream().anyMatch(each ->
                !each.getKey().equals(query) && each.getValue().sources.contains(known.sink));
    }

    /** Whether another query writes the same topic. */
    public static synchronized boolean isShared(String query) {
        Progress known = QUERIES.get(query);
        return known != null && QUERIES.values().stream().anyMatch(known::isBeside);
    }

    /** Whether it counts what the query writes. Of one that writes alone only its backlog does: others may come. */
    static synchronized boolean isNoted(String query) {
        Progress known = QUERIES.get(query);
        return known != null && !known.sink.isEmpty() && (known.doneUntil != ALL || isShared(query));
    }

    /** What the queries say that write what this one reads; theirs is what those before them say. */
    public static synchronized Map<String, Upstream> upstream(String query, long nowMs) {
        Map<String, Upstream> found = new HashMap<>();
        Progress reader = QUERIES.get(query);
        if (reader == null) {
            return found;
        }
        Set<String> downstream = downstream(query);
        QUERIES.forEach((name, each) -> {
            boolean isUpstream = reader.sources.contains(each.sink) && !downstream.contains(name);
            if (isUpstream && !each.isGone(reader.waitMs, nowMs)) {
                boolean marked = nowMs - each.writtenAtMs > reader.waitMs;
                found.put(name, new Upstream(
                    each.until(), each.inBatch ? each.endsBefore : Map.of(), each.written, marked,
                    isShared(name) ? List.copyOf(each.finished) : List.of(), each.batches, each.id, each.sink));
            }
        });
        return found;
    }

    /** A reader that is new within a batch cannot tell where the batch begins: it knows nothing then. */
    private long until() {
        return inBatch && endsBefore.isEmpty() ? NOTHING : doneUntil;
    }

    /** The query itself and all that read, at however many removes, what it writes. */
    private static Set<String> downstream(String query) {
        Set<String> found = new HashSet<>(Set.of(query));
        Deque<String> left = new ArrayDeque<>(found);
        while (!left.isEmpty()) {
            String sink = QUERIES.get(left.pop()).sink;
            QUERIES.forEach((name, each) -> {
                if (each.sources.contains(sink) && found.add(name)) {
                    left.push(name);
                }
            });
        }
        return found;
    }
}
