"""How stored rows are found that a range can meet: before Spark sees any, without a look at all."""
