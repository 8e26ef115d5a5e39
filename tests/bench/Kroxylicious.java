import io.kroxylicious.proxy.KafkaProxy;
import io.kroxylicious.proxy.config.ConfigParser;
import io.kroxylicious.proxy.internal.config.Features;

/** Kroxylicious 0.9 in front of one broker, without filters: java Kroxylicious.java BROKER HOST:PORT. */
public class Kroxylicious {
    public static void main(String[] given) throws Exception {
        String config = """
            virtualClusters:
              one:
                targetCluster:
                  bootstrap_servers: %s
                clusterNetworkAddressConfigProvider:
                  type: PortPerBrokerClusterNetworkAddressConfigProvider
                  config:
                    bootstrapAddress: %s
            """.formatted(given[0], given[1]);
        ConfigParser parser = new ConfigParser();
        try (KafkaProxy proxy = new KafkaProxy(parser, parser.parseConfiguration(config), Features.defaultFeatures())) {
            proxy.startup().block();
        }
    }
}
