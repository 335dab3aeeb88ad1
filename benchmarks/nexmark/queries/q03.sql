SELECT name, city, state, auction.id
FROM auction JOIN person ON person.id = seller
WHERE category = 10 AND state IN ('OR', 'ID', 'CA')
