-- Error codes by API: how often, of how many clients, and when first
select
  error,
  api,
  count(*) as count,
  count(distinct client_id) as clients,
  min(time) as first_time
from exchanges
where error is not null
group by error, api
order by count desc, error, api
