-- How many processes used each file.
select word as fname, count(*) as processes
from (
  select f, process from e where f is not null union select f, process from copies
) join fnames on f = code group by all
