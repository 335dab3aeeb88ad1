"""The Dagster side: flows as partitioned assets. The folder `orchestration/` is this package."""

if __name__ != "hydrotick":
    # Under the folder's name every module would be there a second time.
    raise ImportError(f"this package is `hydrotick`, not `{__name__}`", name=__name__)
