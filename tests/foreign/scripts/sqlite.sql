PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
PRAGMA mmap_size=1048576;
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, value REAL);
CREATE INDEX by_name ON t(name);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO t SELECT i, 'name ' || (i * 7919 % 3001), i / 3.0 FROM n;
COMMIT;
UPDATE t SET value = value * 2 WHERE id % 3 = 0;
BEGIN; DELETE FROM t; ROLLBACK;
DELETE FROM t WHERE id > 2900;
PRAGMA wal_checkpoint(FULL);
SELECT count(*), sum(id), round(sum(value), 3), min(name) FROM t;
INSERT INTO t VALUES(5, 'there already', 0);
VACUUM;
PRAGMA integrity_check;
