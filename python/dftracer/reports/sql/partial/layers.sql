-- How many processes have events of a category. A process is in one block only, so that these add up.
select cat, count(distinct process) as processes
from (select distinct c, n, process from e) join kinds using (c, n) group by all
