package lockstep.delta;

import io.delta.storage.HDFSLogStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Where Delta writes a table's log: a commit is made at the version that its session was pinned
 * to, on top of the commit that it was planned on, or not at all.
 *
 * <p>Belongs here: that a commit file is made once, whole and durable, and by nobody whose plan is
 * of yesterday. Does not: which version that is, which whoever plans the commit tells ({@code
 * resources/lake/pin.py}); all else that Delta writes (checkpoints, what it last checked), which is
 * left to the store that Delta takes by itself.
 *
 * <p>Delta's own store looks whether a commit's file exists and then renames a draft to it: a
 * process that is stopped between the two overwrites what others committed meanwhile. Here the
 * draft is linked (link(2)), which never replaces anything. And Delta answers a version that was
 * taken by trying the next one; here the next one is refused, as is a table that was made anew in
 * the same folder: its commit before is another. The draft lies in the log's own folder, so that
 * it goes with the folder.
 *
 * <p>Object stores have neither link nor rename: {@link ObjectLogStore} makes the same promise
 * there.
 */
public class PinnedLogStore extends HDFSLogStore {
  /** The one version that the session may commit. */
  public static final String VERSION = "spark.lockstep.commit.version";

  /** The SHA-256 of the commit file before it, in hex; none for version 0. */
  public static final String PARENT = "spark.lockstep.commit.parent";

  private static final Pattern COMMIT = Pattern.compile("(\\d{20})\\.json");
  private static final Pattern STAGED = Pattern.compile("\\d{20}\\.[0-9a-fA-F-]{36}\\.json");

  public PinnedLogStore(Configuration conf) {
    super(conf);
  }

  /** A commit that its session is not pinned to. Delta tries no other version after it. */
  public static class CommitRefused extends IOException {
    private static final long serialVersionUID = 1;

    public CommitRefused(String why) {
      super(why);
    }
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
      throws IOException {
    String name = path.getName();
    if (STAGED.matcher(name).matches()) {
      throw new CommitRefused(name + " would be committed by a coordinator");
    }
    if (!COMMIT.matcher(name).matches()) {
      writeOther(path, actions, overwrite, conf);
      return;
    }
    if (overwrite) {
      throw new CommitRefused(name + " would be overwritten");
    }
    long version = Long.parseLong(name.substring(0, 20));
    String pinned = conf.get(VERSION);
    if (pinned == null || Long.parseLong(pinned) != version) {
      throw new CommitRefused(
          "version " + version + ", and the session may commit " + (pinned == null ? "none" : pinned));
    }
    StringBuilder lines = new StringBuilder();
    while (actions.hasNext()) {
      lines.append(actions.next()).append("\n");
    }
    put(path, lines.toString().getBytes(StandardCharsets.UTF_8), version, conf);
  }

  /** A file of the log that is no commit. */
  protected void writeOther(
      Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
      throws IOException {
    super.write(path, actions, overwrite, conf);
  }

  /**
   * Make a commit's file, durable, unless there is one or the one before is not the one that the
   * session is pinned to.
   */
  protected void put(Path path, byte[] content, long version, Configuration conf)
      throws IOException {
    java.nio.file.Path target = Paths.get(path.toUri().getPath());
    java.nio.file.Path folder = target.getParent();
    java.nio.file.Path draft = folder.resolve("." + target.getFileName() + "." + UUID.randomUUID() + ".tmp");
    try {
      try (FileChannel file =
          FileChannel.open(draft, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
        ByteBuffer rest = ByteBuffer.wrap(content);
        while (rest.hasRemaining()) {
          file.write(rest);
        }
        file.force(true);
      }
      // Behind the draft: in a folder that is made anew from here on there is none to link.
      refuseOtherParent(path, version, conf);
      link(draft, target);
    } finally {
      Files.deleteIfExists(draft);
    }
    try (FileChannel names = FileChannel.open(folder, StandardOpenOption.READ)) {
      names.force(true);
    }
  }

  /** CommitRefused unless the commit before is the one that the session is pinned to. */
  protected void refuseOtherParent(Path path, long version, Configuration conf)
      throws IOException {
    if (version == 0) {
      return;
    }
    String parent = conf.get(PARENT);
    Path before = new Path(path.getParent(), String.format("%020d.json", version - 1));
    byte[] content = parent == null ? null : content(before, conf);
    if (content == null || !parent.equals(digest(content))) {
      throw new CommitRefused("the commit before version " + version + " is another");
    }
  }

  /** Give the draft its name; FileAlreadyExistsException where somebody was first. */
  protected void link(java.nio.file.Path draft, java.nio.file.Path target) throws IOException {
    try {
      Files.createLink(target, draft);
    } catch (NoSuchFileException gone) {
      throw new CommitRefused("the folder of " + target.getFileName() + " was removed");
    }
  }

  /** A file of the log; null where there is none. */
  protected byte[] content(Path path, Configuration conf) throws IOException {
    try {
      return Files.readAllBytes(Paths.get(path.toUri().getPath()));
    } catch (NoSuchFileException none) {
      return null;
    }
  }

  private static String digest(byte[] content) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
