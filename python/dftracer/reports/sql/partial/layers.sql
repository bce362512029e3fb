-- How many processes have events of a category. A process is in one block only, so that these add up.
select coalesce(word, '') as cat, count(distinct process) as processes
from (select distinct c, process from e) left join cats on c = code group by all
