"""Jobs for the resident worker to execute."""

import os
import time

import dagster as dg
from dagster import OpExecutionContext


@dg.op
def say_who(context: OpExecutionContext) -> None:
    context.log.info(f"executed by {os.getpid()}")


@dg.op
def fail() -> None:
    raise ValueError("as it should")


@dg.op
def wait() -> None:
    while True:
        time.sleep(0.1)


@dg.job(executor_def=dg.in_process_executor)
def says_who() -> None:
    say_who()


@dg.job(executor_def=dg.in_process_executor)
def fails() -> None:
    fail()


@dg.job(executor_def=dg.in_process_executor)
def does_not_end() -> None:
    wait()


defs = dg.Definitions(jobs=[says_who, fails, does_not_end])
