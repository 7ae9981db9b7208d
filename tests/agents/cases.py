"""What happens to an agent while it works: nothing, or one of the failures that a gateway stands between it and.

A case adds lines to the replicas' scripts (loadtest/mock_script.h), flags, and limits of the gateway, and says what must
be seen afterwards.
"""

import dataclasses
from typing import Callable


@dataclasses.dataclass
class Case:
    name: str
    faults: Callable = lambda turns: []  # (steps) -> script lines that go before the others, in every replica
    first_only: Callable = lambda turns: []  # likewise, of the first replica alone; the second starts after it has served
    limits: str = ""
    outcomes: tuple = ()  # of receipts that must be there
    context_of: Callable = lambda agent: 400_000
    large_output: bool = False  # steps 1, 3 and 5 print 42,000 bytes
    all_agents: bool = False
    # For agents that give up on it: what their output must then say. They may fail, but not end as if all were done.
    gives_up: Callable = lambda agent: None


def after(turns, step):
    """Fits the request that follows step number `step` (from 1), and later ones."""
    return {"when": turns[step - 1][2]}


CASES = [
    Case("task", all_agents=True),
    # The replica that has the session ends in the middle of an answer: the other one goes on with it.
    Case("killed", first_only=lambda turns: [after(turns, 5) | {"fault": "exit", "after_tokens": 6, "reply": "I am about to"}],
         outcomes=("unavailable",)),
    # An answer is cut off, and so is what the other replica makes of it.
    Case("cut", faults=lambda turns: [after(turns, 4) | {"fault": "error", "after_tokens": 6, "reply": "I am about to", "times": 1}],
         outcomes=("unavailable",), gives_up=lambda agent: None if agent.retries_cut else "terminated"),
    # Every replica is full, and then none takes anything: 429 and 503, twice each.
    Case("storm", faults=lambda turns: [
        after(turns, 3) | {"fault": "refuse", "status": "resource_exhausted", "message": "full", "times": 2},
        after(turns, 5) | {"fault": "refuse", "message": "not now", "times": 2}],
        limits="limits: {queue_wait_s: 0}", outcomes=("resource_exhausted", "unavailable")),
    # The conversation outgrows the model. Agents that can compact theirs go on; the others say so and end.
    Case("overflow", faults=lambda turns: [{"unless": "<tools>", "when": turns[step][2], "reply": f"Done so far: {turns[step][2]}"}
                                           for step in (4, 2, 0)],
         context_of=lambda agent: agent.small_context, large_output=True,
         gives_up=lambda agent: None if agent.compacts else "context"),
]
