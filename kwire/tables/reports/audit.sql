-- Clients by what Kafka 4.0 does to them: blocked and by what, unproven, ready; kwire audit --to asks of other releases
select
  verdict,
  client_id,
  coalesce(software, library) as software,
  array_to_string(
    [one.api || ' v' || array_to_string(one.versions, ', v') for one in blocked_by]
    || ['magic ' || magic for magic in blocked_magic], '; '
  ) as blocked_by,
  cure
from audit
where release = '4.0'
order by verdict = 'ready', verdict = 'unproven', client_id
