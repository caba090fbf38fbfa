"""Plugs Lamina into other coding agents, and takes it out again.

Decides  which files of another agent change, and which of its entries are Lamina's
Does     writes a plugin folder for Claude Code; a table, a section and hooks for Codex (claude_code.py, codex.py); the MCP server
         and a section for Cursor, Gemini CLI, opencode and VS Code (mcp_agents.py)
Costs    nothing while it is not called
Switch   `lamina uninstall AGENT`; LAMINA_DISABLE_HOOKS turns the hooks off without removing them
Spec     U5
"""
