"""Layer 7: delegates work to other agents.

Decides  which agent types exist, what a call of Agent or SendMessage asks for, which tools a subagent gets, what its parent reads
         of its work, how a message is shown in a conversation, which words describe what an agent is doing, and
         the instructions of a team member (team.py)
Does     queues messages within a process (messages.py), sends them over sockets (sockets.py), takes them from a mailbox (step.py);
         `agent/` runs the agents themselves
Costs    a fork: its directive and its answer, the rest comes from the prompt cache; a subagent: its own conversation; a message: only
         its text; an agent summary: a call with a few words of output every half minute
Switch   an agent opened with your own tools has none of this; deny rules `Agent` and `SendMessage` refuse every call;
         `lamina.agentSummaries`; mailbox and socket are off unless a setting names them
Spec     A2-A7, and the agents' part of C4, C9 and O1
"""
