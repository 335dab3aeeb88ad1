WITH usual AS (
  SELECT l_partkey AS of_part, sum(l_quantity) AS quantity, count(*) AS lines
  FROM lineitem
  GROUP BY l_partkey)
SELECT sum(l_extendedprice) / 7 AS avg_yearly
FROM lineitem
JOIN part ON p_partkey = l_partkey
JOIN usual ON of_part = l_partkey
WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND 5 * l_quantity * lines < quantity
