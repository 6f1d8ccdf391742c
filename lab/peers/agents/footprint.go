package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// footprint is what the processes of a fleet use. Memory is in MB.
type footprint struct {
	processor         time.Duration // of all
	rss, anon, rssMax float64       // of all, of all, of one
}

// tick is the unit of times in /proc/PID/stat.
const tick = 10 * time.Millisecond

// footprint reads it from /proc.
func (f *fleet) footprint() (u footprint, err error) {
	for _, p := range f.processes {
		processor, err := processorTime(p.Process.Pid)
		if err != nil {
			return u, err
		}
		memory, err := memoryOf(p.Process.Pid)
		if err != nil {
			return u, err
		}
		u.processor += processor
		u.rss += memory["VmRSS"]
		u.anon += memory["RssAnon"]
		u.rssMax = max(u.rssMax, memory["VmRSS"])
	}
	return u, nil
}

// processorTime is that of all threads, in user and kernel mode: fields 14 and 15.
func processorTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, b)
	}
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// memoryOf reads the sizes of /proc/PID/status, in MB.
func memoryOf(pid int) (map[string]float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]float64)
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if kb, ok := strings.CutSuffix(strings.TrimSpace(value), " kB"); ok {
			if n, err := strconv.ParseFloat(kb, 64); err == nil {
				sizes[name] = n * 1024 / 1e6
			}
		}
	}
	return sizes, nil
}
