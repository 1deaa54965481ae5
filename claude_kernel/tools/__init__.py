"""What Claude may do in this process: look at the live namespace, run Python in it, add cells.

Served over `mcp_message`.
"""
