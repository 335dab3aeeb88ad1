"""Deployments: which program of a flow runs, and how another one comes to run.

A deployment is a program with its plan, stored as files below the flow's pipeline. The ledger alone
decides its state, by the rows that name it:

    the program of the flow
        │  deployment_for: optimized, compared with the program, written as deployments/N
        v
      draft      no row of the ledger names it; it is used again while the program says the same
        │  activate: a row of the ledger names it, by the first tick, or by `switch.deploy`
        v
      active     the last row names it; ticks run by its plan
        │  retire: a row names another one   ^
        v                                    │  `switch.roll_back`
      retired    an earlier row names it ────┘
        │  Deployments.forget: after the retention of `hydrotick compact`, and drafts before it
        v
      removed

A row of the ledger is one write, so a switch happens or it does not. What has to be computed for it
is computed before, in staged tables (`hydro_core/spark/pipeline/rework.py`).

    deployments   the states: the active deployment of a flow, its draft, and how one is built
    planning      `plan`: which outputs and states another program changes, and from what they come
    switch        `deploy`, `rollback`, `plan --compare`: staged tables, then the row of the ledger
    report        what `plan` prints, as text and as JSON

The record and its codec are `hydro_core/artifact/`; programs are compared in
`hydro_core/program_change/`. The core below `deployments` imports nothing that runs ticks, so that
loading definitions loads no engine.
"""
