-- What the time of a batch is spent on, as lanes of a sweep. In this order the first one that is open has the moment.
select c, n, case
    when cat = 'python' and name = 'gc' then 0
    when class in ('io', 'store') then 1
    when cat = 'data' and regexp_matches(name, '(^|[.])collate$') then 2
    when cat = 'data' and name = 'item' then 3
  end as lane
from kinds
where class in ('io', 'store') or cat = 'python' and name = 'gc' or cat = 'data' and regexp_matches(name, '(^|[.])collate$|^item$')
