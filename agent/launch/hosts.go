package launch

// The hosts of a job are written as users of mpirun do: a:4,b:4, or a file with a host on
// each line.

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Host is a host of a job, and how many of its processes run there.
type Host struct {
	Name  string // as ssh takes it: a name, an alias or user@name
	Slots int
}

// Hosts are where a job runs. Ranks fill them in their order.
type Hosts struct {
	List []Host
	// SSH is the command that runs another one on a host, and its arguments.
	SSH []string
	// Pleach is this program on the hosts: a path, or a name that their shells find.
	Pleach string
	// Silence is how long a host may say nothing before it counts as lost. If zero, 15 s.
	Silence time.Duration
}

// ParseHosts reads HOST:SLOTS,... A host without a number has one slot.
func ParseHosts(text string) (list []Host, err error) {
	for field := range strings.SplitSeq(text, ",") {
		h, err := parseHost(field)
		if err != nil {
			return nil, fmt.Errorf("--hosts %s: %w", text, err)
		}
		list = append(list, h)
	}
	return list, nil
}

// ReadHostfile reads a file with a host on each line: HOST, HOST:SLOTS or, as Open MPI has
// it, HOST slots=SLOTS. What follows # is a comment.
func ReadHostfile(name string) (list []Host, err error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		text, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if len(fields) == 2 && strings.HasPrefix(fields[1], "slots=") {
			fields = []string{fields[0] + ":" + strings.TrimPrefix(fields[1], "slots=")}
		}
		if len(fields) > 1 {
			return nil, fmt.Errorf("%s:%d: %q: write HOST, HOST:SLOTS or HOST slots=SLOTS", name, n, strings.TrimSpace(line))
		}
		h, err := parseHost(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		list = append(list, h)
	}
	if list == nil {
		return nil, fmt.Errorf("%s has no host", name)
	}
	return list, nil
}

func parseHost(text string) (Host, error) {
	h := Host{Name: strings.TrimSpace(text), Slots: 1}
	// An IPv6 address has colons of its own, unless it stands in brackets.
	if at := strings.LastIndexByte(h.Name, ':'); at >= 0 && (strings.Count(h.Name, ":") == 1 || h.Name[at-1] == ']') {
		n, err := strconv.Atoi(h.Name[at+1:])
		if err != nil || n < 1 {
			return h, fmt.Errorf("%q: write a number of processes behind the colon, as in a:4", text)
		}
		h.Name, h.Slots = h.Name[:at], n
	}
	h.Name = strings.NewReplacer("[", "", "]", "").Replace(h.Name)
	if h.Name == "" || strings.HasPrefix(h.Name, "-") {
		return h, fmt.Errorf("%q is not a host: write HOST:SLOTS, as in a:4", text)
	}
	return h, nil
}

// Fill takes as many slots as a job has processes, in order; 0 takes all. It returns the
// size of the job.
func (h *Hosts) Fill(size int) (int, error) {
	slots := 0
	for i := range h.List {
		if size > 0 {
			h.List[i].Slots = min(h.List[i].Slots, size-slots)
		}
		slots += h.List[i].Slots
		if slots == size {
			h.List = h.List[:i+1]
			break
		}
	}
	if slots < size {
		return 0, fmt.Errorf("-n %d: the hosts have %d slots: write more of them, as in --hosts a:8,b:8", size, slots)
	}
	return slots, nil
}
