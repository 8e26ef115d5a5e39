-- The generations of each classic group: when the first member joined, how many there were, and who led
select
  "group",
  generation,
  min(time) as time,
  max(members) as members,
  max(protocol) as protocol,
  max(leader) as leader
from group_events
where api = 'JoinGroup' and generation >= 0 and error is null
group by "group", generation
order by "group", time, generation
