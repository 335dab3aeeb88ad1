WITH offers AS (
  SELECT *
  FROM partsupp
  JOIN part ON p_partkey = ps_partkey
  JOIN supplier ON s_suppkey = ps_suppkey
  JOIN nation ON n_nationkey = s_nationkey
  JOIN region ON r_regionkey = n_regionkey
  WHERE p_size = 15 AND p_type LIKE '%BRASS' AND r_name = 'EUROPE'),
least AS (SELECT ps_partkey AS of_part, min(ps_supplycost) AS cost FROM offers GROUP BY ps_partkey)
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM offers
JOIN least ON of_part = ps_partkey AND cost = ps_supplycost
