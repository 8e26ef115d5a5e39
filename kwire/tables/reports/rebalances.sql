-- The generations of each group: when members joined, how many there were, and who led
select
  "group",
  generation,
  min(time) as first_time,
  max(time) as last_time,
  count(distinct member) as joined,
  max(members) as members,
  max(protocol) as protocol,
  max(leader) as leader
from group_events
where api = 'JoinGroup' and generation >= 0 and error is null
group by "group", generation
order by "group", first_time, generation
