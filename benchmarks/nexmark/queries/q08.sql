SELECT id, name, date_time // 10000 AS span FROM person
WHERE EXISTS (SELECT * FROM auction WHERE seller = person.id AND auction.date_time // 10000 = person.date_time // 10000)
