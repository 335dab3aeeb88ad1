"""Jobs for a worker to execute."""

import os
import time

import dagster as dg
from dagster import OpExecutionContext


@dg.op
def say_who(context: OpExecutionContext) -> None:
    context.log.info(f"executed by {os.getpid()}")


@dg.op
def ask_spark(context: OpExecutionContext) -> None:
    # As a tick: a first run loads packages of the project that were not loaded before.
    from hydro_core.settings import SparkSettings
    from hydro_core.spark.session.launch import jvm_process
    from hydro_core.spark.session.session import shared_session
    from hydrotick.project import project

    assert project.current().flows
    assert shared_session(SparkSettings(master="local[1]")).range(3).count() == 3
    context.log.info(f"executed by {os.getpid()}")
    context.log.info(f"Spark is {jvm_process()}")


@dg.op
def fail() -> None:
    raise ValueError("as it should")


@dg.op
def leave() -> None:
    raise SystemExit(0)


@dg.op
def take_a_while() -> None:
    time.sleep(3)


@dg.op
def wait() -> None:
    while True:
        time.sleep(0.1)


@dg.job(executor_def=dg.in_process_executor)
def says_who() -> None:
    say_who()


@dg.job(executor_def=dg.in_process_executor)
def asks_spark() -> None:
    ask_spark()


@dg.job(executor_def=dg.in_process_executor)
def fails() -> None:
    fail()


@dg.job(executor_def=dg.in_process_executor)
def leaves() -> None:
    leave()


@dg.job(executor_def=dg.in_process_executor)
def takes_a_while() -> None:
    take_a_while()


@dg.job(executor_def=dg.in_process_executor)
def does_not_end() -> None:
    wait()


defs = dg.Definitions(jobs=[says_who, asks_spark, fails, leaves, takes_a_while, does_not_end])
