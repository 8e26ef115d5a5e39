-- The slowest answers, without the requests that a broker holds until there is something to say
select time, round(latency_ns / 1e6, 3) as ms, api, api_version as version, client_id, connection
from exchanges
where latency_ns is not null and api not in ('Fetch', 'ShareFetch', 'JoinGroup', 'SyncGroup')
order by latency_ns desc, time
limit 20
