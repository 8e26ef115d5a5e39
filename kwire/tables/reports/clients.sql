-- The clients: what they run, how much they ask, how often in vain
select client_id, software, software_version as version, connections, exchanges, errors
from clients
order by exchanges desc, client_id
