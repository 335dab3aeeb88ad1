WITH of_countries AS (
  SELECT c_custkey, c_acctbal, substring(c_phone, 1, 2) AS cntrycode
  FROM customer
  WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')),
usual AS (
  SELECT sum(c_acctbal) AS balance, count(*) AS customers FROM of_countries WHERE c_acctbal > 0)
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM of_countries CROSS JOIN usual
WHERE c_acctbal * customers > balance
  AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
GROUP BY cntrycode
