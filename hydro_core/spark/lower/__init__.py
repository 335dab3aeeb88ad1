"""From relations to a relation: one function for each operator, in folders by their classes."""

from hydro_core.spark.lower.bilinear import cross as cross
from hydro_core.spark.lower.bilinear import join as join
from hydro_core.spark.lower.by_key import difference as difference
from hydro_core.spark.lower.by_key import group as group
from hydro_core.spark.lower.by_key import nearest as nearest
from hydro_core.spark.lower.by_key import ordered as ordered
from hydro_core.spark.lower.by_key import running as running
from hydro_core.spark.lower.by_key import tails as tails
from hydro_core.spark.lower.by_position import order as order
from hydro_core.spark.lower.linear import io as io
from hydro_core.spark.lower.linear import itemwise as itemwise
from hydro_core.spark.lower.linear import quarantine as quarantine
from hydro_core.spark.lower.linear import shards as shards
from hydro_core.spark.lower.over_time import commands as commands
from hydro_core.spark.lower.over_time import growth as growth
from hydro_core.spark.lower.over_time import history as history
from hydro_core.spark.lower.over_time import recent as recent
