SELECT sellers.n_name AS supp_nation, buyers.n_name AS cust_nation,
       extract(YEAR FROM l_shipdate) AS l_year, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem
JOIN supplier ON s_suppkey = l_suppkey
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
JOIN nation sellers ON sellers.n_nationkey = s_nationkey
JOIN nation buyers ON buyers.n_nationkey = c_nationkey
WHERE l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
  AND (sellers.n_name = 'FRANCE' AND buyers.n_name = 'GERMANY'
    OR sellers.n_name = 'GERMANY' AND buyers.n_name = 'FRANCE')
GROUP BY sellers.n_name, buyers.n_name, extract(YEAR FROM l_shipdate)
