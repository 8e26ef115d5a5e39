-- The versions of each API that were asked in, and by how many clients
select api, api_version as version, count(*) as count, count(distinct client_id) as clients, count(error) as errors
from exchanges
where api_version is not null
group by api_key, api, api_version
order by api_key, api_version
