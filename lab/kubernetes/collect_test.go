package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// at returns a record of a pod's first process.
func at(seconds float64, pod, kind, key string, n uint64, members ...string) record {
	time := int64(seconds * float64(time.Second))
	return record{Pod: pod, Process: 1, Time: time, Kind: kind, Key: key, N: n, Members: members}
}

// What is lost, doubled or falls is counted, and nothing else.
func TestJudge(t *testing.T) {
	good := []record{
		at(0.5, "a", recordSubscribed, "", 0), at(0.5, "b", recordSubscribed, "", 0),
		at(1, "a", recordSent, "m", 0), at(1.1, "a", recordReceived, "m", 0), at(1.1, "b", recordReceived, "m", 0),
		at(1.2, "a", recordStable, "m", 0, "a", "b"),
		at(2, "a", recordToken, "", 1), at(3, "b", recordToken, "", 2),
		at(4, "a", recordQuorum, "", 1), at(5, "a", recordQuorum, "", 0), at(7, "b", recordQuorum, "", 1),
		at(20, "a", recordQuorum, "", 0), at(20, "b", recordQuorum, "", 0),
	}
	for _, c := range []struct {
		name   string
		change func(all []record) []record
		want   outcome
	}{
		{"nothing", func(all []record) []record { return all }, outcome{Sent: 1, Deliveries: 2, NoQuorum: 3}},
		{
			"a message is lost", func(all []record) []record { return append(all[:4:4], all[5:]...) },
			outcome{Sent: 1, Deliveries: 1, Lost: 1, NoQuorum: 3},
		},
		{
			"a message is lost by a process that dies", func(all []record) []record { return append(all[:4:4], all[5:10]...) },
			outcome{Sent: 1, Deliveries: 1},
		},
		{
			"a message comes twice", func(all []record) []record { return append(all, at(9, "b", recordReceived, "m", 0)) },
			outcome{Sent: 1, Deliveries: 3, Duplicated: 1, NoQuorum: 3},
		},
		{
			"a token falls", func(all []record) []record { return append(all, at(21, "b", recordToken, "", 2)) },
			outcome{Sent: 1, Deliveries: 2, FallenLock: 1, NoQuorum: 3},
		},
		{
			"a key is lost", func(all []record) []record { return append(all, at(21, "b", recordLostKey, "k", 2)) },
			outcome{Sent: 1, Deliveries: 2, LostKeys: 1, NoQuorum: 3},
		},
	} {
		var o outcome
		judge(&o, c.change(good))
		if o != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, o, c.want)
		}
	}
}

// Two leaders at one time are counted, and one after the other is none.
func TestOverlaps(t *testing.T) {
	at := func(pod string, view uint64, from, to int64) reign {
		return reign{pod, view, time.Unix(from, 0), time.Unix(to, 0)}
	}
	for _, c := range []struct {
		all  []reign
		want int
	}{
		{[]reign{at("a", 1, 0, 5), at("b", 2, 6, 9), at("a", 3, 10, 11)}, 0},
		{[]reign{at("b", 2, 4, 9), at("a", 1, 0, 5)}, 1},
		{[]reign{at("a", 1, 0, 5), at("a", 2, 4, 9)}, 0},
		{[]reign{at("a", 1, 0, 9), at("b", 2, 3, 3)}, 0}, // seen once only
	} {
		if got := overlaps(c.all); got != c.want {
			t.Errorf("%v: %d, want %d", c.all, got, c.want)
		}
	}
}

// The manifest has traffic next to the agent, and a Deployment is made of it.
func TestManifests(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/kubernetes/statefulset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := withTraffic(string(manifest))
	web := deploymentOf(set)
	for text, want := range map[string]int{
		"image: " + pleachImage + "\n": 1, "image: " + testImage + "\n": 1, "kind: StatefulSet\n": 0,
		"volumeClaimTemplates": 0,
		"name: web\n":          1, "/name: web}": 5, "serviceName": 0, "emptyDir": 2,
	} {
		if n := strings.Count(web, text); n != want {
			t.Errorf("%q is %d times in the Deployment, want %d", text, n, want)
		}
	}
	if !strings.Contains(set, "kind: StatefulSet\n") || strings.Count(set, testImage) != 1 {
		t.Error(set)
	}
}

// An image is an archive that begins with its parts.
func TestImage(t *testing.T) {
	archive, err := imageOf("localhost/x:1", os.Args[0], []string{"/usr/bin/x"})
	if err != nil || !strings.Contains(string(archive), `"RepoTags":["localhost/x:1"]`) {
		t.Error(len(archive), err)
	}
	if _, err := imageOf("x", "/nowhere", []string{"/usr/bin/x"}); err == nil {
		t.Error("an image of nothing")
	}
}
