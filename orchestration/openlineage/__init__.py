"""What ticks read and write, told as OpenLineage events (openlineage.io): to a file or a URL.

Spec 2-0-2. A job is a flow, a run is ticks that are committed together.
"""
