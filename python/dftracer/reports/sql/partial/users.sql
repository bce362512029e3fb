-- How many processes used each file.
select word as fname, count(*) as processes
from (select distinct f, process from e where f is not null) join fnames on f = code group by all
