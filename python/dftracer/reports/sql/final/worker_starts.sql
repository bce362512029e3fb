-- Starts of the workers of loaders, with the settings of the loader. Numbers that no program has are left out.
select n.number as process, p.rank, loader, pass, start_ns, stop_ns - start_ns as dur_ns, workers, prefetch, persistent, in_order,
  pins, cpus, case when cpu_us between 0 and 1000000000000000 then cpu_us * 1000 end as cpu_ns
from p_feeds f join numbers n using (process) join p_processes p using (process)
where kind = 'start_workers' and loader is not null and pass is not null and workers between 1 and 100000
  and coalesce(prefetch, 1) between 1 and 100000 and coalesce(cpus, 1) between 1 and 1000000
order by n.number, start_ns, loader, pass
