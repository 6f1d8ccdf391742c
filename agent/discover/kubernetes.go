package discover

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/pleach-go/pleach/contrib/arbiter/kubernetes/account"
)

// service is a service of Kubernetes whose pods are seeds, at a port.
type service struct{ namespace, name, port string }

// parseService parses [NAMESPACE/]SERVICE:PORT.
func parseService(text string) (s service, err error) {
	const form = "kubernetes:[NAMESPACE/]SERVICE:PORT"
	if err := checkAddress(kubernetesPrefix+text, text, form); err != nil {
		return service{}, err
	}
	colon := strings.LastIndexByte(text, ':')
	s.name, s.port = text[:colon], text[colon+1:]
	namespace, name, given := strings.Cut(s.name, "/")
	if given {
		s.namespace, s.name = namespace, name
	}
	if given && namespace == "" || s.name == "" || strings.ContainsAny(s.name, "/:") {
		return service{}, fmt.Errorf("%q is not a seed: write %s", kubernetesPrefix+text, form)
	}
	return s, nil
}

// sliceList is the part of a list of EndpointSlices that is needed here.
type sliceList struct {
	Items []struct {
		Endpoints []struct {
			Addresses []string `json:"addresses"`
		} `json:"endpoints"`
	} `json:"items"`
}

// listEndpoints returns the addresses of the endpoints of a service, as the API server knows them.
// They include endpoints that are not ready: an agent is ready when it is a member.
func listEndpoints(ctx context.Context, c account.Config, text string) ([]string, error) {
	s, err := parseService(text)
	if err != nil {
		return nil, err
	}
	client, err := account.New(c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if s.namespace == "" {
		s.namespace, err = client.Namespace()
		if err != nil {
			return nil, err
		}
	}
	path := fmt.Sprintf("/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices?labelSelector=%s",
		url.PathEscape(s.namespace), url.QueryEscape("kubernetes.io/service-name="+s.name))
	var list sliceList
	if err := client.Call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, err
	}
	var addresses []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, withPort(endpoint.Addresses, s.port)...)
		}
	}
	return addresses, nil
}
