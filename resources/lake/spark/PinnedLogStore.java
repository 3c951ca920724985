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
 * Delta's log store for mirrors: a commit is made at the version to which its session is pinned, on
 * top of the commit that it was planned on, or not at all ({@code resources/lake/delta/pin.py}).
 *
 * <p>Delta's own store checks that a commit's file does not exist, then renames a draft to it. A
 * process that is stopped between the two overwrites what others committed meanwhile. Here the
 * draft is linked (link(2)), which never replaces a file. If a version is taken, Delta would try the
 * next one; here that is refused. A commit to a table that was created again in the same folder is
 * refused too, since its previous commit differs. The draft is in the log's own folder, so that it
 * is removed with the folder.
 *
 * <p>Everything else that Delta writes, such as checkpoints, is left to its default store. Object
 * stores have neither link nor rename: {@link ObjectLogStore} keeps the same promise there.
 */
public class PinnedLogStore extends HDFSLogStore {
  /** The only version that the session may commit. */
  public static final String VERSION = "spark.lockstep.commit.version";

  /** The SHA-256, in hex, of the commit file before that version; not set for version 0. */
  public static final String PARENT = "spark.lockstep.commit.parent";

  private static final Pattern COMMIT = Pattern.compile("(\\d{20})\\.json");
  private static final Pattern STAGED = Pattern.compile("\\d{20}\\.[0-9a-fA-F-]{36}\\.json");

  public PinnedLogStore(Configuration conf) {
    super(conf);
  }

  /** The session is not pinned to this commit. After this error Delta tries no other version. */
  public static class CommitRefused extends IOException {
    private static final long serialVersionUID = 1;

    public CommitRefused(String reason) {
      super(reason);
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

  /** Writes a file of the log that is no commit. */
  protected void writeOther(
      Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
      throws IOException {
    super.write(path, actions, overwrite, conf);
  }

  /**
   * Creates a commit's file durably. Throws an error if the file exists, or if the commit before it
   * is not the one to which the session is pinned.
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
      // Checked after the draft was written: a folder that replaces this one has no draft to link.
      refuseOtherParent(path, version, conf);
      link(draft, target);
    } finally {
      Files.deleteIfExists(draft);
    }
    try (FileChannel names = FileChannel.open(folder, StandardOpenOption.READ)) {
      names.force(true);
    }
  }

  /** Throws CommitRefused unless the session is pinned to the commit before this version. */
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

  /** Gives the draft its name. Throws FileAlreadyExistsException if another commit has it. */
  protected void link(java.nio.file.Path draft, java.nio.file.Path target) throws IOException {
    try {
      Files.createLink(target, draft);
    } catch (NoSuchFileException missing) {
      throw new CommitRefused("the folder of " + target.getFileName() + " was removed");
    }
  }

  /** Returns a file of the log; null if there is none. */
  protected byte[] content(Path path, Configuration conf) throws IOException {
    try {
      return Files.readAllBytes(Paths.get(path.toUri().getPath()));
    } catch (NoSuchFileException missing) {
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
