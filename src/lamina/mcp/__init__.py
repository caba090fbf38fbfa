"""The MCP server: memory and past sessions of one project, for any agent that speaks the Model Context Protocol.

Decides  nothing: every change goes through the memory's guard, modes, redaction and journal, as on the command line
Does     answers tool calls, resources and prompts over stdio, or over HTTP on loopback with a token (http.py)
Costs    the tool descriptions in the client's window; `bench/mcp_server.py` prints their tokens
Switch   `lamina.memoryMode`, `autoMemoryEnabled` and `lamina.sources`; the server reads them before each call
Spec     U4
"""
