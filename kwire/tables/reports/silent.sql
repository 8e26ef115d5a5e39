-- Requests that were never answered, and why
select time, api, api_version as version, client_id, connection, note
from exchanges
where outcome = 'no answer'
order by time
