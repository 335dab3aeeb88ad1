SELECT s_name, count(*) AS numwait
FROM lineitem waited
JOIN supplier ON s_suppkey = waited.l_suppkey
JOIN nation ON n_nationkey = s_nationkey
JOIN orders ON o_orderkey = waited.l_orderkey
WHERE n_name = 'SAUDI ARABIA' AND o_orderstatus = 'F'
  AND waited.l_receiptdate > waited.l_commitdate
  AND EXISTS (
    SELECT * FROM lineitem other
    WHERE other.l_orderkey = waited.l_orderkey AND other.l_suppkey <> waited.l_suppkey)
  AND NOT EXISTS (
    SELECT * FROM lineitem other
    WHERE other.l_orderkey = waited.l_orderkey AND other.l_suppkey <> waited.l_suppkey
      AND other.l_receiptdate > other.l_commitdate)
GROUP BY s_name
