package lockstep.delta;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;

/**
 * {@link PinnedLogStore} for a lake in an object store: a commit is one conditional write.
 *
 * <p>A store can have created the object although its answer was lost; the client then repeats the
 * request by itself, and the store answers that the object exists. So after any failure the object
 * is read: if it has this commit's content, which names its transaction, the commit was made.
 */
public class ObjectLogStore extends PinnedLogStore {
  /** With this option S3A sends If-None-Match; {@code create(path, false)} only checks before. */
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";

  public ObjectLogStore(Configuration conf) {
    super(conf);
  }

  @Override
  protected void put(Path path, byte[] content, long version, Configuration conf)
      throws IOException {
    refuseOtherParent(path, version, conf);
    try {
      upload(create(path, conf), content);
    } catch (IOException failure) {
      byte[] stored = content(path, conf);
      if (stored == null) {
        throw failure;
      }
      if (!Arrays.equals(stored, content)) {
        FileAlreadyExistsException conflict = new FileAlreadyExistsException(path.toString());
        conflict.initCause(failure);
        throw conflict;
      }
    }
  }

  /**
   * Closes the stream only if all was written, since closing it uploads what was written so far.
   * Streams of Google's and Azure's stores cannot be aborted.
   */
  private static void upload(FSDataOutputStream object, byte[] content) throws IOException {
    try {
      object.write(content);
    } catch (IOException failure) {
      if (object.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) {
        object.abort();
      }
      throw failure;
    }
    object.close();
  }

  /** Returns a stream that creates the object when it is closed, unless the object exists. */
  protected FSDataOutputStream create(Path path, Configuration conf) throws IOException {
    FileSystem store = path.getFileSystem(conf);
    if (store.getScheme().startsWith("s3")) {
      FSDataOutputStreamBuilder<?, ?> object = store.createFile(path).overwrite(true);
      object.must(CONDITIONAL, true);
      return object.build();
    }
    return store.create(path, false);
  }

  @Override
  protected void writeOther(
      Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
      throws IOException {
    StringBuilder lines = new StringBuilder();
    while (actions.hasNext()) {
      lines.append(actions.next()).append("\n");
    }
    byte[] content = lines.toString().getBytes(StandardCharsets.UTF_8);
    upload(path.getFileSystem(conf).create(path, overwrite), content);
  }

  @Override
  protected byte[] content(Path path, Configuration conf) throws IOException {
    try (FSDataInputStream object = path.getFileSystem(conf).open(path)) {
      return object.readAllBytes();
    } catch (FileNotFoundException missing) {
      return null;
    }
  }

  /** An object exists whole or not at all. */
  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration conf) {
    return false;
  }
}
