package bootstrap

import (
	"fmt"
	"strconv"
	"strings"
)

// kubernetes is an Indexed Job. Its pods have names that can be told from their
// numbers, JOB-0.SUBDOMAIN and so on, if a headless service is named in
// spec.subdomain. How many there are and what the service is called, a pod is
// not told: the manifest must say it.
type kubernetes struct{}

func (kubernetes) name() string       { return "Kubernetes" }
func (kubernetes) looksFor() []string { return []string{"JOB_COMPLETION_INDEX"} }

func (kubernetes) detect(env environment) (Place, bool, error) {
	if env("JOB_COMPLETION_INDEX") == "" {
		return Place{}, false, nil
	}
	env, err := env.sized()
	if err != nil {
		return Place{}, false, err
	}
	if env("PLEACH_SIZE") == "" {
		return Place{}, false, &VariableError{Name: "PLEACH_SIZE", Problem: "set it in the job's manifest to spec.completions, which pods are not told"}
	}
	place, err := env.place(names{rank: "JOB_COMPLETION_INDEX", size: "PLEACH_SIZE"})
	if err != nil {
		return Place{}, false, err
	}
	index := "-" + strconv.FormatInt(int64(place.Rank), 10)
	job, ok := strings.CutSuffix(env("HOSTNAME"), index)
	if ok {
		place.group("job", job)
	}
	if place.Addresses != nil {
		return place, true, nil
	}
	if !ok || job == "" {
		return Place{}, false, &VariableError{
			Name: "HOSTNAME", Value: env("HOSTNAME"),
			Problem: fmt.Sprintf("it must be the job's name followed by %s, as pods of an Indexed Job have it", index),
		}
	}
	return deriveInKubernetes(env, place, job)
}

func deriveInKubernetes(env environment, place Place, job string) (Place, bool, error) {
	subdomain := env("PLEACH_SUBDOMAIN")
	if subdomain == "" {
		place.hint = "set PLEACH_SUBDOMAIN to the name of the headless service in the job's spec.subdomain"
		return place, true, nil
	}
	port, err := env.port(0) // every pod has an address of its own
	if err != nil {
		return Place{}, false, err
	}
	place.Addresses = make([]string, place.Size)
	for rank := range place.Addresses {
		place.Addresses[rank] = address(fmt.Sprintf("%s-%d.%s", job, rank, subdomain), port)
	}
	return place, true, nil
}
