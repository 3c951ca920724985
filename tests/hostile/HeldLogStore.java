package lockstep.hostile;

import java.io.FileReader;
import java.io.IOException;
import java.nio.file.Path;
import lockstep.delta.PinnedLogStore;
import org.apache.hadoop.conf.Configuration;

/** Waits between the draft of one commit and its name, until somebody writes into a pipe. */
public class HeldLogStore extends PinnedLogStore {
  public HeldLogStore(Configuration conf) {
    super(conf);
  }

  @Override
  protected void link(Path draft, Path target) throws IOException {
    if (target.toString().equals(System.getProperty("held.commit"))) {
      System.clearProperty("held.commit");
      try (FileReader gate = new FileReader(System.getProperty("held.gate"))) {
        gate.read();
      }
    }
    super.link(draft, target);
  }
}
