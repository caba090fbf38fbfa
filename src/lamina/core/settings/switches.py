"""The kill switches (F1) and the three that stand above them: memory, compaction, bare mode.

Off means that a layer takes no new decisions; what it decided before stays as it is. A working tree may turn off what remembers
and what spends (`less`), since that costs a person nothing. What keeps the window from filling up waits for trust.
"""

from __future__ import annotations

from .row import Held, Setting, Variable, switch


class Switches(Held):
    __slots__ = ()

    memory = switch(
        True,
        "Memory as a whole: instructions, index, recall, extraction and dreams.",
        key="autoMemoryEnabled",
        spec="F3",
        tree="less",
        variables=(Variable("LAMINA_DISABLE_MEMORY", "not"), Variable("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "not")),
    )
    compaction = switch(
        True,
        "Compaction of any kind, also by hand.",
        spec="F3",
        tree="trusted",
        variables=(Variable("LAMINA_DISABLE_COMPACT", "off"), Variable("DISABLE_COMPACT", "off")),
    )
    auto_compact = switch(
        True,
        "Compaction when the window is nearly full.",
        key="autoCompactEnabled",
        spec="F3",
        tree="freely",
        remote=True,
        variables=(Variable("LAMINA_DISABLE_AUTO_COMPACT", "off"), Variable("DISABLE_AUTO_COMPACT", "off")),
    )
    bare = switch(False, "Bare mode: everything optional is off.", spec="F3", tree="never")
    remote = switch(
        False,
        "This runs on a machine that is thrown away afterwards: memory only with a directory for it, no extraction.",
        spec="F3",
        tree="never",
        variables=("LAMINA_REMOTE", "CLAUDE_CODE_REMOTE"),
    )

    spill = switch(True, "Spill big tool results to disk and keep a preview.", spec="R1", tree="trusted", remote=True)
    size_clearing = switch(True, "Clear old tool results when they grow too big.", spec="M2", tree="trusted", remote=True)
    idle_clearing = switch(
        False,
        "Clear old tool results after a pause, when the cache is cold anyway.",
        spec="M3",
        tree="trusted",
        remote=True,
        bare=True,
    )
    cache_edits = switch(
        False, "Clear old tool results in the provider's cache, where it can.", spec="M4", tree="trusted", remote=True, bare=True
    )
    api_clearing = switch(
        False, "Let the provider clear old tool results and thinking.", spec="M5", tree="trusted", remote=True, bare=True
    )
    session_notes = switch(True, "Keep running notes of the session.", spec="N3", tree="less", remote=True, bare=True)
    notes_compaction = switch(
        True, "Compact with the notes, without a call, where they suffice.", spec="N6", tree="less", remote=True, bare=True
    )
    collapse = switch(
        False,
        "Fold old turns into placeholders; compaction by itself is then off.",
        spec="C10",
        tree="trusted",
        remote=True,
        bare=True,
    )
    snip = switch(True, "Let a range of messages be taken out of the view.", spec="C10", tree="trusted", remote=True)
    recall = switch(True, "Bring memories that help to each message.", spec="Q1", tree="less", remote=True, memory=True)
    index_in_prompt = switch(
        True, "Send the memory index; without it only recall brings memories.", spec="Q8", tree="less", remote=True, memory=True
    )
    past_search = switch(
        True, "Tell the model how to search memories and transcripts.", spec="S10", tree="less", remote=True, memory=True
    )
    extraction = switch(True, "Write memories at the end of a turn.", spec="X1", tree="less", remote=True, memory=True, bare=True)
    extraction_non_interactive = switch(
        False, "Write memories in runs without a person too.", spec="X2", tree="less", remote=True, memory=True, bare=True
    )
    dream = switch(
        True,
        "Consolidate memories in the background.",
        key="autoDreamEnabled",
        spec="D1",
        tree="less",
        remote=True,
        memory=True,
        bare=True,
    )
    team = switch(False, "Share a second memory with a team.", spec="W1", tree="less", remote=True, memory=True, bare=True)
    assistant = switch(
        False,
        "Assistant mode: daily logs in place of the live index.",
        spec="W2",
        tree="less",
        remote=True,
        memory=True,
        bare=True,
    )
    history_git = switch(
        True,
        "Let git follow the changes of memory, in a repository of its own beside the journal.",
        spec="B4",
        tree="less",
        memory=True,
        bare=True,
    )
    agent_summaries = switch(
        True, "Say in a few words what a background agent is doing.", spec="A7", tree="less", remote=True, bare=True
    )
    message_socket = switch(
        False, "Listen on a Unix socket for messages of other sessions of the same person.", spec="A6", tree="never", bare=True
    )


MEMORY: Setting[bool] = Switches.memory
COMPACTION: Setting[bool] = Switches.compaction
AUTO_COMPACT: Setting[bool] = Switches.auto_compact
