-- Topics by the bytes of records that were produced and fetched
select
  topic,
  count(distinct partition) as partitions,
  coalesce(sum(bytes) filter (where api = 'Produce'), 0)::bigint as bytes_in,
  coalesce(sum(records) filter (where api = 'Produce'), 0)::bigint as records_in,
  coalesce(sum(bytes) filter (where api = 'Fetch'), 0)::bigint as bytes_out,
  coalesce(sum(records) filter (where api = 'Fetch'), 0)::bigint as records_out,
  count(error) as errors
from partitions
where api in ('Produce', 'Fetch')
group by topic
order by bytes_in + bytes_out desc, topic
limit 50
