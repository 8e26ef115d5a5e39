import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS in one process, on loopback, in the folder given: says its address and its web address, and ends with stdin. */
public class MiniDfs {
    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.set("dfs.permissions.enabled", "false");
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf, new File(args[0])).numDataNodes(1).build();
        cluster.waitActive();
        int web = cluster.getNameNode().getHttpAddress().getPort();
        System.out.println("hdfs://127.0.0.1:" + cluster.getNameNodePort() + " webhdfs://127.0.0.1:" + web);
        while (System.in.read() >= 0) {}
        cluster.shutdown();
    }
}
