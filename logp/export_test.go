package logp

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// CutInto has even small rings cut into pieces, to test the seams.
func (s *Sparse) CutInto(piece, halo int) { s.piece, s.halo = piece, halo }

// Pieces is how many pieces the last run was cut into in the end.
func (s *Sparse) Pieces() int { return s.pieces }

// Check compares the runs with the tree, rank by rank.
func (l *Lineage) Check() error {
	ring := topology.Ring{Size: l.tree.Size()}
	next := 1
	for _, run := range l.runs {
		if run.first != next || run.length > run.offset {
			return fmt.Errorf("run %+v follows on %d", run, next-1)
		}
		next += run.length
		for r := run.first; r < next; r++ {
			parent, index := l.tree.Parent(ring.Right(protocol.Rank(r), l.tree.Root()))
			if want := ring.Right(protocol.Rank(r-run.offset), l.tree.Root()); parent != want {
				return fmt.Errorf("rank %d from the root: parent %d, in run %+v %d", r, parent, run, want)
			}
			if delay := protocol.Time(index)*l.o + l.hop; delay != run.delay {
				return fmt.Errorf("rank %d from the root: colored %d after its parent, in run %+v", r, delay, run)
			}
		}
	}
	if next != l.size {
		return fmt.Errorf("the runs end at %d of %d", next, l.size)
	}
	return nil
}

// LongestZeroRun is the longest run of ranks not in the set, on the ring.
func (d *DeadSet) LongestZeroRun() protocol.Rank { return protocol.Rank(d.ranks.longestZeroRun()) }
