package ksql;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * A local file system for checkpoints that does not start a process for every file.
 *
 * <p>Hadoop's own sets each new file's permissions. Without its native library it runs {@code chmod} for that, and
 * {@code readlink} to look for links. These are forty processes and two thirds of the time of a small stateful batch.
 * This one leaves permissions to the process' umask, and writes no checksums next to files (RocksDB's and Spark's files
 * have their own). It is a {@code LocalFileSystem}, as Hadoop casts local file systems to that.
 */
public final class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawFiles());
        setWriteChecksum(false);
        setVerifyChecksum(false);
    }

    private static final class RawFiles extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) {}
    }
}
