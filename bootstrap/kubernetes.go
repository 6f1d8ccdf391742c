package bootstrap

import (
	"fmt"
	"strconv"
	"strings"
)

// kubernetes is an Indexed Job. The names of its pods follow from their indexes,
// JOB-0.SUBDOMAIN and so on, if spec.subdomain names a headless service. A pod does
// not know the number of pods or the name of the service: the manifest must set
// them.
type kubernetes struct{}

func (kubernetes) name() string        { return "Kubernetes" }
func (kubernetes) variables() []string { return []string{"JOB_COMPLETION_INDEX"} }

func (kubernetes) detect(env environment) (Assignment, bool, error) {
	if env("JOB_COMPLETION_INDEX") == "" {
		return Assignment{}, false, nil
	}
	env, err := env.sized()
	if err != nil {
		return Assignment{}, false, err
	}
	if env("PLEACH_SIZE") == "" {
		return Assignment{}, false, &VariableError{
			Name:    "PLEACH_SIZE",
			Problem: "set it in the job's manifest to spec.completions, which pods do not know",
		}
	}
	a, err := env.assignment(names{rank: "JOB_COMPLETION_INDEX", size: "PLEACH_SIZE"})
	if err != nil {
		return Assignment{}, false, err
	}
	index := "-" + strconv.FormatInt(int64(a.Rank), 10)
	job, ok := strings.CutSuffix(env("HOSTNAME"), index)
	if ok {
		a.group("job", job)
	}
	if a.Addresses != nil || a.Rendezvous != "" {
		return a, true, nil
	}
	if !ok || job == "" {
		return Assignment{}, false, &VariableError{
			Name: "HOSTNAME", Value: env("HOSTNAME"),
			Problem: fmt.Sprintf("it must be the job's name followed by %s, as pods of an Indexed Job have it", index),
		}
	}
	return deriveInKubernetes(env, a, job)
}

func deriveInKubernetes(env environment, a Assignment, job string) (Assignment, bool, error) {
	subdomain := env("PLEACH_SUBDOMAIN")
	if subdomain == "" {
		a.hint = "set PLEACH_SUBDOMAIN to the name of the headless service in the job's spec.subdomain"
		return a, true, nil
	}
	port, err := env.port(0) // every pod has an address of its own
	if err != nil {
		return Assignment{}, false, err
	}
	a.Addresses = make([]string, a.Size)
	for rank := range a.Addresses {
		a.Addresses[rank] = address(fmt.Sprintf("%s-%d.%s", job, rank, subdomain), port)
	}
	return a, true, nil
}
