SELECT extract(YEAR FROM o_orderdate) AS o_year,
       sum(CASE WHEN sellers.n_name = 'BRAZIL' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
         / sum(l_extendedprice * (1 - l_discount)) AS mkt_share
FROM lineitem
JOIN part ON p_partkey = l_partkey
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
JOIN nation buyers ON buyers.n_nationkey = c_nationkey
JOIN region ON r_regionkey = buyers.n_regionkey
JOIN supplier ON s_suppkey = l_suppkey
JOIN nation sellers ON sellers.n_nationkey = s_nationkey
WHERE p_type = 'ECONOMY ANODIZED STEEL' AND r_name = 'AMERICA'
  AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
GROUP BY extract(YEAR FROM o_orderdate)
