"""The record of a job: what its workers agree on, without I/O. Each change is one compare-and-swap of the record.

A world is a number and an ordered list of workers. It is formed, commits steps, and is closed; then workers enter for
the next one. The number and the count of committed steps never fall.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Collection, Dict, List, Tuple

NO_STATE = -1  # the step of a worker that has not received the state


@dataclass(frozen=True)
class Record:
    """The record of a job.

    Attributes:
        number: of the world.
        step: how many steps are committed, in this world and all earlier ones.
        formed: the members are known; otherwise workers enter.
        members: the workers of a formed world, by rank.
        holders: how many of the members have the state: those of the lowest ranks.
        present: the workers that have entered for a world that is not formed, with the step of the state they have.
        expected: workers that are waited for when a world is formed: the members of the world before, and newcomers.
        waiting: newcomers that the next world takes in.
        leaving: members that leave at the next commit.
        ended: the last step is committed.
    """

    number: int = 0
    step: int = 0
    formed: bool = False
    members: Tuple[str, ...] = ()
    holders: int = 0
    present: Dict[str, int] = field(default_factory=dict)
    expected: Tuple[str, ...] = ()
    waiting: Tuple[str, ...] = ()
    leaving: Tuple[str, ...] = ()
    ended: bool = False

    @classmethod
    def decode(cls, data: bytes) -> Record:
        fields = json.loads(data)
        for name in ("members", "expected", "waiting", "leaving"):
            fields[name] = tuple(fields[name])
        return cls(**fields)

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    def enter(self, worker: str, step: int) -> Record:
        """Enter for the next world, or wait for it if this one is formed."""
        if self.ended:
            return self
        if not self.formed:
            return replace(self, present={**self.present, worker: step})
        if worker in self.members or worker in self.waiting:
            return self
        return replace(self, waiting=(*self.waiting, worker))

    def form(self, min_size: int, gone: Collection[str]) -> Record:
        """Form the world, unless a worker is missing that is not gone, or no worker has the state."""
        present = [w for w in self.present if w not in gone]
        missing = [w for w in self.expected if w not in self.present and w not in gone]
        holders = self._holders(present)
        if self.formed or missing or len(present) < min_size or self.step and not holders:
            return self
        order = {w: i for i, w in enumerate(self.expected)}
        holders.sort(key=lambda w: order.get(w, len(order)))  # stable: others stay in the order in which they came
        members = (*holders, *(w for w in present if w not in holders))
        return Record(self.number, self.step, True, members, len(holders))

    def lost(self, gone: Collection[str]) -> bool:
        """Report whether all workers that had the state are gone."""
        present = [w for w in self.present if w not in gone]
        missing = [w for w in self.expected if w not in self.present and w not in gone]
        return not self.formed and self.step > 0 and not missing and not self._holders(present)

    def _holders(self, present: Collection[str]) -> List[str]:
        """Return who has the state. Before the first step it is that of rank 0, whatever workers had before."""
        return [w for w in present if self.step and self.present[w] == self.step]

    def commit(self, number: int, step: int, last: int) -> Record:
        """Commit a step of a world, and close the world if workers wait or leave."""
        if self.number != number or not self.formed or self.step != step:
            return self
        done = replace(self, step=step + 1, ended=step + 1 == last)
        return done.close(number) if self.waiting or self.leaving or done.ended else done

    def close(self, number: int) -> Record:
        """Close a world: it commits nothing any more."""
        if self.number != number or not self.formed:
            return self
        stay = tuple(w for w in self.members if w not in self.leaving)
        return Record(number + 1, self.step, expected=(*stay, *self.waiting), ended=self.ended)

    def leave(self, worker: str) -> Record:
        """Leave: a member at the next commit, others at once."""
        if self.formed and worker in self.members:
            return self if worker in self.leaving else replace(self, leaving=(*self.leaving, worker))
        present = {w: step for w, step in self.present.items() if w != worker}
        rest = {name: tuple(w for w in getattr(self, name) if w != worker) for name in ("expected", "waiting")}
        return replace(self, present=present, expected=rest["expected"], waiting=rest["waiting"])

    def outcome(self, number: int, step: int) -> bool:
        """Report whether a step of a world was committed there, to a member that finds the world closed. If others have
        formed a world meanwhile, the member is not part of it, and they may have repeated the step: then it is not."""
        return self.number == number + 1 and not self.formed and self.step > step
