-- Clients that ask for versions which Kafka 4.0 takes no more (KIP-896), and in which; see kwire audit for what cures them
with lowest (api, low) as (
  values
    ('Produce', 3), ('Fetch', 4), ('ListOffsets', 1), ('OffsetCommit', 2), ('OffsetFetch', 1),
    ('CreateTopics', 2), ('DeleteTopics', 1), ('OffsetForLeaderEpoch', 2), ('DescribeAcls', 1),
    ('CreateAcls', 1), ('DeleteAcls', 1), ('DescribeConfigs', 1), ('AlterReplicaLogDirs', 1),
    ('DescribeLogDirs', 1), ('CreateDelegationToken', 1), ('RenewDelegationToken', 1),
    ('ExpireDelegationToken', 1), ('DescribeDelegationToken', 1)
)
select
  client_id,
  api,
  list(distinct api_version order by api_version) as versions,
  any_value(low) as lowest,
  count(*) as count,
  min(time) as first_time
from exchanges join lowest using (api)
where api_version < low
group by client_id, api
order by client_id, api
