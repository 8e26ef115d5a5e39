// Features of the admin client about who may do what, and how much: ACLs, quotas, SCRAM users, delegation tokens.

import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

import java.util.List;
import java.util.Map;

public class Rights extends Matrix {
    static final String MODULE = "org.apache.kafka.common.security.";

    public static void features() {
        FEATURES.put("acls", topic -> {
            AclBinding binding = new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
                new AccessControlEntry("User:nobody", "*", AclOperation.READ, AclPermissionType.ALLOW));
            get(admin.createAcls(List.of(binding)).all());
            soon(() -> get(admin.describeAcls(binding.toFilter()).values()).contains(binding));
            check(get(admin.deleteAcls(List.of(binding.toFilter())).all()).size() == 1, "not deleted");
        });
        FEATURES.put("quotas", topic -> {
            ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, topic));
            get(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all());
            ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(
                List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, topic)));
            soon(() -> !get(admin.describeClientQuotas(filter).entities()).isEmpty());
            check(get(admin.describeClientQuotas(filter).entities()).get(entity).get("producer_byte_rate") == 1e6, "another");
            get(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all());
        });
        FEATURES.put("scram", topic -> {
            scram(topic, "secret");
            check(get(admin.describeUserScramCredentials(List.of(topic)).all()).get(topic).credentialInfos().size() == 1, "none");
            UserScramCredentialAlteration gone = new UserScramCredentialDeletion(topic, ScramMechanism.SCRAM_SHA_256);
            get(admin.alterUserScramCredentials(List.of(gone)).all());
        });
        FEATURES.put("scram-login", topic -> {
            scram(topic, "secret");
            try (AdminClient other = loggedIn(topic, "secret", "")) {
                check(get(other.describeCluster().clusterId()) != null, "no id");
            }
        });
        FEATURES.put("tokens", topic -> {
            scram(topic, "secret");
            try (AdminClient other = loggedIn(topic, "secret", "")) {
                DelegationToken token = get(other.createDelegationToken(new CreateDelegationTokenOptions()).delegationToken());
                soon(() -> get(other.describeDelegationToken().delegationTokens()).size() == 1);
                try (AdminClient third = loggedIn(token.tokenInfo().tokenId(), token.hmacAsBase64String(), " tokenauth=true")) {
                    check(get(third.describeCluster().clusterId()) != null, "no id");
                }
                check(get(other.renewDelegationToken(token.hmac()).expiryTimestamp()) > 0, "expired");
                get(other.expireDelegationToken(token.hmac(), new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp());
            }
        });
    }

    static void scram(String user, String password) throws Exception {
        ScramCredentialInfo how = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        get(admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(user, how, password))).all());
        soon(() -> {
            try {
                return !get(admin.describeUserScramCredentials(List.of(user)).all()).isEmpty();
            } catch (Exception notYet) {
                return false;
            }
        });
    }

    static AdminClient loggedIn(String user, String password, String more) {
        String jaas = MODULE + "scram.ScramLoginModule required username=\"" + user + "\" password=\"" + password + "\"" + more + ";";
        return AdminClient.create(with("bootstrap.servers", login, "security.protocol", "SASL_PLAINTEXT",
            "sasl.mechanism", "SCRAM-SHA-256", "sasl.jaas.config", jaas));
    }
}
