-- Batches that a process waited for, see fetches.sql.
from fetches
