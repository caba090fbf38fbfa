"""Layer 7: work that is handed over.

Decides  which agent types there are, what a call of Agent or SendMessage asks for, which tools a subagent gets, what its parent reads
         of it, how a message stands in a conversation, which words tell what an agent is doing
Does     queues messages of one process (messages.py), carries them over sockets (sockets.py), takes them from a mailbox (step.py);
         agents themselves are run by `agent/`
Costs    a fork its directive and its answer, the rest is read from the prompt cache; a subagent a conversation of its own; a message
         nothing but its words; an agent summary a call of a few words every half minute
Switch   an agent opened with tools of one's own has none of it; deny rules `Agent` and `SendMessage` refuse every call;
         `lamina.agentSummaries`; mailbox and socket are off unless a setting names them
Spec     A2-A7, and the agents' part of C4, C9 and O1
"""
