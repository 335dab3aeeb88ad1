WITH sold AS (
  SELECT l_partkey, l_suppkey, sum(l_quantity) AS quantity
  FROM lineitem
  WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  GROUP BY l_partkey, l_suppkey),
plenty AS (
  SELECT ps_suppkey
  FROM partsupp
  JOIN sold ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
  WHERE 2 * ps_availqty > quantity
    AND ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%'))
SELECT s_name, s_address
FROM supplier
JOIN nation ON n_nationkey = s_nationkey
WHERE n_name = 'CANADA' AND s_suppkey IN (SELECT ps_suppkey FROM plenty)
