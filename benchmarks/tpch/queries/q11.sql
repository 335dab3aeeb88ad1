WITH stock AS (
  SELECT ps_partkey, ps_supplycost * ps_availqty AS value
  FROM partsupp
  JOIN supplier ON s_suppkey = ps_suppkey
  JOIN nation ON n_nationkey = s_nationkey
  WHERE n_name = 'GERMANY')
SELECT ps_partkey, sum(value) AS value
FROM stock
GROUP BY ps_partkey
HAVING sum(value) > (SELECT sum(value) FROM stock) * 0.0001
