package collective

// Two-level algorithms, for jobs of which several processes share a host: one task leads
// those of its host, which it reaches through memory, and only leaders send messages to
// other hosts. Among the tasks of a host, and among the leaders, the algorithms are those
// of one level.
//
// They are written for tasks as all others are, and a task keeps its place in its host when
// it is taken over. So failures change neither what is sent nor a bit of the result.

import "github.com/pleach-go/pleach/internal/collective/engine"

// meetByLevels is a barrier: tasks report to their leaders, the leaders meet, and release
// their tasks.
func meetByLevels(t *engine.Task) error {
	teams := t.Teams(engine.NoRoot)
	if err := reportUp(teams.Host); err != nil {
		return err
	}
	if teams.Leaders == nil {
		p, err := receiveDownLevels(teams)
		p.Release()
		return err
	}
	if err := disseminateFrom(teams.Leaders, 0); err != nil {
		return err
	}
	return passDown(teams.Host, teams.Leader, engine.Payload{})
}

// reportUp tells task 0 along a binomial tree that all tasks are there.
func reportUp(t *engine.Task) error {
	for step, mask := 0, 1; mask < t.N; step, mask = step+1, 2*mask {
		if t.ID&mask != 0 {
			return t.Send(t.ID-mask, step, nil)
		}
		if t.ID+mask < t.N {
			p, err := t.ReceivePayload(t.ID+mask, step)
			if err != nil {
				return err
			}
			p.Release()
		}
	}
	return nil
}

// sendDownLevels passes a payload on: to other hosts first, because they wait longer.
func sendDownLevels(teams engine.Teams, p engine.Payload) error {
	if teams.Leaders != nil && teams.Root >= 0 {
		if err := passDown(teams.Leaders, teams.Root, p); err != nil {
			return err
		}
	}
	return passDown(teams.Host, teams.Leader, p)
}

// receiveDownLevels receives a payload from the leaders' tree or from that of the host, and
// passes it on.
func receiveDownLevels(teams engine.Teams) (engine.Payload, error) {
	t, root := teams.Host, teams.Leader
	if teams.Leaders != nil {
		t, root = teams.Leaders, teams.Root
	}
	p, err := t.ReceivePayload(parent(t, root), 0)
	if err != nil {
		return p, err
	}
	return p, sendDownLevels(teams, p)
}

// combineUpLevels combines along a tree in each host, and then along one of the leaders.
// It returns the sum at task 0. It is combineByTree for two levels.
func combineUpLevels[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], step int, in, result []T,
	op Operator[T],
) (typedBuffer[T], error) {
	teams := t.Teams(engine.NoRoot)
	sum, err := combineByTree(teams.Host, v, step, in, nil, op)
	if err != nil || teams.Leaders == nil {
		return sum, err
	}
	defer sum.release()
	return combineByTree(teams.Leaders, v, step, sum.elements, result, op)
}

// combineByLevels is an Allreduce: each host's leader gets the host's sum, the leaders
// combine theirs, and send the result down.
func combineByLevels[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], in, out []T, op Operator[T]) error {
	teams := t.Teams(engine.NoRoot)
	sum, err := combineByTree(teams.Host, v, 0, in, leadersOnly(teams, out), op)
	sum.release()
	if err != nil {
		return err
	}
	if teams.Leaders == nil {
		p, err := receiveDownLevels(teams)
		if err != nil {
			return err
		}
		elements, err := v.decodeN(p.Bytes, len(out))
		copy(out, elements)
		p.Release()
		return err
	}
	if err := combineEverywhere(teams.Leaders, v, out, out, op); err != nil {
		return err
	}
	return v.sendDownHost(teams, out)
}

// leadersOnly returns the memory of the result at a leader, and nil elsewhere: there the
// sum is sent, so it needs a buffer.
func leadersOnly[T any](teams engine.Teams, out []T) []T {
	if teams.Leaders == nil {
		return nil
	}
	return out
}

// sendDownHost sends a leader's result to the other tasks of its host.
func (v *invocation[T, In, Out]) sendDownHost(teams engine.Teams, out []T) error {
	if !v.isRaw() {
		encoded, err := v.encode(out)
		if err != nil {
			return err
		}
		return passDown(teams.Host, teams.Leader, engine.Payload{Bytes: encoded})
	}
	b := v.copyToBuffer(teams.Host, out)
	defer b.release()
	return passDown(teams.Host, teams.Leader, engine.Payload{Bytes: bytesOf(b.elements), Buffer: b.buffer})
}
