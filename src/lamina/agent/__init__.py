"""Agent: the tool loop on top of a session, with subagents and messages.

agent.py        Agent itself                              agent_tool.py  forks, subagents and background agents
driver.py       the conversation as the loop drives it    agent_run.py   one agent, from its call to its report
messaging.py    messages between agents                   subagent.py    opening a subagent, and its memory
agent_hooks.py  the hooks of an agent
manual_dream.py a dream started by hand                   progress.py    what background agents are doing
"""
