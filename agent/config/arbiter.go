package config

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/contrib/arbiter/etcd"
	"github.com/pleach-go/pleach/contrib/arbiter/file"
	"github.com/pleach-go/pleach/contrib/arbiter/kubernetes"
)

// newArbiter returns the arbiter of the setting, KIND:PLACE. It is nil if there is none.
func newArbiter(setting string) (pleach.Arbiter, error) {
	if setting == "" {
		return nil, nil
	}
	var a pleach.Arbiter
	var err error
	switch kind, place, _ := strings.Cut(setting, ":"); {
	case kind == "file" && place != "":
		a, err = file.New(place)
	case kind == "etcd" && place != "":
		a, err = etcd.New(etcd.Config{Endpoints: strings.Split(place, ",")})
	case kind == "kubernetes" && place != "":
		lease := kubernetes.Config{Lease: place}
		if namespace, name, ok := strings.Cut(place, "/"); ok {
			lease = kubernetes.Config{Namespace: namespace, Lease: name}
		}
		a, err = kubernetes.New(lease)
	default:
		return nil, fmt.Errorf("arbiter: %q is none of file:DIRECTORY, etcd:URL,… and kubernetes:[NAMESPACE/]LEASE", setting)
	}
	if err != nil {
		return nil, fmt.Errorf("arbiter: %w", err)
	}
	return a, nil
}
